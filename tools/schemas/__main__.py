"""Write the JSON Schemas to docs/schemas: `python -m tools.schemas`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tools.schemas.files import SCHEMAS

FOLDER: Final = Path(__file__).parents[2] / "docs" / "schemas"


def main(folder: Path = FOLDER) -> None:
    """Write every schema to a file in `folder`."""
    for name, schema in SCHEMAS.items():
        path = folder / f"{name}.schema.json"
        path.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
    print(f"{len(SCHEMAS)} schemas written to {folder}")


if __name__ == "__main__":
    main()
