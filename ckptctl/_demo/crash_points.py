"""The points of the second checkpoint at which the demo can be killed.

``ckptctl demo --crash-after`` takes one of these names. Each is a point of the second checkpoint of a life,
except for the last one, which is right after the restore that follows a first crash.
"""

from __future__ import annotations

CRASH_POINTS = (
    "before-prepare",
    "prepared",
    "mid-commit",
    "between-commits",
    "before-publish",
    "resumed",
    "restored",
)
SERVER_CRASH_POINTS = ("mid-commit", "between-commits")
"""The points that lie inside the commit of one server."""
