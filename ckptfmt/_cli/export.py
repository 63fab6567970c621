"""The commands that write a file about a checkpoint: ``export`` and ``report``."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import IO, Any, Final

from ckptfmt._cli.arguments import Arguments, WrongUsage
from ckptfmt._cli.output import Output, complain
from ckptfmt._cli.output_file import STDOUT, is_stdout, outfile
from ckptfmt._cli.progress import bytes_to_read, metered, opened
from ckptfmt._cli.reading import chosen
from ckptfmt._read.columns import arrow_schema, batches, json_line, library
from ckptfmt._read.participant import ParticipantCheckpoint
from ckptfmt._show.html_report import make_page
from ckptfmt._text import count_text, size_text

_FORMATS: Final = {
    "": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
"""The format for each suffix of a file's name; standard output has none."""


def export(arguments: Arguments, output: Output) -> int:
    """Write records as a table, one row each, to a file or to standard output."""
    path = arguments.output or STDOUT
    as_parquet = (arguments.format or _format_of(path)) == "parquet"
    to_stdout = is_stdout(path)
    if as_parquet and to_stdout:
        raise WrongUsage("ckptfmt export", "parquet is written to a file; name it with --output")
    with metered("export", hidden=to_stdout and sys.stdout.isatty()) as meter:
        checkpoint = opened(arguments.url, meter)
        names = list(checkpoint) if arguments.participant is None else [arguments.participant]
        parts = [chosen(checkpoint, name) for name in names]
        meter.expect(sum(part.manifest.bytes for part in parts))
        with outfile(path) as file:
            count = _write_parquet(parts, file) if as_parquet else _write_lines(parts, file)
    if not to_stdout:
        output.line(f"{path}: {count_text(count, 'record')}{_size_of(path)}")
    output.result({"records": count, "output": None if to_stdout else path})
    return 0


def report(arguments: Arguments, output: Output) -> int:
    """Write an HTML page about a checkpoint."""
    path = arguments.output
    assert path is not None
    with metered("report") as meter:
        checkpoint = opened(arguments.url, meter)
        meter.expect(bytes_to_read(checkpoint))
        with outfile(path) as file:
            page = make_page(checkpoint)
            data = page.html.encode()
            file.write(data)
    for problem in page.problems:
        complain(f"ckptfmt report: {problem.message}")
    if not is_stdout(path):
        output.line(f"{path}: {size_text(len(data))}")
    output.result(
        {
            "output": None if is_stdout(path) else path,
            "bytes": len(data),
            "problems": [asdict(each) for each in page.problems],
        }
    )
    return 1 if page.problems else 0


def _format_of(path: str) -> str:
    ending = os.path.splitext(path)[1].lower()
    if ending not in _FORMATS:
        raise WrongUsage(
            "ckptfmt export",
            f"{path}: there is no table format for this suffix; use .jsonl or .parquet, or add --format",
        )
    return _FORMATS[ending]


def _size_of(path: str) -> str:
    """The size of a regular file as text; empty for a device or a FIFO, which has no size."""
    return f", {size_text(os.path.getsize(path))}" if os.path.isfile(path) else ""


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
