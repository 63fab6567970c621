"""What a notebook shows of a checkpoint, a participant or a run. Ids are data: everything is escaped.

Nothing beyond ``checkpoint.json`` and the manifests is read for it.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ckptfmt.display import (
    LISTING_COLUMNS,
    count_text,
    leftovers_text,
    listing_rows,
    printable,
    run_text,
    size_text,
)
from ckptfmt.errors import CheckpointError

if TYPE_CHECKING:
    from ckptfmt.checkpoint import Checkpoint
    from ckptfmt.listing import Listing
    from ckptfmt.participant import ParticipantCheckpoint
    from ckptfmt.stored import StoredRecord

_MOST_ROWS: Final = 100


def escaped(value: object) -> str:
    """A value as text of an HTML page: no markup, nothing that changes the direction of the text."""
    return html.escape("" if value is None else printable(str(value)))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table; numbers stand to the right."""
    head = "".join(f"<th>{escaped(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    style = ' style="text-align:right"' if isinstance(value, int) else ""
    return f"<td{style}>{escaped(value)}</td>"


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
    shown = table(("participant", "kind", "records", "size", "problem"), rows[:_MOST_ROWS])
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
        ("boundary", record.boundary),
        ("schema", record.schema),
        ("references", ", ".join(record.references)),
        ("payload", size_text(record.size)),
    ]
    return table(("record", ""), rows)


def listing_html(listing: Listing) -> str:
    left = f"<div>{escaped(leftovers_text(listing))}</div>" if listing.leftovers else ""
    return (
        f"<div><b>Run</b> <code>{escaped(listing.url)}</code><br>{run_text(listing)}</div>"
        f"{table(LISTING_COLUMNS, listing_rows(listing))}{left}"
    )
