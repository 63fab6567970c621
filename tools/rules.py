"""Print the tests that prove each rule of docs/rules.md, and the rules that no test proves.

Run from the root of the project: `python -m tools.rules [--json]`. Exit status 0; 1 when a test names an id
that docs/rules.md does not have; 2 when the rules or the tests could not be read.
"""

import argparse
import contextlib
import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

RULES = Path("docs/rules.md")
_ROW = re.compile(r"^\| *([A-Z]+[0-9]+)°? *\|", re.MULTILINE)


class Unreadable(Exception):
    """The rules or the tests cannot be read; the message says why."""


@dataclass(frozen=True)
class Coverage:
    """The tests that prove each rule. A parametrized test is named once, by its function."""

    proved: Mapping[str, list[str]]
    """The tests that prove each rule, in the order of docs/rules.md."""
    unknown: Mapping[str, list[str]]
    """The tests that name each id that is not in docs/rules.md."""

    @property
    def unproved(self) -> list[str]:
        """The rules that no test proves."""
        return [rule for rule, tests in self.proved.items() if not tests]


def read_rules(text: str) -> list[str]:
    """The ids in the tables of `text`, in order. Raises Unreadable for no id and for a duplicate."""
    rules = _ROW.findall(text)
    if not rules:
        raise Unreadable("no rule was found")
    twice = sorted({rule for rule in rules if rules.count(rule) > 1})
    if twice:
        raise Unreadable(f"these ids occur twice: {' '.join(twice)}")
    return rules


class MarkedTests:
    """A pytest plugin that records the ids of the `req` marks of all collected tests."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, bool]] = {}
        """For each id the tests that name it, in order, and whether at least one of their cases runs."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Record the marks of the collected tests."""
        for item in session.items:
            # A test that is skipped or expected to fail proves nothing.
            runs = not any(item.get_closest_marker(name) for name in ("skip", "xfail"))
            for mark in item.iter_markers("req"):
                for rule in mark.args:
                    cases = self.tests.setdefault(str(rule), {})
                    cases[_function(item)] = cases.get(_function(item), False) or runs


def _function(item: pytest.Item) -> str:
    if isinstance(item, pytest.Function) and item.parent is not None:
        return f"{item.parent.nodeid}::{item.originalname}"
    return item.nodeid


def collect() -> MarkedTests:
    """Collect the marks of the project in the working directory. Raises Unreadable when pytest fails."""
    marked = MarkedTests()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = pytest.main(["--collect-only", "--quiet", "--capture=no"], plugins=[marked])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise Unreadable(f"pytest could not collect the tests:\n{printed.getvalue()}")
    return marked


def coverage(rules: Iterable[str], marked: MarkedTests) -> Coverage:
    """Match the rules with the collected tests."""
    proved: dict[str, list[str]] = {rule: [] for rule in rules}
    unknown: dict[str, list[str]] = {}
    for rule, tests in marked.tests.items():
        if rule in proved:
            proved[rule] = [test for test, runs in tests.items() if runs]
        else:
            unknown[rule] = list(tests)
    return Coverage(proved, unknown)


def as_text(found: Coverage) -> str:
    """The coverage as text for people."""
    width = max(map(len, found.proved)) + 2
    lines = [
        f"{rule if place == 0 else '':{width}}{test}"
        for rule, tests in found.proved.items()
        for place, test in enumerate(tests)
    ]
    total, unproved = len(found.proved), found.unproved
    lines += ["", f"{total - len(unproved)} of {total} rules are proved by a test."]
    if unproved:
        lines.append(f"Proved by none: {' '.join(unproved)}")
    lines += [f"Unknown rule {rule}: named by {', '.join(tests)}" for rule, tests in found.unknown.items()]
    return "\n".join(lines)


def as_json(found: Coverage) -> str:
    """The coverage as JSON."""
    return json.dumps(
        {"proved": dict(found.proved), "unproved": found.unproved, "unknown": dict(found.unknown)}, indent=2
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.rules", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        found = coverage(read_rules(RULES.read_text(encoding="utf-8")), collect())
    except (OSError, Unreadable) as error:
        print(f"rules: {error}", file=sys.stderr)
        return 2
    print(as_json(found) if options.json else as_text(found))
    return 1 if found.unknown else 0


if __name__ == "__main__":
    sys.exit(main())
