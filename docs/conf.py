"""How Sphinx builds the site: ``make docs``.

The source folder is the root of the repository, so that links between FORMAT.md, CHANGELOG.md and the pages
below ``docs`` work on the site as they do where the repository is read. Nothing is fetched.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import ckptfmt

project = "ckptfmt"
author = "the authors of ckptfmt"
project_copyright = "the authors of ckptfmt"
version = release = ckptfmt.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "command_help",
    "public_names",
    "repository_links",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/**.rst",
    "FORMAT.md",
    "CHANGELOG.md",
    "tests/vectors/README.md",
]
exclude_patterns = [".*", "build", "dist"]

nitpicky = True
# Names of the standard library and of other packages have no page here, and their own sites are not read: the
# build needs no network. Single backquotes in a docstring are a link where they name something, else code.
nitpick_ignore_regex = [
    ("py:.*", r"(_?asyncio|abc|array|collections|contextlib|enum|os|pathlib|types|typing)(\..*)?"),
    ("py:.*", r"(aiohttp|hypothesis|pandas|pyarrow|polars)\..*"),
    ("py:obj", r".*"),
]
default_role = "py:obj"
highlight_language = "none"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"ckptfmt {version}"
html_copy_source = False
html_show_sphinx = False
# The pages lie in folders as in the repository; the top one leads to the first of them.
html_additional_pages = {"index": "to_first_page.html"}
templates_path = ["_templates"]
