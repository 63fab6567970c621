"""What the author of a participant, or of a controller, uses in tests. No plugin of a test runner is needed.

`on_virtual_clock` runs a test on an event loop whose clock jumps to the next timer, so that no time passes.
`ScriptedParticipant` has episodes that follow a script; `FaultyParticipant` makes any participant fail, wait
or take time.
"""

from ckptctl.testing._clock import Stall, VirtualClockLoop, on_virtual_clock, run
from ckptctl.testing._participant import FaultyParticipant, Hold, Method, ScriptedParticipant, Step
from ckptfmt._public_names import set_public_module

__all__ = [
    "FaultyParticipant",
    "Hold",
    "Method",
    "ScriptedParticipant",
    "Stall",
    "Step",
    "VirtualClockLoop",
    "on_virtual_clock",
    "run",
]

set_public_module(globals())
