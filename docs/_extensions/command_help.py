"""The directive ``command-help``: what a command prints for ``--help``, read when the site is built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_PLAIN = {"TYPER_USE_RICH": "0", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100"}


class CommandHelp(SphinxDirective):
    """Takes a program of the project, and a command of it where there is one."""

    required_arguments = 1
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        program, *command = self.arguments
        done = subprocess.run(
            [Path(sys.executable).parent / program, *command, "--help"],
            env={**os.environ, **_PLAIN},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise self.error(f"{' '.join(self.arguments)} --help failed: {done.stderr.strip()}")
        text = done.stdout.strip()
        block = nodes.literal_block(text, text, language="none")
        self.set_source_info(block)
        return [block]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
