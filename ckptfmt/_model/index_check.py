"""The check that the rows of a whole index match the manifest, without overlaps and without gaps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from ckptfmt._errors import Damaged, InvalidId
from ckptfmt._identity import rollouts_of
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.manifest import Manifest, Segment


def check_layout(rows: Rows, manifest: Manifest, file: str) -> None:
    """Check all ``rows`` (sorted by place) of the index ``file`` against its manifest.

    After the check, lines tile their frames, frames tile their segments, and each rollout occurs once. Raises
    :class:`Damaged`.
    """
    if len(rows) != manifest.records:
        raise _damaged(file, f"it has {len(rows)} rows, not {manifest.records} as the manifest says")
    for number, segment, part in rows_by_segment(rows, manifest):
        if len(part) != segment.records or part.segment[0] != number or part.segment[-1] != number:
            raise _damaged(
                file, f"it does not have {segment.records} rows in segment {number}, as the manifest says"
            )
        tiles = _lines_tile if segment.codec == "none" else _frames_tile
        if not tiles(part, segment):
            raise _damaged(file, f"its rows in segment {number} overlap, leave gaps or leave the segment")
    _check_rollouts(rows.episode, file)


def rows_by_segment(rows: Rows, manifest: Manifest) -> Iterator[tuple[int, Segment, Rows]]:
    """Yield each segment with its number and its rows; ``rows`` must be sorted by place."""
    first = 0
    for number, segment in enumerate(manifest.segments):
        yield number, segment, rows.cut(first, first + segment.records)
        first += segment.records


def _lines_tile(rows: Rows, segment: Segment) -> bool:
    """Whether uncompressed lines tile their segment: each line is a frame of its own."""
    ends = list(accumulate(rows.length))
    return (
        rows.stored == rows.length
        and not any(rows.start)
        and rows.offset.tolist() == [0, *ends[:-1]]
        and ends[-1] == segment.stored
    )


def _frames_tile(rows: Rows, segment: Segment) -> bool:
    """Whether the rows tile compressed frames, and the frames their segment.

    The content size of a frame is compared when the frame is decompressed.
    """
    offset = stored = plain = total = 0
    places = zip(rows.offset, rows.stored, rows.start, rows.length, strict=True)
    for row_offset, row_stored, start, length in places:
        if start == 0:  # a frame begins
            offset, stored, total, plain = offset + stored, row_stored, total + plain, 0
        if row_offset != offset or row_stored != stored or start != plain:
            return False
        plain += length
    return offset + stored == segment.stored and total + plain == segment.plain


def _check_rollouts(keys: list[str], file: str) -> None:
    try:
        rollouts = rollouts_of(keys)
    except InvalidId as error:
        raise _damaged(file, f"a row's episode is not a capture key: {error}") from None
    if len(set(rollouts)) == len(rollouts):
        return
    seen: set[str] = set()
    for key, rollout in zip(keys, rollouts, strict=True):
        if rollout in seen:
            raise Damaged(f"{file}: rollout {rollout} has two records", file=file, episode=key)
        seen.add(rollout)


def _damaged(file: str, problem: str) -> Damaged:
    return Damaged(f"{file}: {problem}", file=file)
