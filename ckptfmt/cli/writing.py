"""``export`` and ``report``: they write a file about a checkpoint."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from ckptfmt.checkpoint import Checkpoint, find_checkpoint
from ckptfmt.cli.arguments import Arguments
from ckptfmt.cli.output import Output
from ckptfmt.cli.progress import Meter, bytes_to_read, counted, metered
from ckptfmt.display import size_text
from ckptfmt.errors import Unsupported
from ckptfmt.frames import arrow_schema, batches, json_line, library
from ckptfmt.limits import DEFAULT_LIMITS
from ckptfmt.participant import ParticipantCheckpoint
from ckptfmt.stores import choose_store


def export(arguments: Arguments, output: Output) -> int:
    """Rows to a file, or to standard output."""
    path = arguments.output
    as_parquet = (arguments.format or _format_of(path)) == "parquet"
    if as_parquet and path is None:
        raise Unsupported("parquet is written to a file; name it with --output")
    on_terminal = path is None and sys.stdout.isatty()
    with metered("export", hidden=on_terminal) as meter:
        checkpoint = _opened(arguments.url, meter)
        names = list(checkpoint) if arguments.participant is None else [arguments.participant]
        parts = [checkpoint[name] for name in names]
        meter.expect(sum(part.manifest.bytes for part in parts))
        if path is None:
            count = _write_lines(parts, sys.stdout.buffer)
        else:
            with _new_file(path) as file:
                count = _write_parquet(parts, file) if as_parquet else _write_lines(parts, file)
    if path is not None:
        output.line(f"{path}: {count} records, {size_text(os.path.getsize(path))}")
    output.result({"records": count, "output": path})
    return 0


def report(arguments: Arguments, output: Output) -> int:
    """The HTML page of one checkpoint."""
    path = arguments.output
    assert path is not None
    with metered("report") as meter:
        checkpoint = _opened(arguments.url, meter)
        meter.expect(bytes_to_read(checkpoint))
        page = checkpoint.html_report().encode()
    with _new_file(path) as file:
        file.write(page)
    output.line(f"{path}: {size_text(len(page))}")
    output.result({"output": path, "bytes": len(page)})
    return 0


def _opened(url: str, meter: Meter) -> Checkpoint:
    checkpoint = find_checkpoint(counted(choose_store(url), meter.add), DEFAULT_LIMITS)
    checkpoint.check_cut()
    return checkpoint


def _format_of(path: str | None) -> str:
    return "parquet" if path is not None and path.endswith((".parquet", ".pq")) else "jsonl"


def _write_lines(parts: list[ParticipantCheckpoint], file: IO[bytes]) -> int:
    count = 0
    for part in parts:
        for record in part:
            file.write(json_line(part, record))
            count += 1
    return count


def _write_parquet(parts: list[ParticipantCheckpoint], file: IO[bytes]) -> int:
    parquet: Any = library("pyarrow.parquet")
    count = 0
    with parquet.ParquetWriter(file, arrow_schema(), compression="zstd") as writer:
        for batch in batches(parts):
            writer.write_batch(batch)
            count += batch.num_rows
    return count


@contextmanager
def _new_file(path: str) -> Iterator[IO[bytes]]:
    """A file that appears under its name, replacing what is there, when the block ends well."""
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            os.unlink(temporary)
