"""SHA-256 in a second thread.

Hashing releases the interpreter lock and takes about as long as reading, so the two run at the same time.
"""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

_MAX_PENDING_PIECES: Final = 4


class BackgroundHash:
    """Like ``hashlib.sha256()``, but ``update`` returns at once while few pieces are pending.

    A context manager: its thread ends with the block. The thread is only started for a second piece.
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._is_empty = True
        self._thread: ThreadPoolExecutor | None = None
        self._pending: deque[Future[None]] = deque()

    def update(self, data: bytes) -> None:
        """Hash ``data`` after everything before it. Waits while too many pieces are pending."""
        if self._is_empty:  # most files are one piece
            self._is_empty = False
            self._hash.update(data)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="ckptfmt-hash")
        try:
            self._pending.append(self._thread.submit(self._hash.update, data))
        except RuntimeError:  # no thread can be started: the interpreter is shutting down, or at its limit
            self._wait(0)
            self._hash.update(data)
        self._wait(_MAX_PENDING_PIECES)

    def hexdigest(self) -> str:
        """The digest of all data so far."""
        self._wait(0)
        return self._hash.hexdigest()

    def _wait(self, max_pending: int) -> None:
        """Wait until at most ``max_pending`` pieces are pending."""
        while len(self._pending) > max_pending:
            self._pending.popleft().result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread is not None:
            # No waiting: the garbage collector may close an abandoned iterator in this very thread.
            self._thread.shutdown(wait=False, cancel_futures=True)
