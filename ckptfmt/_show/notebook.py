"""The displays of checkpoints, participants, records, runs, reports and differences in a notebook.

A display reads at most ``checkpoint.json`` and the manifests.
"""

from __future__ import annotations

from typing import Final

from ckptfmt._display import html_of
from ckptfmt._errors import BadCheckpoint
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint
from ckptfmt._read.report import Report
from ckptfmt._read.stored_record import StoredRecord
from ckptfmt._run.listing import Listing
from ckptfmt._show.differences import CheckpointDiff
from ckptfmt._show.html import escaped, facts_table, preformatted, table
from ckptfmt._show.tables import listing_table, orphans_text, run_text
from ckptfmt._text import count_text, size_text

_MAX_ROWS: Final = 100


def participant_rows(checkpoint: Checkpoint) -> list[tuple[object, ...]]:
    """Name, kind, number of records, size and problem of each participant, from the manifests."""
    rows: list[tuple[object, ...]] = []
    for name in checkpoint:
        try:
            part = checkpoint[name]
        except BadCheckpoint as error:
            rows.append((name, None, None, None, str(error)))
        else:
            rows.append((name, part.kind, len(part), size_text(part.manifest.bytes), None))
    return rows


@html_of.register
def checkpoint_html(checkpoint: Checkpoint) -> str:
    """A checkpoint: its facts and a table of participants."""
    body = checkpoint.body
    facts = [count_text(len(checkpoint), "participant")]
    if body is None:
        facts.append("without checkpoint.json")
    else:
        facts = [
            f"id {body.checkpoint_id}",
            f"sequence {body.sequence}",
            *facts,
            count_text(len(body.episodes), "episode"),
            count_text(len(body.restarts), "restart"),
            "complete",
        ]
    rows = participant_rows(checkpoint)
    columns: tuple[str, ...] = ("participant", "kind", "records", "size", "problem")
    if all(row[-1] is None for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    rows_html = table(columns, rows[:_MAX_ROWS])
    more = f"<div>and {len(rows) - _MAX_ROWS} more</div>" if len(rows) > _MAX_ROWS else ""
    return (
        f"<div><b>Checkpoint</b> <code>{escaped(checkpoint.url)}</code><br>{escaped(', '.join(facts))}</div>"
        f"{rows_html}{more}"
    )


@html_of.register
def participant_html(part: ParticipantCheckpoint) -> str:
    """A participant: its facts and a table of segments."""
    manifest = part.manifest
    rows_html = table(
        ("segment", "codec", "records", "stored", "plain"),
        [
            (each.file, each.codec, each.records, size_text(each.stored), size_text(each.plain))
            for each in manifest.segments[:_MAX_ROWS]
        ],
    )
    facts = [
        part.kind,
        f"checkpoint {manifest.checkpoint_id}",
        count_text(len(part), "record"),
        size_text(manifest.bytes),
    ]
    summary = escaped(", ".join(facts))
    return f"<div><b>Participant</b> <code>{escaped(part.name)}</code><br>{summary}</div>{rows_html}"


@html_of.register
def record_html(record: StoredRecord) -> str:
    """A record: its envelope and its size."""
    rows: list[tuple[str, object]] = [
        ("episode", record.episode),
        ("boundary", "none" if record.boundary is None else record.boundary),
        ("schema", record.schema),
        ("references", ", ".join(record.references) or None),
        ("payload", size_text(record.size)),
    ]
    return facts_table(rows)


@html_of.register
def listing_html(listing: Listing) -> str:
    """A run: a table of checkpoints, and a line about the orphans."""
    columns, rows, reasons = listing_table(listing)
    if any(reason is not None for reason in reasons):
        columns += ("reason",)
        rows = [(*row, reason) for row, reason in zip(rows, reasons, strict=True)]
    orphans = f"<div>{escaped(orphans_text(listing))}</div>" if listing.orphans else ""
    return (
        f"<div><b>Run</b> <code>{escaped(listing.url)}</code><br>{run_text(listing)}</div>"
        f"{table(columns, rows)}{orphans}"
    )


@html_of.register
def report_html(report: Report) -> str:
    """A verification report: a table of problems."""
    complete = "" if report.complete else "; there is no checkpoint.json, so the checkpoint is not complete"
    if report.ok:
        return f"<div><b>Report</b> every byte is what was written{complete}</div>"
    rows = [(each.file, each.code, each.message) for each in report.problems]
    more = f"<div>and {len(rows) - _MAX_ROWS} more</div>" if len(rows) > _MAX_ROWS else ""
    summary = f"{count_text(len(rows), 'problem')}{complete}"
    return f"<div><b>Report</b> {summary}</div>{table(('file', 'code', 'problem'), rows[:_MAX_ROWS])}{more}"


@html_of.register
def diff_html(diff: CheckpointDiff) -> str:
    """The differences between two checkpoints as text."""
    return preformatted(repr(diff))
