"""The commands, their arguments and their help, as typer reads them.

A command function does no work: it returns the work as a :class:`Job`. :func:`ckptfmt._cli.main` does the
work after typer has returned, because typer handles a broken pipe, an interrupt and an end of file in ways
that differ from the exit statuses of this program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, NamedTuple

import typer

import ckptfmt
from ckptfmt._cli import copy_and_prune, reading
from ckptfmt._cli.arguments import Arguments, Format, age, count, output_path
from ckptfmt._cli.export import export as export_records
from ckptfmt._cli.export import report as write_report
from ckptfmt._cli.output import Output
from ckptfmt._run.pruning import DAY_SECONDS
from ckptfmt._values.compiled import form

PROGRAM: Final = "ckptfmt"
JSON_OPTION: Final = "--json"
_EPILOG: Final = (
    "Exit status: 0 good; 1 a problem in the data (damaged or incomplete; diff: there are differences); "
    "2 wrong usage, not found, store error, or an error of the program (CKPTFMT_DEBUG=1 shows where); "
    "130 interrupted."
)

app = typer.Typer(
    name=PROGRAM,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help with rich would import it, which takes long
)


class Job(NamedTuple):
    """The work of one command.

    Attributes:
        run: Does the work and returns the exit status. Raises :class:`ckptfmt.CheckpointError` and OSError.
        arguments: The arguments of the command.
    """

    run: Callable[[Arguments, Output], int]
    arguments: Arguments


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {ckptfmt.__version__} ({form()})")
        raise typer.Exit


# Without parser=str, typer refuses a path that is not valid UTF-8.
_PATH_HELP: Final = "A local path, or file:// and an absolute path."
_Url = Annotated[str, typer.Argument(metavar="URL", help=_PATH_HELP, parser=str)]
_From = Annotated[str, typer.Argument(metavar="FROM", help=_PATH_HELP, parser=str)]
_To = Annotated[str, typer.Argument(metavar="TO", help=_PATH_HELP, parser=str)]
_Run = Annotated[str, typer.Argument(metavar="RUN", help=_PATH_HELP, parser=str)]
_Participant = Annotated[
    str | None, typer.Argument(metavar="PARTICIPANT", help="Only this participant.", parser=str)
]
_Episode = Annotated[
    str | None,
    typer.Argument(metavar="EPISODE", help="Only this capture key, such as 17-0-a1.", parser=str),
]
# The option is taken out of the command line before typer reads it; help and completion need it here.
_Json = Annotated[
    bool, typer.Option(JSON_OPTION, help="Print one line of JSON, the last on standard output.")
]


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    json: _Json = False,
) -> None:
    """Read, verify, compare, copy and prune checkpoints of rollouts."""


@app.command(epilog=_EPILOG)
def ls(url: _Url, participant: _Participant = None, json: _Json = False) -> Job:
    """List checkpoints, participants or records.

    Lists the checkpoints of a run, the participants of a checkpoint, or the records of a participant.
    """
    return Job(reading.ls, Arguments("ls", url, participant))


@app.command(epilog=_EPILOG)
def show(url: _Url, participant: _Participant = None, json: _Json = False) -> Job:
    """Describe a checkpoint, or one of its participants."""
    return Job(reading.show, Arguments("show", url, participant))


@app.command(epilog=_EPILOG)
def cat(url: _Url, participant: _Participant = None, episode: _Episode = None, json: _Json = False) -> Job:
    """Print stored records, one line of JSON each."""
    return Job(reading.cat, Arguments("cat", url, participant, episode))


@app.command(epilog=_EPILOG)
def verify(
    url: _Url,
    incomplete_ok: Annotated[
        bool,
        typer.Option(
            "--incomplete-ok",
            help="Exit with 0 also when there is no checkpoint.json, as in a cut, and the rest is good.",
        ),
    ] = False,
    json: _Json = False,
) -> Job:
    """Read and check every byte of a checkpoint."""
    return Job(reading.verify, Arguments("verify", url, incomplete_ok=incomplete_ok))


@app.command(epilog=_EPILOG)
def diff(url: _From, other: _To, json: _Json = False) -> Job:
    """Show the records that differ between two checkpoints.

    Names the records that were added, removed or changed, and the places that changed in them.
    """
    return Job(reading.diff, Arguments("diff", url, other=other))


@app.command(epilog=_EPILOG)
def export(
    url: _Url,
    participant: _Participant = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to this file and replace it. Default, and -: standard output.",
            parser=output_path,
        ),
    ] = None,
    format: Annotated[
        Format | None, typer.Option("--format", help="Default: the one that the name of the file implies.")
    ] = None,
    json: _Json = False,
) -> Job:
    """Write records as a table: JSON Lines or parquet.

    The table has one row for each record.
    """
    return Job(export_records, Arguments("export", url, participant, output=output, format=format))


@app.command(epilog=_EPILOG)
def copy(url: _From, other: _To, json: _Json = False) -> Job:
    """Copy a complete checkpoint to another folder.

    Every byte is checked when it is read, and again after it is written.
    """
    return Job(copy_and_prune.copy, Arguments("copy", url, other=other))


@app.command(epilog=_EPILOG)
def prune(
    url: _Run,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="N",
            help="Of the complete checkpoints, keep the N with the highest sequence.",
            parser=count,
        ),
    ] = None,
    keep_age: Annotated[
        float | None,
        typer.Option(
            "--keep-age",
            metavar="AGE",
            help="Keep checkpoints that were completed less than this ago (90s, 30m, 12h, 7d).",
            parser=age,
        ),
    ] = None,
    min_age: Annotated[
        float | None,
        typer.Option(
            "--min-age",
            metavar="AGE",
            help="Leave a cut or file alone that was written less than this ago by the store's clock: "
            "it may belong to a checkpoint that is being written. Default: 1d.",
            parser=age,
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Read every byte of what is kept. A damaged checkpoint does not count as kept."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be removed, and remove nothing.")
    ] = False,
    json: _Json = False,
) -> Job:
    """Remove old checkpoints of a run, and unused files."""
    arguments = Arguments(
        "prune",
        url,
        keep=keep,
        keep_age=keep_age,
        min_age=DAY_SECONDS if min_age is None else min_age,
        verify=verify,
        dry_run=dry_run,
    )
    return Job(copy_and_prune.prune, arguments)


@app.command(epilog=_EPILOG)
def report(
    url: _Url,
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="The HTML file to write. -: standard output.",
            parser=output_path,
        ),
    ],
    json: _Json = False,
) -> Job:
    """Write an HTML page about a checkpoint."""
    return Job(write_report, Arguments("report", url, output=output))
