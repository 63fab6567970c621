"""Invalid files of lives beside a valid checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tools.vectors.broken import DAMAGED, Broken
from tools.vectors.raw import Draft, sealed

_FIRST: Final = sealed({"life": 0, "source_checkpoint_id": None})
_SECOND: Final[dict[str, Any]] = {"life": 1, "source_checkpoint_id": "step-0"}

# The content of 1.json.
_LIVES: Final[dict[str, bytes]] = {
    "number-other": sealed({**_SECOND, "life": 2}),
    "number-missing": sealed({"source_checkpoint_id": "step-0"}),
    "number-true": sealed({**_SECOND, "life": True}),
    "number-float": sealed({**_SECOND, "life": 1.0}),
    "number-string": sealed({**_SECOND, "life": "1"}),
    "source-missing": sealed({"life": 1}),
    "source-empty": sealed({**_SECOND, "source_checkpoint_id": ""}),
    "source-control": sealed({**_SECOND, "source_checkpoint_id": "step\t0"}),
    "source-number": sealed({**_SECOND, "source_checkpoint_id": 0}),
    "member-twice": sealed(b'{"life":2,"life":1,"source_checkpoint_id":null}'),
    "array": sealed([]),
    "changed": sealed(_SECOND).replace(b"step-0", b"step-1"),
    "empty": b"",
}


def cases() -> Iterator[tuple[str, Broken]]:
    """Yield the name and the fault of each case."""
    for name, data in _LIVES.items():
        lives = {"0.json": _FIRST, "1.json": data}
        yield f"life-{name}", Broken(Draft(), f"a life: {name}", error=None, lives=lives, lives_error=DAMAGED)
