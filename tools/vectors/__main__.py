"""Write the missing vectors: `python -m tools.vectors`. Existing vectors are never changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools.vectors import (
    broken_bodies,
    broken_files,
    broken_frames,
    broken_index,
    broken_lives,
    broken_records,
    noncanonical,
    valid,
)
from tools.vectors.raw import Files

VECTORS: Final = Path(__file__).parents[2] / "tests" / "vectors"
_BROKEN: Final = (broken_files, broken_bodies, broken_index, broken_frames, broken_records, broken_lives)


def all_cases() -> Iterator[tuple[str, Files, Any]]:
    """Yield the folder of each case, its files, and its twin."""
    for name, good in valid.cases():
        yield f"valid/{name}", *good.build()
    for name, other in noncanonical.cases():
        yield f"valid/{name}", *other.build()
    for module in _BROKEN:
        for name, broken in module.cases():
            yield f"invalid/{name}", broken.files, broken.twin


def write_case(folder: Path, files: Files, twin: Any) -> bool:
    """Write one case atomically. If its folder exists, do nothing and return False."""
    if folder.exists():
        return False
    made = folder.with_name(f".{folder.name}")
    shutil.rmtree(made, ignore_errors=True)
    text = json.dumps(twin, separators=(",", ":")) + "\n"
    for name, data in {"twin.json": text.encode(), **files}.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    made.rename(folder)
    return True


def digest_lines(vectors: Path) -> Iterator[str]:
    """Yield a line for each case: the digest of the paths and bytes of its files, sorted by path."""
    for kind in ("invalid", "valid"):
        for case in sorted((vectors / kind).iterdir()):
            files = {path.relative_to(case).as_posix(): path for path in case.rglob("*") if path.is_file()}
            digest = hashlib.sha256()
            for name in sorted(files):
                data = files[name].read_bytes()
                digest.update(b"%b\0%d\0%b" % (name.encode(), len(data), data))
            yield f"{digest.hexdigest()}  {kind}/{case.name}\n"


def main(vectors: Path = VECTORS) -> None:
    """Write the missing vectors and the file of digests."""
    written = [name for name, files, twin in all_cases() if write_case(vectors / name, files, twin)]
    (vectors / "SHA256SUMS").write_text("".join(digest_lines(vectors)), encoding="ascii")
    print("\n".join(f"written: {name}" for name in written))
    print(f"{len(written)} vectors written; the others exist and were not changed")


if __name__ == "__main__":
    main()
