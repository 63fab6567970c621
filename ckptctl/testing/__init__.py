"""Test doubles for whoever writes a participant or drives control planes: no plugin, no waiting.

`ckptctl.testing.clock` runs asyncio on a clock that jumps; `ckptctl.testing.participant` has a participant
whose episodes follow a script, and one that makes any participant fail, hang or take its time.
"""

from ckptctl.testing._clock import Stall, VirtualClockLoop, on_virtual_clock, run
from ckptctl.testing._participant import FaultyParticipant, Hold, ScriptedParticipant, Step

__all__ = [
    "FaultyParticipant",
    "Hold",
    "ScriptedParticipant",
    "Stall",
    "Step",
    "VirtualClockLoop",
    "on_virtual_clock",
    "run",
]
