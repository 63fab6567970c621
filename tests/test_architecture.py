"""The rooms of docs/architecture.md: every module is named, and imports only what stands before it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

PROJECT: Final = Path(__file__).parents[1]
PAGE: Final = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES: Final = ("ckptfmt", "ckptctl")


def listed(package: str) -> list[str]:
    """The modules that the page names, in its order, as Python names them."""
    section = PAGE.split(f"\n### `{package}`\n")[1].split("\n## ")[0].split("\n### ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    return [package if name == "__init__" else f"{package}.{name.replace('/', '.')}" for name in names]


def modules(package: str) -> dict[str, Path]:
    found = {}
    for path in sorted((PROJECT / package).rglob("*.py*")):
        if path.suffix in (".py", ".pyx"):
            parts = path.relative_to(PROJECT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: set[str]) -> Iterator[str]:
    """The modules of ours that this one imports as it is loaded."""
    if path.suffix == ".pyx":  # no Python that can be parsed: it holds no import of ours
        assert not re.search(r"ckptfmt|ckptctl", path.read_text(encoding="utf-8"))
        return
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for each in node.names:  # from a package: a module in it, or a name that it holds
                inner = f"{node.module}.{each.name}"
                name = inner if inner in known else str(node.module)
                if name in known:
                    yield name
        waiting += ast.iter_child_nodes(node)


KNOWN: Final = {name: path for package in PACKAGES for name, path in modules(package).items()}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_names_every_module_once(package: str) -> None:
    names = listed(package)
    assert len(names) == len(set(names))
    missing, gone = modules(package).keys() - names, names - modules(package).keys()
    assert not missing, f"docs/architecture.md does not name {sorted(missing)}"
    assert not gone, f"docs/architecture.md names {sorted(gone)}, which are not there"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_module_imports_only_what_stands_before_it(package: str) -> None:
    order = [name for each in PACKAGES[: PACKAGES.index(package) + 1] for name in listed(each)]
    wrong = {
        f"{name} imports {other}"
        for place, name in enumerate(order)
        if name in modules(package)
        for other in imports(KNOWN[name], set(KNOWN))
        if other not in order[:place]
    }
    assert not wrong, f"against the order of docs/architecture.md: {', '.join(sorted(wrong))}"


def test_imports_are_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "import a.b\n"
        "from a import c, value\n"
        "if TYPE_CHECKING:\n    import a.types\nelse:\n    import a.otherwise\n"
        "try:\n    import a.tried\nexcept ImportError:\n    pass\n"
        "class C:\n    import a.inside\n    def f(self):\n        import a.later\n",
        encoding="utf-8",
    )
    known = {"a", *(f"a.{name}" for name in ("b", "c", "types", "otherwise", "tried", "inside", "later"))}
    assert sorted(imports(path, known)) == ["a", "a.b", "a.c", "a.inside", "a.otherwise", "a.tried"]
