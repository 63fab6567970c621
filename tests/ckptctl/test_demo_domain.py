"""The domain of the demo: tasks, tools over real databases, the policy, and the comparison of two results."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ckptctl._demo.policy import (
    BadRequest,
    Request,
    assistant_message,
    plan,
    respond,
    tokens,
    tool_message,
    user_message,
)
from ckptctl._demo.tasks import TOOLS, BadTask, Task, bundled_tasks_path, load_tasks, task_from_row
from ckptctl._demo.tools import BadExport, ToolSession
from ckptfmt.testing import differences

ITEM = {"from": 0, "path": ["matches", 0, "item"]}
FIND = {"tool": "find", "arguments": {"text": "bolt"}}
RECEIVE = {"tool": "receive", "arguments": {"item": ITEM, "shelf": "A-01", "quantity": 4}}
BOLT = {"name": "bolt", "kg": 0.5, "shelves": {"A-01": 2}}
ROW: dict[str, Any] = {
    "task_id": "restock",
    "domain": "warehouse",
    "agent": "stateful",
    "instruction": "Receive 4 bolts.",
    "turns": 3,
    "seed": [BOLT],
    "plan": [FIND, RECEIVE],
    "expected": {"bolt": {"A-01": 6}},
}
BUNDLED = {task.task_id: task for task in load_tasks(bundled_tasks_path())}


class Rollout:
    """One conversation between the policy and the tools, as an agent runs it."""

    def __init__(self, task: Task, session: ToolSession, messages: list[dict[str, Any]]) -> None:
        self.task = task
        self.session = session
        self.messages = messages

    def ask(self) -> dict[str, Any]:
        """One turn of the model: its response."""
        request = Request(self.task, self.messages, seed=7)
        response = respond(request, list(tokens(request, 0)))
        self.messages.append(assistant_message(response))
        return response

    def run(self, turns: int = 50) -> Rollout:
        """Continue to the final answer, or for so many turns."""
        for _ in range(turns):
            call = self.ask()["tool_call"]
            if call is None:
                break
            self.messages.append(tool_message(self.session.call(**call)))
        return self

    def result(self) -> dict[str, Any]:
        reward, state = self.session.reward(self.task), self.session.final_state()
        return {"transcript": self.messages, "reward": reward, "state": state}


class Desk:
    """Opens sessions and closes them all at the end of a test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.opened: list[ToolSession] = []

    def start(self, task: Task | dict[str, Any]) -> Rollout:
        task = task if isinstance(task, Task) else task_from_row(task)
        self.opened.append(ToolSession.create(self.directory / f"{len(self.opened)}.db", task))
        return Rollout(task, self.opened[-1], [user_message(task)])

    def restore(self, exported: object) -> ToolSession:
        self.opened.append(ToolSession.restore(self.directory / f"{len(self.opened)}.db", exported))
        return self.opened[-1]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    for session in desk.opened:
        session.close(delete=True)
    assert not list(tmp_path.glob("*.db*"))


def test_the_bundled_tasks_are_many_and_varied() -> None:
    tasks = list(BUNDLED.values())
    assert len(tasks) >= 64
    assert len(tasks) // 10 <= sum(task.agent == "plain" for task in tasks) <= len(tasks) // 6
    assert {task.domain for task in tasks[:8]} == {"warehouse", "ledger"}
    assert {task.agent for task in tasks[:8]} == {"stateful", "plain"}
    assert {4, 12} <= {task.turns for task in tasks} <= set(range(4, 13))
    assert sum(not task.instruction.isascii() for task in tasks) >= 10
    rows = [json.loads(line) for line in bundled_tasks_path().read_text("utf-8").splitlines()]
    assert differences(rows, [task.row() for task in tasks]) == []


@pytest.mark.parametrize("task", BUNDLED.values(), ids=BUNDLED)
def test_every_bundled_task_is_solved(desk: Desk, task: Task) -> None:
    rollout = desk.start(task).run()
    assert rollout.session.reward(task) == 1.0
    assert len(rollout.messages[1::2]) == rollout.session.calls + 1 == task.turns
    assert all(20 <= message["tokens"] <= 60 for message in rollout.messages[1::2])
    assert differences(rollout.result(), desk.start(task).run().result()) == []


def changed(path: str, value: Any = ...) -> str:
    """The row as a line with one value changed, or left out; ``path`` is a chain of keys and numbers."""
    row = place = json.loads(json.dumps(ROW))
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        place = place[step]
    place[last] = value
    if value is ...:
        del place[last]
    return json.dumps(row)


@pytest.mark.parametrize(
    ("line", "field", "problem"),
    [
        ("{", None, "is not JSON in UTF-8"),
        ("\udcff", None, "is not JSON in UTF-8"),
        ("[" * 100_000, None, "is not JSON in UTF-8"),
        ('{"turns": 1, "turns": 2}', None, "the key 'turns' occurs twice"),
        ("[]", None, "is [], but must be an object"),
        (changed("task_id"), "task_id", "is missing: add it"),
        (changed("colour", 1), "colour", "is unknown here: remove it (known: task_id, domain"),
        (changed("task_id", 3), "task_id", "is 3, but must be a text"),
        (changed("task_id", "über"), "task_id", "[A-Za-z0-9]"),
        (changed("task_id", "job-a2"), "task_id", "reserved for attempt 2 of 'job': rename the task"),
        (changed("task_id", "job-a2-a1"), "task_id", "reserved"),
        (changed("task_id", "first"), "task_id", "'first' is the task of line 1 already: rename one"),
        (changed("domain", "garden"), "domain", 'is "garden", but must be one of warehouse, ledger'),
        (changed("domain", "ledger"), "seed[0].owner", "is missing"),
        (changed("agent", None), "agent", "is null, but must be one of stateful, plain"),
        (changed("instruction", "\ud83d"), "instruction", "must be a text"),
        (changed("turns", 0), "turns", "is 0, but must be a whole number of 1 to"),
        (changed("turns", True), "turns", "is true, but must be a whole number"),
        (changed("seed", {}), "seed", "is {}, but must be a list"),
        (changed("seed/0/kg", math.nan), "seed[0].kg", "is NaN, but must be a number"),
        (changed("seed/0/shelves/A-01", "2"), "seed[0].shelves.A-01", 'is "2", but must be a whole number'),
        (changed("plan/1/tool", "shp"), "plan[1].tool", "must be one of find, count, receive, ship"),
        (changed("plan/0/arguments/text"), "plan[0].arguments.text", "is missing: add it"),
        (changed("plan/1/arguments/order", "x"), "plan[1].arguments.order", "known: item, shelf, quantity"),
        (changed("plan/1/arguments/quantity", 0), "plan[1].arguments.quantity", "whole number of 1 to"),
        (changed("plan/1/arguments/item/from", 1), "plan[1].arguments.item.from", "below 1"),
        (changed("plan/1/arguments/item/path", [0.5]), "plan[1].arguments.item.path[0]", "whole number"),
        (changed("plan/1/arguments/item/times", 2), "plan[1].arguments.item.times", "percent, minus"),
        (changed("expected/bolt", {}), "expected", "holds no amount"),
        (changed("expected/bolt/A-01", 1.5), "expected.bolt.A-01", "is 1.5, but must be a whole number"),
    ],
)
def test_a_bad_row_is_named_by_file_line_and_field(
    tmp_path: Path, line: str, field: str | None, problem: str
) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_bytes(f"{changed('task_id', 'first')}\n\n{line}\n".encode("utf-8", "surrogateescape"))
    with pytest.raises(BadTask) as caught:
        load_tasks(file)
    error = caught.value
    assert (error.file, error.line, error.field) == (str(file), 3, field)
    assert str(error).startswith(f"{file}, line 3{', field ' + field if field else ''}: ")
    assert problem in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_file_without_tasks_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    with pytest.raises(BadTask, match=r"tasks\.jsonl: cannot be read \(No such file or directory\): name a"):
        load_tasks(file)
    file.write_bytes(b"\n  \n")
    with pytest.raises(BadTask, match=r"tasks\.jsonl: holds no task: write one JSON object a line"):
        load_tasks(file)


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("deposit", {}, "unknown_tool"),
        ("\ud83d", {}, "unknown_tool"),
        ("count", None, "bad_arguments"),
        ("count", {"item": 1}, "bad_arguments"),
        ("count", {"item": True, "shelf": "A-01"}, "bad_arguments"),
        ("count", {"item": 2**63, "shelf": "A-01"}, "bad_arguments"),
        ("count", {"item": 1, "shelf": "\ud83d"}, "bad_arguments"),
        ("receive", {"item": 9, "shelf": "A-01", "quantity": 1}, "not_found"),
        ("move", {"item": 1, "source": "A-01", "target": "B-01", "quantity": 3}, "insufficient_stock"),
    ],
)
def test_a_wrong_tool_call_of_a_model_has_an_error_as_its_result(
    desk: Desk, tool: str, arguments: object, code: str
) -> None:
    session = desk.start(ROW).session
    before = session.final_state()
    result = session.call(tool, arguments)
    assert (list(result), result["error"]["code"]) == (["receipt", "error"], code)
    after = session.final_state()
    assert [row["outcome"] for row in after["journal"]] == [code]
    assert differences(before, after | {"journal": []}) == []


def test_every_tool_that_a_plan_may_name_exists(desk: Desk) -> None:
    for task in (BUNDLED["kit-1"], BUNDLED["invoice-1"]):
        session = desk.start(task).session
        for tool, parameters in TOOLS[task.domain].items():
            result = session.call(
                tool, {name: "A" if kind is str else 1 for name, kind in parameters.items()}
            )
            assert result.get("error", {}).get("code") not in {"unknown_tool", "bad_arguments"}


def test_results_hold_what_plain_json_cannot(desk: Desk) -> None:
    result = desk.start(ROW).session.call("count", {"item": 1, "shelf": "A-01"})
    assert result["receipt"].bit_length() > 64
    assert (str(result["mean_taken"]), result["times_left"]) == ("nan", math.inf)
    ledger = desk.start(BUNDLED["opening-1"]).session
    opened = ledger.call("open_account", {"owner": "Zoë", "currency": "XTS"})
    assert str(opened["owed_to_us"]) == "-0.0"
    other = ledger.call("transfer", {"source": 1, "target": opened["account"], "cents": 1, "memo": "x"})
    assert other["error"]["code"] == "other_currency"
    rollouts = [desk.start(task).run() for task in list(BUNDLED.values())[:9]]
    found = {str(one) for rollout in rollouts for turn in rollout.messages[1::2] for one in turn["logprobs"]}
    assert {"nan", "-inf", "-0.0"} <= found


def test_the_reward_is_the_share_of_what_was_expected(desk: Desk) -> None:
    rollout = desk.start(ROW | {"expected": {"bolt": {"A-01": 2, "B-01": 1, "C-01": 1, "D-01": 0}}})
    rewards = [rollout.session.reward(rollout.task)]
    for _ in range(2):
        rollout.session.call("receive", {"item": 1, "shelf": "C-01", "quantity": 1})
        rewards.append(rollout.session.reward(rollout.task))
    assert rewards == [0.5, 0.75, 0.5]


def test_calls_of_many_threads_queue(desk: Desk) -> None:
    session = desk.start(ROW).session
    with ThreadPoolExecutor(8) as pool:
        arguments = {"item": 1, "shelf": "A-01", "quantity": 1}
        results = list(pool.map(lambda _: session.call("receive", arguments), range(200)))
    assert sorted(result["on_shelf"] for result in results) == list(range(3, 203))
    assert [row["call"] for row in session.final_state()["journal"]] == list(range(1, 201))


@pytest.mark.parametrize("task_id", ["restock-1", "kit-1", "payroll-1", "short-refund-1", "closing-1"])
def test_a_restored_session_ends_as_an_uninterrupted_one(desk: Desk, task_id: str) -> None:
    task = BUNDLED[task_id]
    whole = desk.start(task).run()
    for calls in range(task.turns):
        first = desk.start(task).run(calls)
        saved = json.dumps([first.session.export(), first.messages])
        first.run(1)  # what happens after the cut is lost
        exported, messages = json.loads(saved)
        second = Rollout(task, desk.restore(exported), messages)
        assert second.session.calls == calls
        assert differences(whole.result(), second.run().result()) == []


@pytest.mark.parametrize(
    "damage",
    [
        {"domain": "x"},
        {"calls": 1},
        {"database": 1},
        {"database": "%"},
        {"database": ""},
        {"database": "AA=="},
    ],
)
def test_a_wrong_export_is_refused_and_changes_no_file(
    desk: Desk, tmp_path: Path, damage: dict[str, Any]
) -> None:
    exported = desk.start(ROW).session.export()
    left = tmp_path / "1.db"
    left.write_bytes(b"half a database, left by a dead process")
    with pytest.raises(BadExport):
        desk.restore(exported | damage)
    assert left.read_bytes().startswith(b"half")
    assert differences(exported, desk.restore(exported).export()) == []


@pytest.mark.parametrize("turn", range(5))
def test_a_call_that_ran_twice_or_was_lost_is_detected(desk: Desk, turn: int) -> None:
    task = BUNDLED["invoice-1"]
    good = desk.start(task).run().result()
    twice = desk.start(task).run(turn)
    twice.session.call(**twice.ask()["tool_call"])
    twice.messages.pop()
    lost = desk.start(task).run(turn)
    kept = lost.session.export()
    lost.run(1).session = desk.restore(kept)
    for bad, calls in ((twice, 6), (lost, 4)):
        found = differences(good, bad.run().result())
        assert f"$.state.journal: expected 5 elements, got {calls}" in found
        assert calls < 5 or any(line.startswith("$.transcript[") and ".receipt:" in line for line in found)


def test_a_generation_goes_on_from_every_prefix(desk: Desk) -> None:
    rollout = desk.start(BUNDLED["kit-1"]).run(2)
    request = Request.from_json(json.loads(json.dumps(Request(rollout.task, rollout.messages, 7).to_json())))
    whole = list(tokens(request, 0))
    expected = rollout.ask()
    for length in range(len(whole) + 1):
        assert differences(expected, respond(request, whole[:length] + list(tokens(request, length)))) == []
    assert respond(request, ["no", *whole[1:]])["logprobs"][1:5] != expected["logprobs"][1:5]
    with pytest.raises(BadRequest, match="cannot end after"):
        respond(request, whole[:-1])


def test_seed_and_every_digit_of_a_result_change_what_follows(desk: Desk) -> None:
    rollout = desk.start(BUNDLED["rebalance-1"]).run(1)
    result = rollout.messages[2]["result"]
    (match,) = result["matches"]
    turned = match | {"shelves": dict(reversed(match["shelves"].items()))}
    others = [result | {"added": one} for one in (0.0, -0.0, 1, True, None, math.nan)]
    others += [dict(reversed(result.items())), result | {"matches": [turned]}]
    plans = [plan(rollout.task, rollout.messages, seed) for seed in (7, 8)]
    plans += [plan(rollout.task, [*rollout.messages[:2], tool_message(one)], 7) for one in others]
    assert len({one.tokens for one in plans}) == len(plans)
    shelves = [one.tool_call["arguments"]["shelf"] for one in (plans[0], plans[-1]) if one.tool_call]
    assert shelves == [next(iter(match["shelves"])), next(reversed(match["shelves"]))]


def test_what_is_missing_is_provided_and_the_step_is_called_again(desk: Desk) -> None:
    rollout = desk.start(BUNDLED["short-order-1"]).run()
    calls = [message["tool_call"] for message in rollout.messages[1:-1:2]]
    assert [call["tool"] for call in calls] == ["find", "count", "ship", "receive", "ship", "report"]
    assert calls[2] == calls[4]
    assert calls[3]["arguments"]["quantity"] == rollout.messages[6]["result"]["error"]["missing"]


def test_a_plan_that_fails_ends_without_reward(desk: Desk) -> None:
    rollout = desk.start(json.loads(changed("plan/0/arguments/text", "screw"))).run()
    assert rollout.messages[4]["result"]["error"]["code"] == "bad_arguments"
    assert (len(rollout.messages), rollout.session.reward(rollout.task)) == (6, 0.0)
    assert len(desk.start(ROW | {"turns": 1}).run().messages) == 2


@pytest.mark.parametrize("roles", ["", "t", "ua", "uat", "uau"])
def test_a_request_that_is_not_a_conversation_is_refused(roles: str) -> None:
    known = {
        "u": user_message(task_from_row(ROW)),
        "a": {"role": "assistant", "tool_call": None},
        "t": tool_message({}),
    }
    body = {"task": ROW, "messages": [known.get(role) for role in roles], "seed": 7}
    with pytest.raises(BadRequest):
        Request.from_json(body)
    with pytest.raises(BadTask, match="request, field turns: is 0"):
        Request.from_json(body | {"messages": [known["u"]], "task": ROW | {"turns": 0}})


@pytest.mark.parametrize(
    ("expected", "actual", "found"),
    [
        ({"a": [math.nan, -0.0, 2**80]}, {"a": [math.nan, -0.0, 2**80]}, []),
        (1, 1.0, ["$: expected 1 of type int, got 1.0 of type float"]),
        (1, True, ["$: expected 1 of type int, got True of type bool"]),
        (None, [], ["$: expected None of type NoneType, got 0 elements of type list"]),
        (0.0, -0.0, ["$: expected 0.0, got -0.0"]),
        (math.nan, 0.5, ["$: expected nan, got 0.5"]),
        (math.inf, -math.inf, ["$: expected inf, got -inf"]),
        ([1], [2, 3], ["$: expected 1 element, got 2", "$[1]: not expected", "$[0]: expected 1, got 2"]),
        ({"a": 1}, {"b": 1}, ["$.a: missing", "$.b: not expected"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["$: keys in another order, expected 'a' in the place of 'b'"]),
        (
            {"a b": [{"c": "x"}], "d": 1},
            {"a b": [{"c": "y"}], "d": 2},
            ["""$["a b"][0].c: expected 'x', got 'y'""", "$.d: expected 1, got 2"],
        ),
        ("\ud83d\ude00", "\U0001f600", [r"$: expected '\ud83d\ude00', got '\U0001f600'"]),
    ],
)
def test_every_difference_is_named_by_its_path(expected: object, actual: object, found: list[str]) -> None:
    assert differences(expected, actual) == found


def test_neither_depth_nor_size_is_a_limit_of_the_comparison() -> None:
    deep, other = [10**5000], ["x" * 10**6]
    for _ in range(3000):
        deep, other = [deep], [other]  # type: ignore[list-item]
    assert differences(deep, deep) == []
    (line,) = differences(deep, other)
    assert len(line) < 3001 * len("[0]") + 200
