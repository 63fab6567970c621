"""The commands that only read: ``ls``, ``show``, ``cat``, ``verify`` and ``diff``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any, Final

from ckptfmt._cli.arguments import Arguments
from ckptfmt._cli.output import Output, complain
from ckptfmt._cli.progress import Meter, bytes_to_read, counted, metered, opened
from ckptfmt._errors import BadCheckpoint, InvalidId, NotFound, StoreError, Unsupported
from ckptfmt._identity import EpisodeId
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._model.names import CHECKPOINT_FILE
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.opening import find_checkpoint, open_checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint
from ckptfmt._read.report import Problem, Report
from ckptfmt._run.listing import check_files, list_store
from ckptfmt._run.orphans import orphans_of_checkpoint
from ckptfmt._show.diff import diff as compare_checkpoints
from ckptfmt._show.tables import listing_table, orphans_text
from ckptfmt._text import count_text, size_text
from ckptfmt.stores import choose_store

_NOT_COMPLETE: Final = f"there is no {CHECKPOINT_FILE}: it is not complete"
_MOST_NAMES: Final = 20


def chosen(checkpoint: Checkpoint, name: str) -> ParticipantCheckpoint:
    """The participant ``name``. Raises :class:`NotFound`, which lists the participants that exist."""
    if name not in checkpoint:
        names = list(checkpoint)
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        raise NotFound(
            f"{checkpoint.url}: there is no participant {ascii(name)[:200]}; "
            f"there are: {', '.join(names[:_MOST_NAMES])}{more}"
        )
    return checkpoint[name]


def ls(arguments: Arguments, output: Output) -> int:
    """List the checkpoints of a run, the participants of a checkpoint, or the records of a participant."""
    try:
        checkpoint = open_checkpoint(arguments.url)
    except (NotFound, StoreError) as error:
        if arguments.participant is not None:
            raise
        try:
            return _ls_run(arguments, output)
        except NotFound:
            if isinstance(error, StoreError):  # a checkpoint that cannot be read, not an empty run
                raise error from None
            raise
    if arguments.participant is not None:
        return _ls_participant(chosen(checkpoint, arguments.participant), output)
    return _ls_checkpoint(checkpoint, output)


def _ls_run(arguments: Arguments, output: Output) -> int:
    listing = list_store(choose_store(arguments.url), with_unreadable=True)
    if not listing and not listing.orphans:
        raise NotFound(f"{arguments.url}: there is no checkpoint here or directly below")
    output.table(*listing_table(listing))
    if listing.orphans:
        output.line(orphans_text(listing))
    output.result(
        {
            "url": listing.url,
            "checkpoints": [asdict(each) for each in listing],
            "lives": [asdict(each) for each in listing.lives],
            "orphans": [asdict(each) for each in listing.orphans],
        }
    )
    for each in listing:
        if each.state in ("broken", "unreadable"):
            complain(f"ckptfmt ls: {each.name} is {each.state}: {each.reason}")
    states = {each.state for each in listing}
    return 2 if "unreadable" in states else 1 if "broken" in states else 0


def _participants(checkpoint: Checkpoint, command: str) -> tuple[list[dict[str, Any]], int]:
    """One row for each participant, and the exit status.

    A damaged participant is reported, and the others are listed all the same.
    """
    rows: list[dict[str, Any]] = []
    status = 0
    for name in checkpoint:
        row: dict[str, Any] = {"name": name, "kind": None, "records": None, "bytes": None, "problem": None}
        try:
            part = checkpoint[name]
            row.update(kind=part.kind, records=len(part), bytes=part.manifest.bytes, manifest=part.digest)
            check_files(checkpoint.layout.participant(name), part.manifest)
        except BadCheckpoint as error:
            row["problem"] = {"code": error.code, "message": str(error)}
            complain(f"ckptfmt {command}: {error}")
            status = 1
        rows.append(row)
    return rows, status


def _ls_checkpoint(checkpoint: Checkpoint, output: Output) -> int:
    rows, status = _participants(checkpoint, "ls")
    _participants_table(rows, output)
    if checkpoint.body is None:
        output.line(_NOT_COMPLETE)
    complete = checkpoint.body is not None and not status
    output.result({"url": checkpoint.url, "complete": complete, "participants": rows})
    return status


def _participants_table(rows: list[dict[str, Any]], output: Output) -> None:
    output.table(
        ("participant", "kind", "records", "size"),
        [
            (
                *(row["name"], row["kind"], row["records"]),
                None if row["bytes"] is None else size_text(row["bytes"]),
            )
            for row in rows
        ],
        [row["problem"] and row["problem"]["message"] for row in rows],
    )


def _ls_participant(part: ParticipantCheckpoint, output: Output) -> int:
    """List the records of a participant from its index; no record is read."""
    index = part.index
    rows = list(zip(index.episode, index.boundary, index.length, strict=True))
    output.table(("episode", "boundary", "bytes"), rows)
    names = ("episode", "boundary", "bytes")
    output.result({"participant": part.name, "records": [dict(zip(names, row, strict=True)) for row in rows]})
    return 0


def show(arguments: Arguments, output: Output) -> int:
    """Describe a checkpoint, or one of its participants."""
    checkpoint = open_checkpoint(arguments.url)
    if arguments.participant is not None:
        return _show_participant(chosen(checkpoint, arguments.participant), output)
    rows, status = _participants(checkpoint, "show")
    facts: dict[str, Any] = {
        "url": checkpoint.url,
        "complete": checkpoint.body is not None and not status,
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
    """Print stored records, one line of JSON each."""
    with metered("cat", hidden=sys.stdout.isatty()) as meter:
        checkpoint = opened(arguments.url, meter)
        if arguments.participant is not None and arguments.episode is not None:
            part = chosen(checkpoint, arguments.participant)
            output.stored(part.line(_episode(arguments.episode)))
            count = 1
        else:
            names = list(checkpoint) if arguments.participant is None else [arguments.participant]
            parts = [chosen(checkpoint, name) for name in names]
            meter.expect(sum(part.manifest.bytes for part in parts))
            count = _print_lines(parts, output)
    output.result({"records": count})
    return 0


def _episode(key: str) -> EpisodeId:
    try:
        return EpisodeId.from_capture_key(key)
    except InvalidId:
        raise InvalidId(
            f"{ascii(key)[:200]} is not a capture key, such as 17-0 or 17-0-a1; "
            "ckptfmt ls CHECKPOINT PARTICIPANT lists the capture keys"
        ) from None


def _print_lines(parts: list[ParticipantCheckpoint], output: Output) -> int:
    count = 0
    for part in parts:
        for line in part.lines():
            output.stored(line)
            count += 1
    return count


def verify(arguments: Arguments, output: Output) -> int:
    """Read and check every byte of a checkpoint."""
    with metered("verify") as meter:
        report = _verified(arguments.url, meter)
    if not report.ok:
        output.table(
            ("file", "code", "problem"), [(each.file, each.code, each.message) for each in report.problems]
        )
        complain(f"ckptfmt verify: {arguments.url}: {_problems_text(report)}")
    else:
        said = "" if report.complete else f"; {_NOT_COMPLETE}"
        output.line(f"{arguments.url}: every byte is what was written{said}")
        _list_orphans(arguments.url, output)
        if not report.complete and not arguments.incomplete_ok:
            complain(
                f"ckptfmt verify: {arguments.url}: {_NOT_COMPLETE}, or the file is lost; restore from "
                "another checkpoint or copy, or add --incomplete-ok if the file is not expected"
            )
    output.result(
        {
            "ok": report.ok,
            "complete": report.complete,
            "problems": [asdict(each) for each in report.problems],
        }
    )
    return 0 if report.ok and (report.complete or arguments.incomplete_ok) else 1


def _problems_text(report: Report) -> str:
    first = report.problems[0]
    text = f"{count_text(len(report.problems), 'problem')}; the first: {first.message}"
    if all(each.code == Unsupported.code for each in report.problems):
        return text  # the message itself says what can read it
    return f"{text}; restore from another checkpoint or copy"


def _verified(url: str, meter: Meter) -> Report:
    """As :func:`ckptfmt.verify`, with progress."""
    try:
        checkpoint = find_checkpoint(counted(choose_store(url), meter.add), DEFAULT_LIMITS)
        meter.expect(bytes_to_read(checkpoint))
    except BadCheckpoint as error:
        return Report([Problem.of(error, CHECKPOINT_FILE)])
    return checkpoint.verify()


def _list_orphans(url: str, output: Output) -> None:
    """List the files that belong to nothing: they are not damage, but a reader may ask what they are."""
    store = choose_store(url)
    body = find_checkpoint(store, DEFAULT_LIMITS).body
    if body is not None:
        for each in orphans_of_checkpoint(store, "", body, readable=True):
            output.line(
                f"{each.path}: {size_text(each.size)}, {each.reason}; ckptfmt prune of the run removes it"
            )


def diff(arguments: Arguments, output: Output) -> int:
    """Show the records that differ between two checkpoints."""
    with metered("diff") as meter:
        left, right = opened(arguments.url, meter), opened(arguments.other, meter)
        meter.expect(bytes_to_read(left) + bytes_to_read(right))
        found = compare_checkpoints(left, right)
    for line in str(found).split("\n"):
        output.line(line)
    output.result(found.to_json())
    return 0 if found.is_same else 1
