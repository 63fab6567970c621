"""Invalid indexes whose digests are correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from tools.vectors.broken import Broken
from tools.vectors.raw import LINES, Body, Draft, block, digest, drop, set_in, to_json

Rows = list[Body]


def _add(row: int, column: str, number: int) -> Callable[[Rows], None]:
    return lambda rows: rows[row].update({column: rows[row][column] + number})


def _swap_places(rows: Rows) -> None:
    for column in ("offset", "stored", "length", "crc32"):
        rows[0][column], rows[1][column] = rows[1][column], rows[0][column]


_ROWS: Final[dict[str, Callable[[Rows], Any]]] = {
    "outside-the-segment": _add(2, "offset", 1000),
    "far-outside-the-segment": set_in(2, "offset", to=2**62),
    "beyond-the-end": lambda rows: rows[2].update(stored=rows[2]["stored"] + 1, length=rows[2]["length"] + 1),
    "segment-outside": set_in(2, "segment", to=1),
    "overlap": lambda rows: rows[1].update(offset=rows[0]["offset"]),
    "gap": _add(1, "offset", 1),
    "row-missing": lambda rows: rows.pop(1),
    "row-twice": lambda rows: rows.insert(1, dict(rows[0])),
    "unsorted": lambda rows: rows.reverse(),
    "no-rows": lambda rows: rows.clear(),
    "crc-other": _add(1, "crc32", 1),
    "crc-too-large": set_in(1, "crc32", to=2**32),
    "boundary-other": set_in(0, "boundary", to=5),
    "boundary-null": set_in(0, "boundary", to=None),
    "boundary-float": set_in(0, "boundary", to=4.0),
    "boundary-true": set_in(0, "boundary", to=True),
    "boundary-negative": set_in(0, "boundary", to=-1),
    "boundary-2-63": set_in(0, "boundary", to=2**63),
    "episode-other": set_in(1, "episode", to="17-2"),
    "episode-no-key": set_in(1, "episode", to="17-1-a1-a2"),
    "episode-number": set_in(1, "episode", to=1),
    "places-swapped": _swap_places,
    "start-not-zero": set_in(1, "start", to=1),
    "stored-not-length": _add(1, "stored", 1),
    "length-zero": set_in(1, "length", to=0),
    "offset-true": set_in(0, "offset", to=False),
}

_PLAIN_TEXT: Final[dict[str, Callable[[bytes], bytes]]] = {
    "column-missing": lambda text: text.replace(b'"start":[0,0,0],', b""),
    "column-short": lambda text: text.replace(b'"start":[0,0,0]', b'"start":[0,0]'),
    "column-twice": lambda text: text.replace(b'"start":[0,0,0]', b'"start":[0,0,0],"start":[0,0,0]'),
    "column-object": lambda text: text.replace(b'"start":[0,0,0]', b'"start":{}'),
    "unknown-integer-too-large": lambda text: text[:-2] + b',"more":18446744073709551616}\n',
    "offset-2-64": lambda text: text.replace(b'"offset":[0', b'"offset":[18446744073709551616'),
    "not-json": lambda text: b"x" + text[1:],
    "array": lambda text: b"[]\n",
    "two-lines": lambda text: text[:-1].replace(b',"boundary"', b',\n"boundary"') + b"\n",
    "line-feed-missing": lambda text: text[:-1],
    "two-line-feeds": lambda text: text + b"\n",
    "crlf-within": lambda text: text[:-1] + b"\r\r",
}

_HEAD: Final[dict[str, Callable[[Any], Any]]] = {
    "records-other": set_in("records", to=2),
    "records-true": set_in("records", to=True),
    "blocks-missing": drop("blocks"),
    "first-other": set_in("blocks", "first", 0, to="17-0"),
    "first-missing": set_in("blocks", "first", to=[]),
    "start-gap": set_in("blocks", "start", 0, to=1),
    "length-less": lambda body: set_in("blocks", "length", 0, to=body["blocks"]["length"][0] - 1)(body),
    "length-more": lambda body: set_in("blocks", "length", 0, to=body["blocks"]["length"][0] + 1)(body),
    "length-zero": set_in("blocks", "length", 0, to=0),
    "digest-other": set_in("blocks", "sha256", 0, to=digest(b"")),
    "digest-upper-case": lambda body: set_in("blocks", "sha256", 0, to=body["blocks"]["sha256"][0].upper())(
        body
    ),
    "member-twice": lambda body: to_json(body)[:-1] + b',"records":3}',
    "array": lambda body: b"[]",
}


def _two_blocks(rows: Rows) -> list[bytes]:
    return [block(rows[:2]), block(rows[2:])]


_TWO: Final[dict[str, Callable[[Any], Any]]] = {
    "blocks-overlap": set_in("blocks", "start", 1, to=0),
    "blocks-with-a-gap": lambda body: set_in("blocks", "start", 1, to=body["blocks"]["start"][1] + 1)(body),
    "blocks-first-unsorted": lambda body: body["blocks"]["first"].reverse(),
}

_BLOCKS: Final[dict[str, Callable[[Rows], list[bytes]]]] = {
    "blocks-unsorted": lambda rows: _two_blocks(rows)[::-1],
    "blocks-sorted-each-but-not-together": lambda rows: [block([rows[0], rows[2]]), block([rows[1]])],
    "block-empty": lambda rows: [block(rows), block([])],
    "block-twice": lambda rows: [block(rows), block(rows)],
}


def _replaced(replace: Callable[[bytes], bytes]) -> Callable[[Rows], list[bytes]]:
    return lambda rows: [replace(block(rows))]


def _three_blocks(rows: Rows) -> list[bytes]:
    return [block([row]) for row in rows]


def cases() -> Iterator[tuple[str, Broken]]:
    """Yield the name and the fault of each case."""
    for name, change in _ROWS.items():
        yield f"index-{name}", Broken(Draft(rows=change), f"index: {name}")
    for name, replace in _PLAIN_TEXT.items():
        changed = Draft(blocks=_replaced(replace))
        yield f"index-block-{name}", Broken(changed, f"a block of the index: {name}")
    for name, change in _HEAD.items():
        yield f"index-head-{name}", Broken(Draft(head=change), f"the index's head: {name}")
    for name, change in _TWO.items():
        yield f"index-{name}", Broken(Draft(blocks=_two_blocks, head=change), f"index: {name}")
    middle = Draft(blocks=_three_blocks, head=set_in("blocks", "start", 1, to=0))
    yield (
        "index-blocks-middle-start-other",
        Broken(middle, "index: where the middle one of three blocks lies"),
    )
    for name, blocks in _BLOCKS.items():
        yield f"index-{name}", Broken(Draft(blocks=blocks), f"index: {name}")
    yield (
        "index-rollout-twice",
        Broken(
            Draft(lines=(*LINES, b'{"episode":"17-0","boundary":4,"schema":1,"payload":1}\n')),
            "two attempts of one rollout in one participant",
        ),
    )
    zstd: dict[str, Callable[[Rows], Any]] = {
        "start-gap": _add(1, "start", 1),
        "start-overlap": set_in(1, "start", to=0),
        "length-less": _add(2, "length", -1),
        "stored-other": _add(1, "stored", -1),
        "offset-other": _add(1, "offset", 1),
        "places-swapped": lambda rows: [
            rows[0].update(start=rows[1]["start"]),
            rows[1].update(start=0),
        ],
    }
    for name, change in zstd.items():
        yield (
            f"index-zstd-{name}",
            Broken(Draft(codec="zstd", rows=change), f"index of a zstd segment: {name}"),
        )
