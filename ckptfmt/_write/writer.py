"""Writing the records of one participant."""

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
    """Start writing the records of one participant.

    Nothing is created in the store before the first batch is full or the writer publishes.

    Args:
        url: The directory that holds the folders of the participants, such as the URL of a cut.
        participant: The participant name: the path of its folder below ``url``.
        kind: The kind of the participant, such as ``agent``.
        checkpoint_id: The id of the checkpoint.
        compression: ``none``, ``zstd`` or ``auto``; ``auto`` does not compress on the local disk.
        spool: A local folder for segments that are not placed yet. None: the store stages them.
        gate: A gate that can stop the writer.
        limits: Limits for the files that are written.
        tuning: Sizes at which segments, frames and blocks close.

    Returns:
        The writer, a context manager.

    Raises:
        InvalidId: ``participant``, ``kind`` or ``checkpoint_id`` is invalid.
        UnsupportedStore: The URL is of a store that is not supported.
        UnusableDirectory: The URL or ``spool`` cannot be a path.
        ValueError: ``compression`` is invalid.

    Example:
        ::

            with ckptfmt.create(
                "run/step-1200", participant="agent-0", kind="agent", checkpoint_id="step-1200"
            ) as writer:
                writer.write(ckptfmt.Record(ckptfmt.EpisodeId("17-0"), {"messages": []}, boundary=4))
            print(writer.manifest.digest)
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
    """Writes the records of one participant and publishes them, all or nothing.

    :func:`ckptfmt.create` returns one. As a context manager it publishes at the end of the block, and aborts
    when the block raises. Only one thread at a time may use it.

    Attributes:
        accepted: The number of records taken so far. After an error, continue with this record.

    Example:
        ::

            try:
                manifest = writer.publish()
            except ckptfmt.StoreError:
                if not writer.retry():  # the writer started over: write all records again
                    for record in records:
                        writer.write(record)
                manifest = writer.publish()
    """

    _manifest: Manifest | None = None

    @property
    def manifest(self) -> Manifest:
        """The published manifest.

        Raises:
            ValueError: Nothing is published yet.
        """
        if self._manifest is None:
            raise ValueError("nothing is published yet")
        return self._manifest

    def publish(self) -> Manifest:
        """Place the remaining records and the index, then create the manifest.

        The call is idempotent. Everything is durable when it returns.

        Returns:
            The manifest.

        Raises:
            Stopped: The gate was stopped. Nothing is published.
            Conflict: Another manifest exists. It is not replaced.
            SnapshotChanged: Records that were written again differ from the first time.
            OutcomeUnknown: The store did not say whether the manifest was created. Call this again.
            StoreError: The store failed. Call :meth:`retry`, then this again.
            ValueError: The writer was aborted, or must be retried after an interrupt.
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
