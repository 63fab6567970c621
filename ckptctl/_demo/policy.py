"""The policy of the demo: what the model says next, which depends only on the conversation so far.

::

    request    {"task": row, "messages": [...], "seed": 7}
    messages   {"role": "user", "text": …}, then by turns
               {"role": "assistant", "text": …, "tool_call": …, "tokens": n, "logprobs": […]} and
               {"role": "tool", "result": …}
    response   {"text": str, "tool_call": {"tool", "arguments"} or null, "tokens": n, "logprobs": [float, …]}

A turn is a number of tokens and then a tool call or, with ``tool_call`` null, the final answer. The tokens
follow from a hash of the seed, the task, the turn and every tool result so far, and each log-probability from
all tokens before it: one digit that a restore got wrong changes everything after it. Some log-probabilities
are NaN, -inf or -0.0, as those of real samplers are.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ckptctl._demo.tasks import Task, task_from_row

_VOCABULARY: Final = (
    "first then next so now but because which means that the a this one it is was has to of on in from for "
    "stock shelf account amount order total count check again before after more less same right careful note "
    "prüfen también façade naïve größer środek ещё λόγος 在庫 確認 수량 → ≈ ✓ 📦 🧾 wait hm okay let me see"
)
_WORDS: Final = _VOCABULARY.split()
_REPAIRS: Final = {"insufficient_stock": "receive", "insufficient_funds": "deposit"}


class BadRequest(ValueError):
    """A generation request that is not a conversation about a task; the message says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the policy is asked to continue."""

    task: Task
    messages: list[dict[str, Any]]
    seed: int = 0

    @classmethod
    def from_json(cls, value: object) -> Request:
        """The request of a JSON body. Raises `BadRequest`, or `BadTask` for its task."""
        match value:
            case {"task": dict(row), "messages": [{"role": "user"}, *_] as messages, "seed": int(seed)}:
                request = cls(task_from_row(row), messages, seed)
            case _:
                raise BadRequest("must be an object with task, messages (the first by the user) and seed")
        exchanges(request.messages)
        return request

    def to_json(self) -> dict[str, Any]:
        """The JSON body that `from_json` reads."""
        return {"task": self.task.row(), "messages": self.messages, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model: its tokens, and the call that follows them (None: they are the final answer)."""

    tokens: tuple[str, ...]
    tool_call: dict[str, Any] | None


def user_message(task: Task) -> dict[str, Any]:
    """The message that opens the conversation."""
    return {"role": "user", "text": task.instruction}


def assistant_message(response: dict[str, Any]) -> dict[str, Any]:
    """A response as the message that the conversation keeps."""
    return {"role": "assistant", **response}


def tool_message(result: dict[str, Any]) -> dict[str, Any]:
    """A tool's result as the message that the conversation keeps."""
    return {"role": "tool", "result": result}


def exchanges(messages: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The tool calls made so far, each with its result.

    Raises `BadRequest` when the messages are not the user's, then a call and a result by turns.
    """
    made = []
    for place in range(1, len(messages), 2):
        match messages[place : place + 2]:
            case [
                {"role": "assistant", "tool_call": {"tool": str(), "arguments": dict()} as call},
                {"role": "tool", "result": dict(result)},
            ]:
                made.append((call, result))
            case _:
                raise BadRequest(f"messages {place} and {place + 1} must be a tool call and its result")
    return made


def plan(task: Task, messages: Sequence[dict[str, Any]], seed: int = 0) -> Turn:
    """The next turn: a pure function of its arguments. Raises `BadRequest` as `exchanges` does."""
    made = exchanges(messages)
    call = _next_call(task, made) if len(made) + 1 < task.turns else None
    results = [result for _, result in made]
    # json keeps what matters here: key order, int or float, NaN, -0.0, integers of any size.
    key = hashlib.sha256(json.dumps([seed, task.task_id, len(made), results]).encode("ascii")).digest()
    words = _thought(key)
    if call is None:
        receipt = results[-1].get("receipt") if results else None
        words += f"done with {len(made)} calls, last receipt {receipt} .".split()
    return Turn(tuple(word if place == 0 else f" {word}" for place, word in enumerate(words)), call)


def tokens(request: Request, prefix_length: int) -> Iterator[str]:
    """The tokens that follow the first ``prefix_length``: how an interrupted generation continues."""
    return iter(plan(request.task, request.messages, request.seed).tokens[prefix_length:])


def respond(request: Request, generated: Sequence[str]) -> dict[str, Any]:
    """The response made of the tokens that were generated: a kept prefix and what followed it.

    Raises `BadRequest` when they are not as many as the turn has.
    """
    turn = plan(request.task, request.messages, request.seed)
    if len(generated) != len(turn.tokens):
        raise BadRequest(f"a turn of {len(turn.tokens)} tokens cannot end after {len(generated)}")
    return {
        "text": "".join(generated),
        "tool_call": turn.tool_call,
        "tokens": len(generated),
        "logprobs": _logprobs(generated),
    }


def _thought(key: bytes) -> list[str]:
    """20 to 50 words."""
    stream = hashlib.shake_256(key).digest(101)
    count = 20 + stream[0] % 31
    pairs = zip(stream[1 : 2 * count : 2], stream[2 : 2 * count + 1 : 2], strict=True)
    return [_WORDS[(256 * high + low) % len(_WORDS)] for high, low in pairs]


def _logprobs(generated: Sequence[str]) -> list[float]:
    """A number for each token that depends on all tokens up to it. No libm: the same on every machine."""
    rare = {0: math.nan, 1: -math.inf, 2: -0.0}
    state = b""
    found = []
    for token in generated:
        state = hashlib.sha256(state + token.encode()).digest()
        common = -8.0 * (int.from_bytes(state[:6], "big") / 2**48) ** 2
        found.append(rare.get(state[6], common))
    return found


def _next_call(task: Task, made: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any] | None:
    """Follow the plan through the calls made so far; None after its last step.

    A step that fails because stock or money is missing is repaired once: what is missing is received or paid
    in, and the step is called again. A step that fails otherwise, or again, is left behind.
    """
    results: list[dict[str, Any]] = []
    left = iter(made)
    for step in task.plan:
        result: dict[str, Any] = {}
        for repair in (True, False):
            exchange = next(left, None)
            if exchange is None:
                arguments = {name: _resolved(value, results) for name, value in step.arguments.items()}
                return {"tool": step.tool, "arguments": arguments}
            call, result = exchange
            error = result.get("error", {})
            if not repair or error.get("code") not in _REPAIRS:
                break
            if next(left, None) is None:
                return _repair(call["arguments"], error)
        results.append(result)
    return None


def _repair(failed: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    """The call that provides what a failed one was missing."""
    tool, missing = _REPAIRS[error["code"]], error["missing"]
    if tool == "receive":
        shelf = failed.get("source", failed.get("shelf"))
        return {"tool": tool, "arguments": {"item": failed["item"], "shelf": shelf, "quantity": missing}}
    account = failed.get("source", failed.get("account"))
    return {"tool": tool, "arguments": {"account": account, "cents": missing, "memo": "top-up"}}


def _resolved(value: Any, results: Sequence[dict[str, Any]]) -> Any:
    """The value of a plan's argument; None when a reference points to nothing, which the tool refuses."""
    if not isinstance(value, dict):
        return value
    found: Any = results[value["from"]]
    try:
        for key in value["path"]:
            by_position = isinstance(key, int) and isinstance(found, dict)
            found = list(found)[key] if by_position else found[key]
    except (IndexError, KeyError, TypeError):
        return None
    if type(found) is int:
        found = found * value.get("percent", 100) // 100 - value.get("minus", 0)
    return found
