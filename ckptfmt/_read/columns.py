"""Records as tables: Arrow, pandas, polars. One row a record.

The libraries come with the extra ``frames`` and are imported only when a table is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import orjson

from ckptfmt._errors import Unsupported

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ckptfmt._read.participant import ParticipantCheckpoint
    from ckptfmt._read.stored_record import StoredRecord

COLUMNS: Final = (
    *("participant", "kind", "episode", "rollout_id", "attempt", "boundary", "schema", "references"),
    *("size", "payload", "patches"),
)
_BATCH_BYTES: Final = 32 * 1024 * 1024


def row(part: ParticipantCheckpoint, record: StoredRecord) -> dict[str, Any]:
    """One record as a row, by the names of :data:`COLUMNS`.

    ``size`` is the bytes of the payload's text. ``payload`` is that text, strict JSON; what JSON cannot hold
    (NaN, an integer beyond 64 bits …) stands in it as ``null`` and is listed in ``patches``, JSON text too,
    as FORMAT.md says; None when there is none.
    """
    payload = record.json_payload
    return {
        "participant": part.name,
        "kind": part.kind,
        "episode": record.episode.capture_key,
        "rollout_id": record.episode.rollout_id,
        "attempt": record.episode.attempt,
        "boundary": record.boundary,
        "schema": record.schema,
        "references": list(record.references),
        "size": record.size,
        "payload": payload.data.decode(),
        "patches": payload.patch_data.decode() if payload.patch_data else None,
    }


def json_line(part: ParticipantCheckpoint, record: StoredRecord) -> bytes:
    """The same row as a line of JSON, with the payload as a JSON value instead of text.

    ``patches`` stay text: their arrays mix types, which tools that give a column one type cannot read.
    """
    values = row(part, record)
    values["payload"] = orjson.Fragment(record.json_payload.data)
    return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)


def arrow_schema() -> pyarrow.Schema:
    """The types of the columns. Raises :class:`Unsupported` when pyarrow is missing."""
    arrow = library("pyarrow")
    text, number = arrow.string(), arrow.int64()
    types = {
        **dict.fromkeys(COLUMNS, text),
        **dict.fromkeys(("attempt", "boundary", "schema", "size"), number),
        "references": arrow.list_(text),
        # A column of more than 2 GiB needs the large form.
        "payload": arrow.large_string(),
        "patches": arrow.large_string(),
    }
    may_be_null = {"boundary", "patches"}
    return arrow.schema([arrow.field(name, types[name], name in may_be_null) for name in COLUMNS])


def batches(parts: Iterable[ParticipantCheckpoint]) -> Iterator[pyarrow.RecordBatch]:
    """The records of these participants, verified as they are read, in batches of about 32 MiB.

    Raises what reading raises, at the latest after the last batch of a participant, and
    :class:`Unsupported` when pyarrow is missing.
    """
    library("pyarrow")  # before anything is read
    rows: list[dict[str, Any]] = []
    size = 0
    for part in parts:
        for record in part:
            rows.append(row(part, record))
            size += record.size
            if size >= _BATCH_BYTES:
                yield _batch(rows)
                rows, size = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: list[dict[str, Any]]) -> pyarrow.RecordBatch:
    arrow, schema = library("pyarrow"), arrow_schema()
    columns = [
        arrow.array([values[name] for values in rows], kind)
        for name, kind in zip(schema.names, schema.types, strict=True)
    ]
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def to_arrow(source: Mapping[str, ParticipantCheckpoint] | ParticipantCheckpoint) -> pyarrow.Table:
    """All records of a checkpoint or of one participant as a ``pyarrow.Table``, in memory.

    Columns: participant, kind, episode (capture key), rollout_id, attempt, boundary (may be null), schema,
    references (list), size (bytes), payload and patches (JSON text; see :func:`row`). Raises what reading
    raises, and :class:`Unsupported` when pyarrow is missing.
    """
    parts = source.values() if isinstance(source, Mapping) else (source,)
    return library("pyarrow").Table.from_batches(list(batches(parts)), schema=arrow_schema())


def to_pandas(source: Mapping[str, ParticipantCheckpoint] | ParticipantCheckpoint) -> pandas.DataFrame:
    """The same as a ``pandas.DataFrame``; ``boundary`` is of the nullable type ``Int64``."""
    frames = library("pandas")
    nullable = {library("pyarrow").int64(): frames.Int64Dtype()}
    return to_arrow(source).to_pandas(types_mapper=nullable.get)


def to_polars(source: Mapping[str, ParticipantCheckpoint] | ParticipantCheckpoint) -> polars.DataFrame:
    """The same as a ``polars.DataFrame``."""
    table = to_arrow(source)
    frame: polars.DataFrame = library("polars").from_arrow(table)
    return frame


class Frames:
    """The tables as methods: of a checkpoint (all its participants) and of one participant."""

    def to_arrow(self) -> pyarrow.Table:
        """All records as a ``pyarrow.Table``; see :func:`ckptfmt._read.columns.to_arrow`."""
        return to_arrow(cast(Any, self))

    def to_pandas(self) -> pandas.DataFrame:
        """All records as a ``pandas.DataFrame``; see :func:`ckptfmt._read.columns.to_arrow`."""
        return to_pandas(cast(Any, self))

    def to_polars(self) -> polars.DataFrame:
        """All records as a ``polars.DataFrame``; see :func:`ckptfmt._read.columns.to_arrow`."""
        return to_polars(cast(Any, self))


def library(name: str) -> Any:
    """Import what the extra ``frames`` brings. Raises :class:`Unsupported` when it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Unsupported(
            f"this needs {name}, which is not installed; run: pip install 'ckptfmt[frames]'"
        ) from error
