"""Freshly built sessions of agents as benchmark data.

orjson caches a UTF-8 copy in every non-ASCII string that it encodes, and a second pass over the same strings
is two to eight times faster than the first. Reused records would make all results too good.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ckptfmt import EpisodeId, Record

_TEXT = (
    "the agent reads a file and runs the tests again because one of them fails with an error in line "
    "def return import class self assert None True for in if else raise 0x1f 42 3.14 prüfen naïve 在庫 → ✓"
)
_WORDS = _TEXT.split()


def text(random: random.Random, size: int) -> dict[str, Any]:
    """The messages of a session with long tool outputs."""
    paragraph = " ".join(random.choices(_WORDS, k=min(400, max(4, size // 20))))
    messages: list[dict[str, Any]] = []
    while size > 0:
        cut = random.randrange(len(paragraph) // 2 + 1)
        content = f"{paragraph[cut:]} {random.random()} {paragraph}"  # a new string each time
        role = random.choice(("assistant", "tool"))
        messages.append({"role": role, "content": content, "call_id": len(messages)})
        size -= len(content.encode()) + 60
    return {"messages": messages, "reward": random.random()}


def tokens(random: random.Random, size: int) -> dict[str, Any]:
    """Token ids and log-probabilities of a training run."""
    count = max(1, size // 28)
    return {
        "token_ids": random.choices(range(150_000), k=count),
        "logprobs": [-8.0 * random.random() ** 2 for _ in range(count)],
        "reward": random.random(),
    }


def small(random: random.Random, size: int) -> dict[str, Any]:
    """Many small objects, such as the state of a simulated world."""
    items = [
        {
            "id": number,
            "name": f"item-{number}",
            "x": random.random(),
            "y": random.random(),
            "tags": ["a", "b"],
        }
        for number in range(max(1, size // 98))
    ]
    return {"items": items, "reward": random.random()}


def mixed(random: random.Random, size: int) -> dict[str, Any]:
    """A third of each of the other shapes."""
    parts = {shape: SHAPES[shape](random, size // 3) for shape in ("text", "tokens", "small")}
    return {**parts, "reward": random.random()}


SHAPES: Mapping[str, Callable[[random.Random, int], dict[str, Any]]] = {
    "text": text,
    "tokens": tokens,
    "small": small,
    "mixed": mixed,
}


@dataclass(frozen=True)
class Load:
    """``count`` records of about ``size`` bytes of JSON. ``nan`` is the share of records with one NaN."""

    shape: str
    count: int
    size: int = 350_000
    nan: float = 0.0
    seed: int = 0

    def records(self) -> Iterator[Record]:
        """Build the records, the same for the same seed."""
        generator = random.Random(self.seed)
        every = round(1 / self.nan) if self.nan else 0
        for number in range(self.count):
            payload = SHAPES[self.shape](generator, self.size)
            if every and number % every == 0:
                payload["reward"] = math.nan
            yield Record(EpisodeId(f"{number}-0"), boundary=number % 50, payload=payload)
