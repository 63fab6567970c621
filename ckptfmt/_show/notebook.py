"""What a notebook shows of a checkpoint, a participant or a run. Ids are data: everything is escaped.

Nothing beyond ``checkpoint.json`` and the manifests is read for it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ckptfmt._errors import CheckpointError
from ckptfmt._text import (
    count_text,
    leftovers_text,
    listing_table,
    printable,
    right_columns,
    run_text,
    size_text,
)

if TYPE_CHECKING:
    from ckptfmt._read.checkpoint import Checkpoint
    from ckptfmt._read.participant import ParticipantCheckpoint
    from ckptfmt._read.report import Report
    from ckptfmt._read.stored_record import StoredRecord
    from ckptfmt._run.listing import Listing

_MOST_ROWS: Final = 100
_LONGEST_NAME: Final = 28
_WRAPPED: Final = "min-width:14em;overflow-wrap:anywhere"


def escaped(value: object) -> str:
    """A value as text of an HTML page: no markup, nothing that changes the direction of the text."""
    return html.escape("" if value is None else printable(str(value)))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table; columns of numbers stand to the right."""
    listed = list(rows)
    right = right_columns(columns, listed)
    body = "".join(
        f"<tr>{''.join(cell('td', value, at) for value, at in zip(row, right, strict=True))}</tr>"
        for row in listed
    )
    return f"<table>{table_head(columns, right)}<tbody>{body}</tbody></table>"


def facts_table(rows: Iterable[tuple[str, object]]) -> str:
    """An HTML table of names and values; what is None is left out."""
    body = "".join(
        f"<tr>{cell('th', name, False)}{cell('td', value, False)}</tr>"
        for name, value in rows
        if value is not None
    )
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def table_head(columns: Sequence[str], right: Sequence[bool]) -> str:
    """The head of a table; ``right`` says which columns stand to the right."""
    cells = "".join(cell("th", name, at) for name, at in zip(columns, right, strict=True))
    return f"<thead><tr>{cells}</tr></thead>"


def cell(tag: str, value: object, right: bool) -> str:
    """One cell. A notebook has styles of its own for tables, so each says where it stands, and where it may
    break: a name or a number nowhere, a long text anywhere, since a digest fits no column."""
    text = escaped(value)
    wraps = _WRAPPED if len(text) > _LONGEST_NAME else "white-space:nowrap"
    return f'<{tag} style="text-align:{"right" if right else "left"};{wraps}">{text}</{tag}>'


def preformatted(text: str) -> str:
    """Text as it is."""
    return f"<pre>{html.escape(text)}</pre>"


def participant_rows(checkpoint: Checkpoint) -> list[tuple[object, ...]]:
    """Name, kind, records, size and problem of each participant, from the manifests."""
    rows: list[tuple[object, ...]] = []
    for name in checkpoint:
        try:
            part = checkpoint[name]
        except CheckpointError as error:
            rows.append((name, None, None, None, str(error)))
        else:
            rows.append((name, part.kind, len(part), size_text(part.manifest.bytes), None))
    return rows


def checkpoint_html(checkpoint: Checkpoint) -> str:
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
    shown = table(columns, rows[:_MOST_ROWS])
    more = f"<div>and {len(rows) - _MOST_ROWS} more</div>" if len(rows) > _MOST_ROWS else ""
    return (
        f"<div><b>Checkpoint</b> <code>{escaped(checkpoint.url)}</code><br>{escaped(', '.join(facts))}</div>"
        f"{shown}{more}"
    )


def participant_html(part: ParticipantCheckpoint) -> str:
    manifest = part.manifest
    shown = table(
        ("segment", "codec", "records", "stored", "plain"),
        [
            (each.file, each.codec, each.records, size_text(each.stored), size_text(each.plain))
            for each in manifest.segments[:_MOST_ROWS]
        ],
    )
    facts = [
        part.kind,
        f"checkpoint {manifest.checkpoint_id}",
        count_text(len(part), "record"),
        size_text(manifest.bytes),
    ]
    said = escaped(", ".join(facts))
    return f"<div><b>Participant</b> <code>{escaped(part.name)}</code><br>{said}</div>{shown}"


def record_html(record: StoredRecord) -> str:
    rows: list[tuple[str, object]] = [
        ("episode", record.episode),
        ("boundary", "none" if record.boundary is None else record.boundary),
        ("schema", record.schema),
        ("references", ", ".join(record.references) or None),
        ("payload", size_text(record.size)),
    ]
    return facts_table(rows)


def listing_html(listing: Listing) -> str:
    columns, rows, reasons = listing_table(listing)
    if any(reason is not None for reason in reasons):
        columns += ("reason",)
        rows = [(*row, reason) for row, reason in zip(rows, reasons, strict=True)]
    left = f"<div>{escaped(leftovers_text(listing))}</div>" if listing.leftovers else ""
    return (
        f"<div><b>Run</b> <code>{escaped(listing.url)}</code><br>{run_text(listing)}</div>"
        f"{table(columns, rows)}{left}"
    )


def report_html(report: Report) -> str:
    complete = "" if report.complete else "; there is no checkpoint.json: it is not complete"
    if report.ok:
        return f"<div><b>Report</b> every byte is what was written{complete}</div>"
    rows = [(each.file, each.code, each.message) for each in report.problems]
    more = f"<div>and {len(rows) - _MOST_ROWS} more</div>" if len(rows) > _MOST_ROWS else ""
    said = f"{count_text(len(rows), 'problem')}{complete}"
    return f"<div><b>Report</b> {said}</div>{table(('file', 'code', 'problem'), rows[:_MOST_ROWS])}{more}"
