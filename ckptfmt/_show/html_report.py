"""The HTML report of one checkpoint: one file, without scripts and without network access.

Every record is read and verified once. Only the sizes of the payloads are kept.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ckptfmt._errors import BadCheckpoint
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.report import Problem
from ckptfmt._show.html import cell, escaped, facts_table, table, table_head
from ckptfmt._show.tables import right_columns
from ckptfmt._text import count_text, fraction_text, size_text

_MAX_ROWS: Final = 20
_MAX_BARS: Final = 60
_MAX_RESTARTS: Final = 500

_STYLE: Final = """
:root { color-scheme: light dark; --bar: #4a7fb5; --line: #999; --good: #1d6b2f; --bad: #a11; }
@media (prefers-color-scheme: dark) { :root { --line: #777; --good: #7bc98c; --bad: #ff8a80; } }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; } h1, p { overflow-wrap: anywhere; }
section { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .2em 1.2em .2em 0; vertical-align: top; font-weight: normal; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; }
.bars table { width: 100%; } .bars td:last-child { width: 100%; min-width: 6em; padding-right: 0; }
.bar { background: var(--bar); height: .8em; margin-top: .35em; min-width: 1px; }
.good { color: var(--good); } .bad { color: var(--bad); }
"""


class Page(NamedTuple):
    """The page, and the problems that it lists. There are none when every record is what was written."""

    html: str
    problems: list[Problem]


@dataclass
class _ParticipantStatistics:
    """The statistics of one participant. Sizes are in bytes."""

    name: str
    kind: str | None = None
    records: int = 0
    stored: int = 0
    plain: int = 0
    problem: Problem | None = None


@dataclass
class _Statistics:
    """The statistics of one pass over all records."""

    participants: list[_ParticipantStatistics] = field(default_factory=list)
    boundaries: dict[str, int | None] = field(default_factory=dict)
    """Episode to its highest boundary in any participant."""
    sizes: Counter[str] = field(default_factory=Counter)
    """Episode to the bytes of its payloads in all participants."""
    largest: list[tuple[int, str, str]] = field(default_factory=list)
    """Size, episode and participant of the largest records: a heap."""

    @property
    def problems(self) -> list[Problem]:
        """The first problem of each damaged participant."""
        return [each.problem for each in self.participants if each.problem is not None]


def html_report(checkpoint: Checkpoint) -> str:
    """Make an HTML report of a checkpoint: one file, without scripts and without network access.

    Every record is read and verified.

    Args:
        checkpoint: The checkpoint.

    Returns:
        The page as HTML. It lists what is damaged or missing.

    Raises:
        StoreError: The store failed.

    Example:
        ::

            page = ckptfmt.html_report(ckptfmt.open("run/step-1200"))
            pathlib.Path("report.html").write_text(page, encoding="utf-8")
    """
    return make_page(checkpoint).html


def make_page(checkpoint: Checkpoint) -> Page:
    """The page, and the first problem of each participant. Raises :class:`StoreError`."""
    statistics = _collect_statistics(checkpoint)
    title = f"Checkpoint {checkpoint.body.checkpoint_id if checkpoint.body else checkpoint.url}"
    sections = [
        f"<h1>{escaped(title)}</h1>",
        _facts(checkpoint, statistics),
        _section("Sizes by participant", _participants(statistics)),
        _section("Episodes by boundary", _by_boundary(statistics)),
        _section("Oldest episodes", _oldest(statistics), "Those with the highest boundaries."),
        _section("Largest episodes", _largest_episodes(statistics), "Bytes of payload in all participants."),
        _section("Largest records", _largest_records(statistics)),
        _section("Restarts", _restarts(checkpoint), "Rollouts that no participant saved. They start over."),
    ]
    html = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escaped(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )
    return Page(html, statistics.problems)


def _collect_statistics(checkpoint: Checkpoint) -> _Statistics:
    statistics = _Statistics()
    for name in checkpoint:
        found = _ParticipantStatistics(name)
        statistics.participants.append(found)
        try:
            part = checkpoint[name]
            found.kind, found.records, found.stored = part.kind, len(part), part.manifest.bytes
            found.plain = sum(segment.plain for segment in part.manifest.segments)
            for record in part:
                _add_record(statistics, name, record.episode.capture_key, record.boundary, record.size)
        except BadCheckpoint as error:
            found.problem = Problem.of(error, name)
    return statistics


def _add_record(statistics: _Statistics, name: str, key: str, boundary: int | None, size: int) -> None:
    before = statistics.boundaries.get(key)
    if key not in statistics.boundaries or (boundary is not None and (before is None or boundary > before)):
        statistics.boundaries[key] = boundary
    statistics.sizes[key] += size
    heapq.heappush(statistics.largest, (size, key, name))
    if len(statistics.largest) > _MAX_ROWS:
        heapq.heappop(statistics.largest)


def _section(title: str, content: str, note: str = "") -> str:
    summary = f"<p>{escaped(note)}</p>" if note else ""
    return f"<section><h2>{escaped(title)}</h2>{summary}{content}</section>"


def _facts(checkpoint: Checkpoint, statistics: _Statistics) -> str:
    body = checkpoint.body
    rows: list[tuple[str, object]] = [("url", checkpoint.url)]
    if body is not None:
        rows += [("sequence", body.sequence), ("cut", checkpoint.cut), ("digest", body.digest)]
    rows += [
        ("participants", len(checkpoint)),
        ("records", sum(each.records for each in statistics.participants)),
        ("episodes", len(statistics.boundaries)),
        ("stored", size_text(sum(each.stored for each in statistics.participants))),
    ]
    if body is None:
        rows.append(("state", "without checkpoint.json"))
    problems = statistics.problems
    if not problems:
        summary = '<p class="good">Every record was read and is what was written.</p>'
    else:
        count = count_text(len(problems), "participant is", "participants are")
        summary = (
            f'<p class="bad">{count} damaged: {escaped("; ".join(each.message for each in problems))}</p>'
        )
    return summary + facts_table(rows)


def _participants(statistics: _Statistics) -> str:
    whole = sum(each.stored for each in statistics.participants)
    ordered = sorted(statistics.participants, key=lambda each: (-each.stored, each.name))
    return _bar_chart(
        ("participant", "kind", "records", "stored", "plain", "share"),
        (
            (
                (
                    *(each.name, each.kind, each.records, size_text(each.stored), size_text(each.plain)),
                    fraction_text(each.stored, whole),
                ),
                each.stored,
            )
            for each in ordered
        ),
    )


def _by_boundary(statistics: _Statistics) -> str:
    counts = Counter(statistics.boundaries.values())
    none = counts.pop(None, 0)
    numbers = sorted(boundary for boundary in counts if boundary is not None)
    width = 1 if not numbers else -(-(numbers[-1] - numbers[0] + 1) // _MAX_BARS)
    groups: Counter[int] = Counter()
    for boundary in numbers:
        groups[boundary // width] += counts[boundary]
    rows: list[tuple[tuple[object, ...], int]] = [(("none: from its input", none), none)] if none else []
    for group in sorted(groups):
        first = group * width
        name = str(first) if width == 1 else f"{first} to {first + width - 1}"
        rows.append(((name, groups[group]), groups[group]))
    return _bar_chart(("boundary", "episodes"), rows) if rows else "<p>No episodes.</p>"


def _oldest(statistics: _Statistics) -> str:
    ordered = heapq.nsmallest(
        _MAX_ROWS,
        statistics.boundaries.items(),
        key=lambda pair: (-1 if pair[1] is None else -pair[1] - 2, pair[0]),
    )
    return table(
        ("episode", "boundary", "size"),
        [(key, boundary, size_text(statistics.sizes[key])) for key, boundary in ordered],
    )


def _largest_episodes(statistics: _Statistics) -> str:
    ordered = heapq.nsmallest(_MAX_ROWS, statistics.sizes.items(), key=lambda pair: (-pair[1], pair[0]))
    return _bar_chart(
        ("episode", "boundary", "size"),
        (((key, statistics.boundaries[key], size_text(size)), size) for key, size in ordered),
    )


def _largest_records(statistics: _Statistics) -> str:
    ordered = sorted(statistics.largest, key=lambda each: (-each[0], each[1], each[2]))
    return table(
        ("episode", "participant", "size"), [(key, name, size_text(size)) for size, key, name in ordered]
    )


def _restarts(checkpoint: Checkpoint) -> str:
    restarts = checkpoint.restarts
    if not restarts:
        return "<p>None.</p>"
    more = f"<p>and {len(restarts) - _MAX_RESTARTS} more</p>" if len(restarts) > _MAX_RESTARTS else ""
    return f"<p>{len(restarts)}: {escaped(', '.join(restarts[:_MAX_RESTARTS]))}</p>{more}"


def _bar_chart(columns: Sequence[str], rows: Iterable[tuple[Sequence[object], int]]) -> str:
    """A table whose last column is a bar. Its length is proportional to the number of the row."""
    listed = list(rows)
    longest = max((number for _, number in listed), default=0)
    return '<div class="bars">' + "".join(_bar_table(columns, listed, longest)) + "</div>"


def _bar_table(
    columns: Sequence[str], rows: Sequence[tuple[Sequence[object], int]], longest: int
) -> Iterator[str]:
    right = right_columns(columns, [cells for cells, _ in rows])
    yield f"<table>{table_head((*columns, ''), (*right, False))}<tbody>"
    for cells, number in rows:
        width = 100 * number / longest if longest else 0
        shown = "".join(cell("td", value, at) for value, at in zip(cells, right, strict=True))
        yield f'<tr>{shown}<td><div class="bar" style="width:{width:.1f}%"></div></td></tr>'
    yield "</tbody></table>"
