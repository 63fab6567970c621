"""What the reference shows of an object: public names, never the private path where it is defined."""

from __future__ import annotations

import builtins
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, Final

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_PRIVATE: Final = re.compile(r"\b(?:ckptfmt|ckptctl)(?:\.\w+)*\._\w+(?:\.\w+)*")


def restore_modules() -> None:
    """Let each public class name the module that defines it.

    The packages let them name the public module, as users see it. Types and texts of fields are looked up in
    the module that a class names.
    """
    public = list(_public_modules(("ckptfmt", "ckptctl")))
    private = [module for name, module in sys.modules.items() if name.startswith(("ckptfmt.", "ckptctl."))]
    for name in public:
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and value.__module__ == name:
                for module in private:
                    if vars(module).get(value.__name__) is value and _defines(module, value.__name__):
                        value.__module__ = module.__name__


def _defines(module: ModuleType, name: str) -> bool:
    is_python = str(module.__file__).endswith(".py")  # and no compiled module
    return is_python and bool(re.search(rf"^class {name}\b", inspect.getsource(module), re.MULTILINE))


@cache
def public_paths() -> dict[str, str]:
    """The path where each public object is defined, and its public one."""
    found: dict[str, str] = {}
    for name in _public_modules(("ckptfmt", "ckptctl")):
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            defined_in, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
            if defined_in and qualified:
                found.setdefault(f"{defined_in}.{qualified}", f"{name}.{public}")
    return found


def _public_modules(names: Iterable[str]) -> Iterator[str]:
    """These modules, and those below them that users import from."""
    for name in names:
        if not name.rpartition(".")[2].startswith("_"):
            yield name
            below = pkgutil.iter_modules(getattr(importlib.import_module(name), "__path__", ()), f"{name}.")
            yield from _public_modules(each.name for each in below)


def is_private(path: str) -> bool:
    """Whether nothing public is defined at this path."""
    return _PRIVATE.fullmatch(path) is not None and path not in public_paths()


def hide_private_constructor(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """A class whose constructor takes private types is made by a function: show no signature."""
    if signature is None:
        return None
    if what in ("class", "exception") and any(map(is_private, _PRIVATE.findall(signature))):
        return "", None
    return signature.replace("<factory>", "..."), returns


def hide_private_bases(app: Sphinx, name: str, value: Any, options: Any, bases: list[Any]) -> None:
    """Readers cannot import a private base; its members are shown with the class."""
    shown = [base for base in bases if not is_private(f"{base.__module__}.{base.__qualname__}")]
    bases[:] = shown or [object]


def keep_colons(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Napoleon takes what stands before a colon for a type, in the text of an attribute and of a result."""
    if what in ("attribute", "property") and lines:
        lines[0] = f": {lines[0]}"
    for number, line in enumerate(lines[:-1], 1):
        if line in ("Returns:", "Yields:"):
            text = lines[number].lstrip()
            lines[number] = f"{lines[number].removesuffix(text)}: {text}"


def skip_tuple_fields(
    app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any
) -> bool | None:
    """The docstring of a named tuple describes its fields: Python's own texts of them say nothing."""
    return True if str(getattr(value, "__doc__", "")).startswith("Alias for field number") else None


def leave_builtins_alone(app: Sphinx, doctree: nodes.document) -> None:
    """The type ``bytes`` in a signature is not the attribute ``bytes`` of a class."""
    for link in list(doctree.findall(pending_xref)):
        if (link.get("refdomain"), link.get("reftype")) == ("py", "class") and hasattr(
            builtins, link["reftarget"]
        ):
            link.replace_self(link.children)


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Node) -> nodes.Node | None:
    """The link of a reference that names the path where a public object is defined."""
    if node.get("refdomain") != "py":
        return None
    path = str(node["reftarget"])
    if path not in public_paths().values() and _is_alias(path):
        return shown
    public = public_paths().get(path, path)
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, shown)  # type: ignore[arg-type]


def _is_alias(path: str) -> bool:
    """Whether a private module has an alias or a type variable of this name: readers need no link to it."""
    module, _, name = path.rpartition(".")
    return any(
        name in vars(each) and not isinstance(vars(each)[name], type | FunctionType | ModuleType)
        for each_name, each in sys.modules.items()
        if each_name.startswith(module or ("ckptfmt.", "ckptctl."))
    )


def setup(app: Sphinx) -> dict[str, Any]:
    restore_modules()
    app.connect("autodoc-process-signature", hide_private_constructor)
    app.connect("autodoc-process-bases", hide_private_bases)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)
    app.connect("autodoc-skip-member", skip_tuple_fields)
    app.connect("doctree-read", leave_builtins_alone)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
