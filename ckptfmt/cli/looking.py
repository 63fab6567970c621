"""``ls``, ``show``, ``cat``, ``verify`` and ``diff``: they only look."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

from ckptfmt.checkpoint import Checkpoint, find_checkpoint, open_checkpoint
from ckptfmt.checkpointfile import CHECKPOINT_FILE
from ckptfmt.cli.arguments import Arguments
from ckptfmt.cli.output import Output
from ckptfmt.cli.progress import Meter, bytes_to_read, counted, metered
from ckptfmt.diff import diff as compare_checkpoints
from ckptfmt.display import LISTING_COLUMNS, leftovers_text, listing_rows, printable, size_text
from ckptfmt.errors import CheckpointError, NotFound, StoreError
from ckptfmt.leftovers import leftovers_of_checkpoint
from ckptfmt.limits import DEFAULT_LIMITS
from ckptfmt.listing import list_run
from ckptfmt.participant import ParticipantCheckpoint
from ckptfmt.report import Problem, Report
from ckptfmt.stores import choose_store


def ls(arguments: Arguments, output: Output) -> int:
    try:
        checkpoint = open_checkpoint(arguments.url)
    except NotFound:
        if arguments.participant is not None:
            raise
        return _ls_run(arguments, output)
    if arguments.participant is not None:
        return _ls_participant(checkpoint[arguments.participant], output)
    return _ls_checkpoint(checkpoint, output)


def _ls_run(arguments: Arguments, output: Output) -> int:
    listing = list_run(arguments.url)
    if not listing and not listing.leftovers:
        raise NotFound(f"{arguments.url}: there is no checkpoint here or directly below")
    output.table(LISTING_COLUMNS, listing_rows(listing))
    if listing.leftovers:
        output.line(leftovers_text(listing))
    output.result(
        {
            "url": arguments.url,
            "checkpoints": [asdict(each) for each in listing],
            "lives": [asdict(each) for each in listing.lives],
            "leftovers": [asdict(each) for each in listing.leftovers],
        }
    )
    broken = [each for each in listing if each.state == "broken"]
    for each in broken:
        sys.stderr.write(f"ckptfmt ls: {printable(each.name)} is broken: {printable(str(each.reason))}\n")
    return 1 if broken else 0


def _participants(checkpoint: Checkpoint, command: str) -> tuple[list[dict[str, Any]], int]:
    """One row for each participant, and the exit status: a damaged one is named, and does not hide the
    others."""
    rows: list[dict[str, Any]] = []
    status = 0
    for name in checkpoint:
        row: dict[str, Any] = {"name": name, "kind": None, "records": None, "bytes": None, "problem": None}
        try:
            part = checkpoint[name]
        except StoreError:
            raise
        except CheckpointError as error:
            row["problem"] = {"code": error.code, "message": str(error)}
            sys.stderr.write(f"ckptfmt {command}: {printable(str(error))}\n")
            status = 1
        else:
            row.update(kind=part.kind, records=len(part), bytes=part.manifest.bytes, manifest=part.digest)
        rows.append(row)
    return rows, status


def _ls_checkpoint(checkpoint: Checkpoint, output: Output) -> int:
    rows, status = _participants(checkpoint, "ls")
    _participants_table(rows, output)
    output.result({"url": checkpoint.url, "complete": checkpoint.body is not None, "participants": rows})
    return status


def _participants_table(rows: list[dict[str, Any]], output: Output) -> None:
    output.table(
        ("participant", "kind", "records", "size", "problem"),
        (
            (
                row["name"],
                row["kind"],
                row["records"],
                None if row["bytes"] is None else size_text(row["bytes"]),
                row["problem"] and row["problem"]["code"],
            )
            for row in rows
        ),
    )


def _ls_participant(part: ParticipantCheckpoint, output: Output) -> int:
    records = [
        {"episode": record.episode.capture_key, "boundary": record.boundary, "bytes": record.size}
        for record in part
    ]
    output.table(("episode", "boundary", "bytes"), (tuple(each.values()) for each in records))
    output.result({"participant": part.name, "records": records})
    return 0


def show(arguments: Arguments, output: Output) -> int:
    checkpoint = open_checkpoint(arguments.url)
    if arguments.participant is not None:
        return _show_participant(checkpoint[arguments.participant], output)
    rows, status = _participants(checkpoint, "show")
    facts: dict[str, Any] = {
        "url": checkpoint.url,
        "complete": checkpoint.body is not None,
        "id": None if status and checkpoint.body is None else checkpoint.id,
        "sequence": checkpoint.sequence,
        "cut": checkpoint.cut,
        "digest": checkpoint.digest,
        "episodes": None if checkpoint.body is None else len(checkpoint.episodes),
        "restarts": list(checkpoint.restarts),
        "marks": dict(checkpoint.marks),
    }
    for name, value in facts.items():
        output.line(f"{name:10} {_fact_text(value)}")
    _participants_table(rows, output)
    output.result({**facts, "participants": rows})
    return status


def _fact_text(value: object) -> str:
    match value:
        case None:
            return "-"
        case True:
            return "yes"
        case False:
            return "no"
        case dict():
            return (
                ", ".join(f"{rollout} up to attempt {attempt}" for rollout, attempt in value.items())
                or "none"
            )
        case list():
            return ", ".join(value) or "none"
    return str(value)


def _show_participant(part: ParticipantCheckpoint, output: Output) -> int:
    manifest = part.manifest
    facts: dict[str, Any] = {
        "participant": part.name,
        "kind": part.kind,
        "id": manifest.checkpoint_id,
        "records": manifest.records,
        "bytes": manifest.bytes,
        "manifest": part.digest,
        "index": manifest.index,
    }
    for name, value in facts.items():
        output.line(f"{name:11} {value}")
    segments = [asdict(segment) for segment in manifest.segments]
    output.table(
        ("segment", "codec", "records", "stored", "plain"),
        ((each.file, each.codec, each.records, each.stored, each.plain) for each in manifest.segments),
    )
    output.result({**facts, "segments": segments})
    return 0


def cat(arguments: Arguments, output: Output) -> int:
    checkpoint = open_checkpoint(arguments.url)
    count = 0
    if arguments.participant is not None and arguments.episode is not None:
        output.stored(checkpoint[arguments.participant].line(arguments.episode))
        count = 1
    else:
        names = list(checkpoint) if arguments.participant is None else [arguments.participant]
        for name in names:
            for line in checkpoint[name].lines():
                output.stored(line)
                count += 1
    output.result({"records": count})
    return 0


def verify(arguments: Arguments, output: Output) -> int:
    with metered("verify") as meter:
        report = _verified(arguments.url, meter)
    if not report.ok:
        output.table(
            ("file", "code", "problem"), ((each.file, each.code, each.message) for each in report.problems)
        )
        count = len(report.problems)
        first = report.problems[0].message
        sys.stderr.write(
            f"ckptfmt verify: {printable(arguments.url)}: {count} problem{'s' * (count != 1)}; the first: "
            f"{printable(first)}; restore from another checkpoint or copy\n"
        )
    else:
        output.line(f"{arguments.url}: every byte is what was written")
        _tell_leftovers(arguments.url, output)
    output.result({"ok": report.ok, "problems": [asdict(each) for each in report.problems]})
    return 0 if report.ok else 1


def _verified(url: str, meter: Meter) -> Report:
    """As :func:`ckptfmt.verify`, metered."""
    try:
        checkpoint = find_checkpoint(counted(choose_store(url), meter.add), DEFAULT_LIMITS)
        meter.expect(bytes_to_read(checkpoint))
    except (NotFound, StoreError):
        raise
    except CheckpointError as error:
        return Report([Problem.of(error, CHECKPOINT_FILE)])
    return checkpoint.verify()


def _tell_leftovers(url: str, output: Output) -> None:
    """A file too many is no damage, but somebody may wonder."""
    store = choose_store(url)
    body = find_checkpoint(store, DEFAULT_LIMITS).body
    if body is not None:
        for each in leftovers_of_checkpoint(store, "", body, readable=True):
            output.line(
                f"{each.path}: {size_text(each.size)}, {each.reason}; ckptfmt prune of the run removes it"
            )


def diff(arguments: Arguments, output: Output) -> int:
    found = compare_checkpoints(arguments.url, arguments.other)
    for line in str(found).split("\n"):
        output.line(line)
    output.result(found.to_json())
    return 0 if found.is_same else 1
