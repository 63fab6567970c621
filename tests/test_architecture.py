"""The rooms of docs/architecture.md: every module is in one, and imports only from rooms above its own."""

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


def rooms(package: str) -> list[list[str]]:
    """The rows of the page's table, in its order: each names one room, or files that stand side by side."""
    section = PAGE.split(f"\n### `{package}`\n")[1].split("\n## ")[0].split("\n### ")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [
        [
            package if name == "__init__" else f"{package}.{name.strip('/')}"
            for name in re.findall(r"`([^`]+)`", cell)
        ]
        for cell in cells
    ]


def modules(package: str) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((PROJECT / package).rglob("*.py*")):
        if path.suffix in (".py", ".pyx"):
            parts = path.relative_to(PROJECT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: set[str]) -> Iterator[str]:
    """The modules of ours that this one imports anywhere: also for type checkers, or in a function."""
    if path.suffix == ".pyx":  # not Python that can be parsed
        assert not re.search(r"ckptfmt|ckptctl", path.read_text(encoding="utf-8"))
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            for each in node.names:  # from a package: a module in it, or a name that it holds
                inner = f"{node.module}.{each.name}"
                name = inner if inner in known else str(node.module)
                if name in known:
                    yield name


def room_of(module: str, package: str) -> int:
    """The number of the row that names the module, or the folder that it lies in."""
    for number, row in enumerate(rooms(package)):
        if any(module == name or (name != package and module.startswith(f"{name}.")) for name in row):
            return number
    raise AssertionError(f"docs/architecture.md has no room for {module}")


KNOWN: Final = {name: path for package in PACKAGES for name, path in modules(package).items()}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_has_a_room_and_every_room_a_module(package: str) -> None:
    taken = {room_of(module, package) for module in modules(package)}
    assert taken == set(range(len(rooms(package))))
    names = [name for row in rooms(package) for name in row]
    assert len(names) == len(set(names))
    gone = [name for name in names if name not in KNOWN]
    assert not gone, f"docs/architecture.md names {gone}, which are not there"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_room_imports_only_from_rooms_above_it(package: str) -> None:
    wrong = {
        f"{module} imports {other}"
        for module, path in modules(package).items()
        for other in imports(path, set(KNOWN))
        if other.split(".")[0] == package and other != module
        if not _may_import(room_of(module, package), room_of(other, package), module, other)
    }
    assert not wrong, f"against the order of docs/architecture.md: {', '.join(sorted(wrong))}"


def _may_import(room: int, other: int, module: str, imported: str) -> bool:
    """From a room above; within a room from any other module, which the next test bounds."""
    return other < room or (other == room and module.count(".") > 0 and imported.count(".") > 0)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    waiting = {
        module: {other for other in imports(path, set(KNOWN)) if other != module}
        for module, path in modules(package).items()
    }
    while free := [module for module, others in waiting.items() if not others & waiting.keys()]:
        for module in free:
            del waiting[module]
    assert not waiting, f"these import each other in a circle: {sorted(waiting)}"


def test_the_format_does_not_import_the_control_plane() -> None:
    control_plane = set(modules("ckptctl"))
    assert not [name for name, path in modules("ckptfmt").items() if list(imports(path, control_plane))]


def test_the_control_plane_uses_only_public_names_of_the_format() -> None:
    private = {
        name for name in modules("ckptfmt") if any(part.startswith("_") for part in name.split(".")[1:])
    }
    private.discard("ckptfmt._public_names")  # how both packages name what is public
    wrong = {
        f"{name} imports {other}"
        for name, path in modules("ckptctl").items()
        for other in imports(path, private)
    }
    assert not wrong


def test_only_stores_call_the_operating_system() -> None:
    """And the command for the files that a user names, and a writer for the folder of its spool."""
    allowed = ("ckptfmt.stores.", "ckptfmt._cli", "ckptfmt.testing.", "ckptfmt._values.compiled")
    system = {"os", "os.path", "shutil", "pathlib", "stat", "glob"}
    wrong = {
        name
        for name, path in modules("ckptfmt").items()
        if not name.startswith(allowed) and system.intersection(imports(path, system))
    }
    assert wrong <= {"ckptfmt._values.conversion"}  # a path is one of the values that it converts


def test_no_python_file_is_long() -> None:
    """A long file holds two nouns: split it."""
    tracked = [
        path
        for folder in (*PACKAGES, "tests", "tools", "benchmarks")
        for path in (PROJECT / folder).rglob("*.py")
    ]
    long = {
        str(path.relative_to(PROJECT)) for path in tracked if len(path.read_text("utf-8").splitlines()) >= 400
    }
    assert not long


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
    names = ("b", "c", "types", "otherwise", "tried", "inside", "later")
    known = {"a", *(f"a.{name}" for name in names)}
    assert sorted(imports(path, known)) == sorted(known)
