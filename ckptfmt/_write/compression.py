"""Compressing batches side by side: one zstd frame each."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import zstandard

from ckptfmt._write.batch import Batch

_LEVEL: Final = 1
_THREADS: Final = 2


class Compressor:
    """Two threads. Whoever waits for the results in the order of the batches gets them in that order."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ckptfmt-compress")
        self._own = threading.local()  # a zstd context is for one thread at a time

    def submit(self, batch: Batch) -> Future[list[bytes]]:
        """The batch as one frame, in pieces. The same batch gives the same bytes."""
        try:
            return self._threads.submit(self._compress, batch)
        except RuntimeError:  # no thread can be started: the interpreter is ending, or there are too many
            done: Future[list[bytes]] = Future()
            done.set_result(self._compress(batch))
            return done

    def _compress(self, batch: Batch) -> list[bytes]:
        context = getattr(self._own, "context", None)
        if context is None:
            context = self._own.context = zstandard.ZstdCompressor(
                level=_LEVEL, write_checksum=True, write_content_size=True, threads=0
            )
        chunks = batch.chunks()
        if len(chunks) == 1:
            # The compressor's own object keeps the memory of the worst case: hold a copy of the real size.
            return [bytes(memoryview(context.compress(chunks[0])))]
        stream = context.compressobj(size=batch.size)
        return [*filter(None, map(stream.compress, chunks)), stream.flush()]

    def close(self) -> None:
        """End the threads; what they have not begun is not done."""
        self._threads.shutdown(cancel_futures=True)
