"""The report of `make rules`: the tests that prove each rule."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parent.parent

RULES = """\
# Rules

| id | rule |
|---|---|
| AB1 | Something holds. |
| AB2° | Something else holds. |
| CD10 | Names AB1 in its text. |
"""

SETTINGS = """\
[tool.pytest.ini_options]
addopts = ["--strict-markers"]
markers = ["req(*ids): the rules that this test proves"]
"""


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.rules", *options],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )


def report(project: Path) -> Any:
    return json.loads(run(project, "--json").stdout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rules.md").write_text(RULES, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    return tmp_path


def write_tests(project: Path, text: str) -> None:
    (project / "test_it.py").write_text(f"import pytest\n\n{text}", encoding="utf-8")


def test_the_report_lists_the_tests_of_each_rule_and_the_unproved_rules(project: Path) -> None:
    write_tests(project, '@pytest.mark.req("AB1", "CD10")\ndef test_one(): pass\n\ndef test_two(): pass\n')
    result = run(project)
    assert result.returncode == 0, result.stderr
    assert "AB1   test_it.py::test_one\nCD10  test_it.py::test_one\n" in result.stdout
    assert "2 of 3 rules are proved by a test.\nProved by none: AB2\n" in result.stdout


def test_marks_of_classes_and_parameters_count_once_per_function(project: Path) -> None:
    write_tests(
        project,
        '@pytest.mark.req("AB1")\n'
        "class TestIt:\n"
        '    @pytest.mark.parametrize("x", [1, pytest.param("[::]", marks=pytest.mark.req("AB2"))])\n'
        "    def test_one(self, x): pass\n",
    )
    assert report(project) == {
        "proved": {
            "AB1": ["test_it.py::TestIt::test_one"],
            "AB2": ["test_it.py::TestIt::test_one"],
            "CD10": [],
        },
        "unproved": ["CD10"],
        "unknown": {},
    }


@pytest.mark.parametrize("mark", ["skip", "xfail"])
def test_a_test_that_cannot_fail_proves_nothing(project: Path, mark: str) -> None:
    write_tests(project, f'@pytest.mark.{mark}\n@pytest.mark.req("AB1")\ndef test_one(): pass\n')
    assert "AB1" in report(project)["unproved"]


def test_an_unknown_id_is_reported_and_fails(project: Path) -> None:
    write_tests(project, '@pytest.mark.req("AB1", "AB3")\ndef test_one(): pass\n')
    result = run(project)
    assert result.returncode == 1
    assert "Unknown rule AB3: named by test_it.py::test_one" in result.stdout


def test_a_collection_error_is_reported(project: Path) -> None:
    write_tests(project, "import no_such_module\n")
    result = run(project)
    assert result.returncode == 2
    assert "no_such_module" in result.stderr
    assert not result.stdout


def test_a_duplicate_id_is_refused(project: Path) -> None:
    (project / "docs" / "rules.md").write_text(RULES + "| AB1 | Again. |\n", encoding="utf-8")
    result = run(project)
    assert result.returncode == 2
    assert "AB1" in result.stderr


def test_every_id_in_the_tests_of_this_project_is_a_rule() -> None:
    result = run(PROJECT)
    assert result.returncode == 0, result.stdout + result.stderr
