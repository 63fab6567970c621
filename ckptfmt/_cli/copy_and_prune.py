"""The commands that write or remove checkpoints: ``copy`` and ``prune``."""

from __future__ import annotations

from dataclasses import asdict

from ckptfmt._cli.arguments import Arguments
from ckptfmt._cli.output import Output
from ckptfmt._cli.progress import bytes_to_read, counted, metered
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._read.opening import find_checkpoint, open_checkpoint
from ckptfmt._run.copying import copy as copy_checkpoint
from ckptfmt._run.pruning import prune_store
from ckptfmt._text import count_text, size_text
from ckptfmt.stores import Store, choose_store


def copy(arguments: Arguments, output: Output) -> int:
    """Copy a complete checkpoint to another folder."""
    with metered("copy") as meter:
        meter.expect(2 * bytes_to_read(open_checkpoint(arguments.url)))  # written, then read back
        result = copy_checkpoint(arguments.url, arguments.other, progress=meter.add)
    output.line(
        f"{arguments.other}: complete; {count_text(result.copied, 'file')} of records copied "
        f"({size_text(result.copied_bytes)}), {result.present} already there"
    )
    output.result({"url": choose_store(arguments.other).url, **asdict(result)})
    return 0


def prune(arguments: Arguments, output: Output) -> int:
    """Remove old checkpoints of a run, and unused files."""
    run = choose_store(arguments.url)
    with metered("prune") as meter:

        def read(folder: Store) -> Store:
            meter.expect(bytes_to_read(find_checkpoint(folder, DEFAULT_LIMITS)))
            return counted(folder, meter.add)

        result = prune_store(
            run,
            keep=arguments.keep,
            keep_seconds=arguments.keep_age,
            minimum_age=arguments.min_age,
            verify=arguments.verify,
            dry_run=arguments.dry_run,
            read=read,
        )
    if result.removed:
        output.table(
            ("would remove" if result.dry_run else "removed", "kind", "files", "size", "reason"),
            [
                (each.path, each.kind, each.files, size_text(each.size), each.reason)
                for each in result.removed
            ],
        )
    if result.kept:
        output.table(("kept", "reason"), [(each.path, each.reason) for each in result.kept])
    done = "would be removed" if result.dry_run else "removed"
    files = sum(each.files for each in result.removed)
    output.line(f"{count_text(files, 'file')}, {size_text(result.size)} {done}")
    output.result(
        {
            "url": run.url,
            "dry_run": result.dry_run,
            "files": files,
            "bytes": result.size,
            "removed": [asdict(each) for each in result.removed],
            "kept": [asdict(each) for each in result.kept],
        }
    )
    return 0
