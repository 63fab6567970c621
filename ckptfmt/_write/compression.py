"""Compressing batches in parallel, each to one zstd frame."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import zstandard

from ckptfmt._write.batch import Batch

_LEVEL: Final = 1
_THREADS: Final = 2


class Compressor:
    """Compresses batches in two threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ckptfmt-compress")
        self._per_thread = threading.local()  # only one thread at a time may use a zstd context

    def submit(self, batch: Batch) -> Future[list[bytes]]:
        """Compress the batch to one frame, in pieces. The same batch always gives the same bytes."""
        try:
            return self._threads.submit(self._compress, batch)
        except RuntimeError:  # no thread can be started: the interpreter is shutting down, or at its limit
            done: Future[list[bytes]] = Future()
            done.set_result(self._compress(batch))
            return done

    def _compress(self, batch: Batch) -> list[bytes]:
        context = getattr(self._per_thread, "context", None)
        if context is None:
            context = self._per_thread.context = zstandard.ZstdCompressor(
                level=_LEVEL, write_checksum=True, write_content_size=True, threads=0
            )
        chunks = batch.chunks()
        if len(chunks) == 1:
            # The compressor's result keeps memory of the worst-case size allocated: return a copy.
            return [bytes(memoryview(context.compress(chunks[0])))]
        stream = context.compressobj(size=batch.size)
        return [*filter(None, map(stream.compress, chunks)), stream.flush()]

    def close(self) -> None:
        """End the threads. Batches that were not begun are not compressed."""
        self._threads.shutdown(cancel_futures=True)
