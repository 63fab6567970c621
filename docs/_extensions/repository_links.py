"""Links to a folder of the repository lead to the page about it, as on a code host."""

from __future__ import annotations

import posixpath
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx


def lead_to_pages(app: Sphinx, doctree: nodes.document) -> None:
    """A link to ``folder`` leads to ``folder/README``, or to the page ``folder`` beside it."""
    here = posixpath.dirname(app.env.current_document.docname)
    for link in doctree.findall(pending_xref):
        if link.get("reftype") != "myst":
            continue
        folder = posixpath.normpath(posixpath.join(here, link["reftarget"].rstrip("/")))
        for page in (f"{folder}/README", folder):
            if page in app.env.found_docs:
                link.update_all_atts({"refdomain": "std", "reftype": "doc", "reftarget": f"/{page}"})
                link["refexplicit"] = True
                break


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", lead_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
