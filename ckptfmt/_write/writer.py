"""Writing one participant's records."""

from __future__ import annotations

from ckptfmt._limits import DEFAULT_LIMITS, DEFAULT_TUNING, Limits, Tuning
from ckptfmt._model.index_file import seal_index
from ckptfmt._model.manifest import Manifest
from ckptfmt._write.gate import Gate
from ckptfmt._write.manifest_publication import publish_participant
from ckptfmt._write.record_writer import Compression, RecordWriter
from ckptfmt.stores import LocalPath, Url


def create(
    url: Url,
    *,
    participant: str,
    kind: str,
    checkpoint_id: str,
    compression: Compression = "auto",
    spool: LocalPath | None = None,
    gate: Gate | None = None,
    limits: Limits = DEFAULT_LIMITS,
    tuning: Tuning = DEFAULT_TUNING,
) -> Writer:
    """Start writing the records of ``participant`` below the directory ``url``.

    Nothing is made on disk until the first batch is full or the writer publishes. ``compression``:
        ``auto`` is none on the local disk. ``spool``: a folder for segments that wait to be placed (default:
        they grow beside their place). ``gate``: who holds it can stop the writer. Raises :class:`InvalidId`
        for a name, kind or id that cannot be one, :class:`Unsupported` for a URL of another store,
        :class:`UnusableDirectory` for what can be no path.
    """
    return Writer(
        url,
        participant=participant,
        kind=kind,
        checkpoint_id=checkpoint_id,
        compression=compression,
        spool=spool,
        gate=gate,
        limits=limits,
        tuning=tuning,
    )


class Writer(RecordWriter):
    """Takes records one at a time, from one thread at a time; publishes them all or nothing.

    As a context manager it publishes when the block ends, and aborts when it raises. Make one with
        :func:`create`.
    """

    _manifest: Manifest | None = None

    @property
    def manifest(self) -> Manifest:
        """What was published. Raises ValueError before."""
        if self._manifest is None:
            raise ValueError("nothing is published yet")
        return self._manifest

    def publish(self) -> Manifest:
        """Place what is left, then create the manifest; returns when all of it is durable. Harmless when
        repeated.

        Raises :class:`Stopped`, :class:`Conflict` (another manifest is there), :class:`StoreError` and
        its kinds (call :meth:`retry` and then this again), :class:`OutcomeUnknown`, :class:`Unsupported`.
        """
        if self._manifest is not None:
            return self._manifest
        segments, rows = self._place_all()
        index = seal_index(rows, self._limits, self._tuning)
        manifest = Manifest(
            checkpoint_id=self._checkpoint_id,
            participant=self._participant,
            kind=self._kind,
            segments=segments,
            index=index.name,
            records=self.accepted,
        )
        self._manifest = publish_participant(self._folder, manifest, index, self._gate, self._limits)
        self._close()
        return self._manifest

    @property
    def _is_complete(self) -> bool:
        return self._manifest is not None

    def _complete(self) -> None:
        self.publish()
