"""What the processes of the demo tell their supervisor: one JSON object a line, on standard output."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

Event = dict[str, Any]
"""A JSON object whose ``event`` says what happened."""

_stdout_lock = threading.Lock()


def announce(event: Event) -> None:
    """Tell the supervisor. Thread-safe."""
    with _stdout_lock:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()
