"""SHA-256 beside the thread that reads: hashing gives up the interpreter, and takes as long as reading."""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

_PIECES_BEHIND: Final = 4


class BackgroundHash:
    """Like ``hashlib.sha256()``, but ``update`` returns at once, until it is a few pieces behind.

    A context manager: its thread, which only a second piece starts, ends with the block.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._is_empty = True
        self._thread: ThreadPoolExecutor | None = None
        self._behind: deque[Future[None]] = deque()

    def update(self, data: bytes) -> None:
        if self._is_empty:  # most files are one piece
            self._is_empty = False
            self._hash.update(data)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="ckptfmt-hash")
        try:
            self._behind.append(self._thread.submit(self._hash.update, data))
        except RuntimeError:  # no thread can be started: the interpreter is ending, or there are too many
            self._wait(0)
            self._hash.update(data)
        self._wait(_PIECES_BEHIND)

    def hexdigest(self) -> str:
        self._wait(0)
        return self._hash.hexdigest()

    def _wait(self, most: int) -> None:
        while len(self._behind) > most:
            self._behind.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread is not None:
            # Without waiting: the collector may find a forgotten reading in this very thread.
            self._thread.shutdown(wait=False, cancel_futures=True)
