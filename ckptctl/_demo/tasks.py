"""Tasks of the demo: rows of a JSONL file, one object a line.

::

    {"task_id": "restock-bolts",            a rollout id: [A-Za-z0-9][A-Za-z0-9._-]*, not ending in -a<N>
     "domain": "warehouse",                 which tools: "warehouse" or "ledger", see `TOOLS`
     "agent": "stateful",                   "stateful": continues after a crash; "plain": starts over
     "instruction": "Receive 40 bolts …",   what a person would ask
     "turns": 4,                            at most this many turns of the model, the last one answers
     "seed": [{"name": "M8 bolt", "kg": 0.02, "shelves": {"A-01": 12}}, …],
                                            in the ledger {"owner": "Ada", "currency": "EUR", "cents": 1250}
     "plan": [{"tool": "find", "arguments": {"text": "bolt"}}, {"tool": "receive", "arguments":
              {"item": {"from": 0, "path": ["matches", 0, "item"]}, "shelf": "A-01", "quantity": 40}}, …],
     "expected": {"M8 bolt": {"A-01": 52}}}          item -> shelf -> quantity; owner -> currency -> cents

An argument of the plan is a value, or a reference into the result of an earlier step: ``from`` counts the
steps from 0, ``path`` leads through that step's result. A whole number in it takes that element of a list,
and of an object that *key*, so the order of keys decides what is called. A number found there is changed by
``percent`` (that share, rounded down), then ``minus``, where given.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeGuard, cast

from ckptfmt import EpisodeId, InvalidId

Domain = Literal["warehouse", "ledger"]
Agent = Literal["stateful", "plain"]

TOOLS: Final[Mapping[Domain, Mapping[str, Mapping[str, type[str] | type[int]]]]] = {
    "warehouse": {
        "find": {"text": str},
        "count": {"item": int, "shelf": str},
        "receive": {"item": int, "shelf": str, "quantity": int},
        "ship": {"item": int, "shelf": str, "quantity": int, "order": str},
        "move": {"item": int, "source": str, "target": str, "quantity": int},
        "report": {},
    },
    "ledger": {
        "find": {"text": str},
        "open_account": {"owner": str, "currency": str},
        "deposit": {"account": int, "cents": int, "memo": str},
        "withdraw": {"account": int, "cents": int, "memo": str},
        "transfer": {"source": int, "target": int, "cents": int, "memo": str},
        "balance": {"account": int},
        "report": {},
    },
}
"""The tools of each domain: name -> parameter -> type. Every parameter is required."""

MOST: Final = 10**12
"""The largest quantity, amount in cents or row id that a task or a tool call may name."""

_SEED_FIELDS: Final[Mapping[Domain, tuple[str, ...]]] = {
    "warehouse": ("name", "kg", "shelves"),
    "ledger": ("owner", "currency", "cents"),
}
_FIELDS: Final = ("task_id", "domain", "agent", "instruction", "turns", "seed", "plan", "expected")


class BadTask(ValueError):
    """A tasks file that cannot be used: says which file, line and field, what is wrong and what to do.

    ``line`` counts from 1 and is None when the whole file is meant, as is ``field`` for the whole row.
    """

    def __init__(self, file: str, line: int | None, field: str | None, problem: str) -> None:
        super().__init__(file, line, field, problem)
        self.file = file
        self.line = line
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        field = "" if self.field is None else f", field {self.field}"
        return f"{self.file}{line}{field}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call of a plan. Each argument is a value or a reference (see the module)."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """One checked task. Its values are shared: do not change them."""

    task_id: str
    domain: Domain
    agent: Agent
    instruction: str
    turns: int
    seed: tuple[dict[str, Any], ...]
    plan: tuple[Step, ...]
    expected: dict[str, dict[str, int]]

    def row(self) -> dict[str, Any]:
        """The task as the JSON object it was read from."""
        row = {name: getattr(self, name) for name in _FIELDS}
        plan = [{"tool": step.tool, "arguments": step.arguments} for step in self.plan]
        return {**row, "seed": list(self.seed), "plan": plan}


def bundled_tasks_path() -> Path:
    """The tasks file that comes with the package."""
    return Path(__file__).with_name("tasks.jsonl")


def load_tasks(path: str | Path) -> list[Task]:
    """All tasks of a JSONL file, in its order. Blank lines are skipped, but counted in line numbers.

    Raises `BadTask` when the file cannot be read, holds no task, or a row is wrong.
    """
    file = str(path)
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        problem = f"cannot be read ({error.strerror}): name a JSONL file with one task a line"
        raise BadTask(file, None, None, problem) from error
    tasks: dict[str, tuple[int, Task]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            reader = _Reader(file, number)
            task = reader.task(reader.parse(line))
            first, _ = tasks.setdefault(task.task_id, (number, task))
            if first != number:
                reader.refuse("task_id", f"{task.task_id!r} is the task of line {first} already: rename one")
    if not tasks:
        raise BadTask(file, None, None, "holds no task: write one JSON object a line")
    return [task for _, task in tasks.values()]


def task_from_row(row: object, source: str = "request") -> Task:
    """The task of one row, which did not come from a file. Raises `BadTask` with ``source`` as the file."""
    return _Reader(source, None).task(row)


def is_text(value: object) -> TypeGuard[str]:
    """Whether the value is a text that the tools accept: not empty, no NUL, no half of a surrogate pair."""
    return type(value) is str and re.search("^$|[\x00\ud800-\udfff]", value) is None


def is_amount(value: object, least: int = 1) -> TypeGuard[int]:
    """Whether the value is a whole number from ``least`` to `MOST`."""
    return type(value) is int and least <= value <= MOST


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        (repeated, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {repeated!r} occurs twice in one object")
    return members


class _Reader:
    """Reads one row; each refusal names the file, the line and the field."""

    def __init__(self, file: str, line: int | None) -> None:
        self.file = file
        self.line = line

    def refuse(self, field: str | None, problem: str) -> NoReturn:
        raise BadTask(self.file, self.line, field, problem)

    def parse(self, line: bytes) -> Any:
        try:
            return json.loads(line.decode("utf-8"), object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            self.refuse(None, f"is not JSON in UTF-8 ({error}): write one JSON object a line")

    def task(self, row: object) -> Task:
        fields = self.members(row, None, _FIELDS)
        domain = cast(Domain, self.choice(fields["domain"], "domain", tuple(TOOLS)))
        return Task(
            task_id=self.task_id(fields["task_id"]),
            domain=domain,
            agent=cast(Agent, self.choice(fields["agent"], "agent", ("stateful", "plain"))),
            instruction=self.text(fields["instruction"], "instruction"),
            turns=self.whole(fields["turns"], "turns", least=1),
            seed=self.seed(fields["seed"], domain),
            plan=self.plan(fields["plan"], domain),
            expected=self.expected(fields["expected"]),
        )

    def task_id(self, value: object) -> str:
        text = self.text(value, "task_id")
        try:
            episode = EpisodeId.from_capture_key(text)
        except InvalidId as error:
            self.refuse("task_id", str(error))
        if episode.attempt:
            meant = f"attempt {episode.attempt} of {episode.rollout_id!r}"
            self.refuse("task_id", f"{text!r} ends in the suffix reserved for {meant}: rename the task")
        return text

    def seed(self, value: object, domain: Domain) -> tuple[dict[str, Any], ...]:
        rows = []
        for number, item in enumerate(self.items(value, "seed")):
            field = f"seed[{number}]"
            row = self.members(item, field, _SEED_FIELDS[domain])
            if domain == "warehouse":
                self.text(row["name"], f"{field}.name")
                if type(row["kg"]) not in (int, float) or not 0 <= row["kg"] <= MOST:
                    self.wrong(row["kg"], f"{field}.kg", f"a number from 0 to {MOST}, the weight of a piece")
                self.amounts(row["shelves"], f"{field}.shelves")
            else:
                self.text(row["owner"], f"{field}.owner")
                self.text(row["currency"], f"{field}.currency")
                self.whole(row["cents"], f"{field}.cents")
            rows.append(row)
        return tuple(rows)

    def plan(self, value: object, domain: Domain) -> tuple[Step, ...]:
        steps: list[Step] = []
        for number, item in enumerate(self.items(value, "plan")):
            field = f"plan[{number}]"
            step = self.members(item, field, ("tool", "arguments"))
            tool = self.choice(step["tool"], f"{field}.tool", tuple(TOOLS[domain]))
            parameters = TOOLS[domain][tool]
            arguments = self.members(step["arguments"], f"{field}.arguments", tuple(parameters))
            for name, argument in arguments.items():
                self.argument(argument, f"{field}.arguments.{name}", parameters[name], number)
            steps.append(Step(tool, arguments))
        return tuple(steps)

    def argument(self, value: object, field: str, wanted: type, step: int) -> None:
        if not isinstance(value, dict):
            self.text(value, field) if wanted is str else self.whole(value, field, least=1)
            return
        reference = self.members(value, field, ("from", "path"), optional=("percent", "minus"))
        if self.whole(reference["from"], f"{field}.from") >= step:
            self.refuse(f"{field}.from", f"must name a step before this one, so be below {step}")
        for number, key in enumerate(self.items(reference["path"], f"{field}.path")):
            if type(key) is not str:
                self.whole(key, f"{field}.path[{number}]")
        for name in reference.keys() & {"percent", "minus"}:
            self.whole(reference[name], f"{field}.{name}")

    def expected(self, value: object) -> dict[str, dict[str, int]]:
        parts = self.mapping(value, "expected")
        expected = {name: self.amounts(amounts, f"expected.{name}") for name, amounts in parts.items()}
        if not any(expected.values()):
            self.refuse("expected", "holds no amount: name at least one that a finished task must reach")
        return expected

    def amounts(self, value: object, field: str) -> dict[str, int]:
        named = {self.text(key, field): amount for key, amount in self.mapping(value, field).items()}
        return {key: self.whole(amount, f"{field}.{key}") for key, amount in named.items()}

    def members(
        self, value: object, field: str | None, names: tuple[str, ...], optional: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        members = self.mapping(value, field)
        inside = f"{field}." if field else ""
        for name in names:
            if name not in members:
                self.refuse(inside + name, "is missing: add it")
        for name in members:
            if name not in names and name not in optional:
                known = ", ".join(names + optional) or "none"
                self.refuse(inside + name, f"is unknown here: remove it (known: {known})")
        return members

    def mapping(self, value: object, field: str | None) -> dict[str, Any]:
        return value if isinstance(value, dict) else self.wrong(value, field, "an object")

    def items(self, value: object, field: str) -> list[Any]:
        return value if isinstance(value, list) else self.wrong(value, field, "a list")

    def choice(self, value: object, field: str, known: tuple[str, ...]) -> str:
        if isinstance(value, str) and value in known:
            return value
        return self.wrong(value, field, f"one of {', '.join(known)}")

    def text(self, value: object, field: str) -> str:
        return value if is_text(value) else self.wrong(value, field, "a text, not empty, without NUL")

    def whole(self, value: object, field: str, least: int = 0) -> int:
        if is_amount(value, least):
            return value
        return self.wrong(value, field, f"a whole number of {least} to {MOST}")

    def wrong(self, value: object, field: str | None, wanted: str) -> NoReturn:
        shown = json.dumps(value)
        self.refuse(field, f"is {shown if len(shown) <= 60 else shown[:60] + '…'}, but must be {wanted}")
