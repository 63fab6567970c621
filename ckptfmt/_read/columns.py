"""Records as Arrow, pandas and polars tables, one row per record.

The libraries come with the extra ``frames`` and are imported only when a table is made.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from ckptfmt._errors import MissingLibrary
from ckptfmt._read.stored_record import StoredRecord

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

COLUMNS: Final = (
    *("participant", "kind", "episode", "rollout_id", "attempt", "boundary", "schema", "references"),
    *("size", "payload", "patches"),
)
_BATCH_BYTES: Final = 32 * 1024 * 1024


class RecordSource(Protocol):
    """A participant as the tables need it: its name, its kind and its records."""

    @property
    def name(self) -> str:
        """The participant name."""

    @property
    def kind(self) -> str:
        """The kind of the participant."""

    def __iter__(self) -> Iterator[StoredRecord]: ...


def row(part: RecordSource, record: StoredRecord) -> dict[str, Any]:
    """One record as a row: the names of :data:`COLUMNS` to their values.

    ``payload`` is the payload's text, strict JSON, and ``size`` its length in bytes. A value that JSON cannot
    hold (NaN, an integer beyond 64 bits …) is ``null`` in the text and is listed in ``patches`` as FORMAT.md
    specifies: JSON text as well, or None without patches.
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


def json_line(part: RecordSource, record: StoredRecord) -> bytes:
    """The row of :func:`row` as a line of JSON, with the payload as a JSON value instead of text.

    ``patches`` remain text: their arrays mix types, which tools with one type per column cannot read.
    """
    values = row(part, record)
    values["payload"] = orjson.Fragment(record.json_payload.data)
    return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)


def arrow_schema() -> pyarrow.Schema:
    """The types of the columns. Raises :class:`MissingLibrary` without pyarrow."""
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


def batches(parts: Iterable[RecordSource]) -> Iterator[pyarrow.RecordBatch]:
    """The records of these participants as record batches of about 32 MiB.

    Records are verified while they are read. Damage is raised at the latest after the last batch of a
    participant. Raises :class:`BadCheckpoint`, :class:`StoreError`, and :class:`MissingLibrary` without
    pyarrow.
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


class Columns(ABC):
    """Tables of records: of all participants of a checkpoint, or of one participant."""

    __slots__ = ()

    @abstractmethod
    def _record_sources(self) -> Iterable[RecordSource]:
        """The participants whose records are the rows of the tables."""

    def to_arrow(self) -> pyarrow.Table:
        """All records as an Arrow table in memory, one row per record.

        The columns are ``participant``, ``kind``, ``episode`` (the capture key), ``rollout_id``, ``attempt``,
        ``boundary`` (may be null), ``schema``, ``references`` (a list of strings), ``size`` (bytes of the
        payload's text), ``payload`` (JSON text) and ``patches`` (JSON text or null). A value that JSON cannot
        hold (NaN, an integer beyond 64 bits) is ``null`` in the payload and is listed in ``patches``.

        Returns:
            The table, in the order of the participants and of their records.

        Raises:
            BadCheckpoint: A file of the checkpoint is damaged or missing.
            MissingLibrary: pyarrow is not installed.
            StoreError: The store failed.
        """
        return library("pyarrow").Table.from_batches(
            list(batches(self._record_sources())), schema=arrow_schema()
        )

    def to_pandas(self) -> pandas.DataFrame:
        """The table of :meth:`to_arrow` as a pandas data frame.

        Integer columns have the nullable type ``Int64``.

        Returns:
            The data frame.

        Raises:
            BadCheckpoint: A file of the checkpoint is damaged or missing.
            MissingLibrary: pandas or pyarrow is not installed.
            StoreError: The store failed.
        """
        frames = library("pandas")
        nullable = {library("pyarrow").int64(): frames.Int64Dtype()}
        return self.to_arrow().to_pandas(types_mapper=nullable.get)

    def to_polars(self) -> polars.DataFrame:
        """The table of :meth:`to_arrow` as a polars data frame.

        Returns:
            The data frame.

        Raises:
            BadCheckpoint: A file of the checkpoint is damaged or missing.
            MissingLibrary: polars or pyarrow is not installed.
            StoreError: The store failed.
        """
        table = self.to_arrow()
        frame: polars.DataFrame = library("polars").from_arrow(table)
        return frame


def library(name: str) -> Any:
    """Import an optional library of the extra ``frames``. Raises :class:`MissingLibrary`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingLibrary(
            f"this needs {name}, which is not installed; run: pip install 'ckptfmt[frames]'"
        ) from error
