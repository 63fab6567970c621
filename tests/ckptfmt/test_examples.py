"""The notebooks in ``examples/`` run, both as scripts and inside a running event loop as in a kernel."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from tests.ckptfmt.building import build, many_records

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def run_notebook(path: Path) -> list[Any]:
    """Run the code cells in order. Returns what each displays: the value of its last expression."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"{path.name}, cell {number}")
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}, cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), path.name, "eval"), names))
            display(shown[-1])
    return shown


def display(value: Any) -> None:
    """Display a value as a kernel does."""
    if hasattr(value, "_repr_html_"):
        assert value._repr_html_()
    assert repr(value)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run_notebook(path)


def test_the_notebook_displays_what_its_text_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a coroutine, as in a kernel, and displays what its text says."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def kernel() -> list[Any]:
        return run_notebook(EXAMPLES / "look_into_a_checkpoint.ipynb")

    shown = [value for value in asyncio.run(kernel()) if value is not None]
    listing, checkpoint, payload, ok = shown[:4]
    assert isinstance(listing, ckptfmt.Listing)
    assert [each.state for each in listing] == ["complete", "complete"]
    assert checkpoint.sequence == 2
    assert len(payload["messages"]) == 4
    assert ok is True


def test_notebooks_are_stored_without_outputs() -> None:
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert all(not cell.get("outputs") for cell in cells)


def test_every_call_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    """No call starts an event loop."""

    async def notebook() -> None:
        run = tmp_path / "run"
        ckptfmt.start_life(run)
        built = build(run / "step-1", many_records(5))
        checkpoint = ckptfmt.open(built.folder)
        assert checkpoint.verify().ok
        assert ckptfmt.verify(built.folder).ok
        assert len(list(checkpoint["agent-0"])) == 5
        assert checkpoint["tools/0"]["r1"].payload["number"] == 1
        assert ckptfmt.latest(run).sequence == 1
        assert len(ckptfmt.list(run)) == 1
        assert ckptfmt.diff(built.folder, built.cut_folder).participants[0].is_same
        assert checkpoint.to_arrow().num_rows == len(checkpoint.to_pandas()) == checkpoint.to_polars().height
        assert "step-1" in ckptfmt.html_report(checkpoint)
        assert ckptfmt.copy(built.folder, tmp_path / "copy").copied > 0
        assert ckptfmt.prune(run, keep=1).removed == ()
        assert ckptfmt.plain((1,)) == [1]

    asyncio.run(notebook())


def test_an_interrupted_cell_publishes_nothing_and_can_run_again(tmp_path: Path) -> None:
    """The kernel is interrupted while a cell writes records, and the cell is run again."""

    def cell(interrupted: bool) -> None:
        with ckptfmt.create(tmp_path / "c", participant="a", kind="agent", checkpoint_id="c") as writer:
            for number, record in enumerate(many_records(5)):
                if interrupted and number == 3:
                    raise KeyboardInterrupt
                writer.write(record)

    async def kernel() -> None:
        with pytest.raises(KeyboardInterrupt):
            cell(interrupted=True)
        assert not (tmp_path / "c").exists()
        cell(interrupted=False)
        assert len(ckptfmt.open(tmp_path / "c")["a"]) == 5

    asyncio.run(kernel())
