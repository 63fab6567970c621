"""An opened checkpoint: a mapping from participant names to their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ckptfmt._display import NotebookDisplay
from ckptfmt._errors import BadCheckpoint, Damaged, NotFound
from ckptfmt._limits import Limits
from ckptfmt._model.checkpoint_file import CheckpointBody, sorted_capture_keys
from ckptfmt._model.cut_file import Cut, load_cut
from ckptfmt._model.layout import CheckpointLayout
from ckptfmt._model.names import CHECKPOINT_FILE
from ckptfmt._read.columns import Columns, RecordSource
from ckptfmt._read.listed import Listed
from ckptfmt._read.participant import ParticipantCheckpoint, load_participant
from ckptfmt._read.report import Problem, Report
from ckptfmt._text import count_text, names_text, printable
from ckptfmt._values.patches import Exact
from ckptfmt.stores import Store

_NO_MARKS: Mapping[str, int] = MappingProxyType({})


class Checkpoint(Columns, Mapping[str, ParticipantCheckpoint], NotebookDisplay):
    """An opened checkpoint: a mapping from participant names to :class:`ckptfmt.ParticipantCheckpoint`.

    :func:`ckptfmt.open` and :func:`ckptfmt.latest` return one. For a cut, or a folder without
    ``checkpoint.json``, everything that only ``checkpoint.json`` holds is None or empty.

    A pickle holds the store and a digest, not the contents: unpickling opens the checkpoint again, and raises
    :class:`ckptfmt.Conflict` when the folder holds another checkpoint by then.

    Attributes:
        passed_over: Later checkpoints that are broken or incomplete. Only :func:`ckptfmt.latest` sets it.

    Example:
        ::

            checkpoint = ckptfmt.open("run/step-1200")
            for name, part in checkpoint.items():
                print(name, part.kind, len(part))
    """

    def __init__(
        self,
        layout: CheckpointLayout,
        limits: Limits,
        *,
        body: CheckpointBody | None = None,
        cut: Cut | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self._layout = layout
        self._body = body
        self._cut = cut
        self._names = names if body is None else tuple(body.participants)
        self._limits = limits
        self._loaded: dict[str, ParticipantCheckpoint] = {}
        self.passed_over: tuple[Listed, ...] = ()

    @property
    def url(self) -> str:
        """The folder that was opened."""
        return self._layout.store.url

    @property
    def store(self) -> Store:
        """The store, at the folder that was opened."""
        return self._layout.store

    @property
    def layout(self) -> CheckpointLayout:
        """The paths of its files."""
        return self._layout

    @property
    def id(self) -> str:
        """The checkpoint id."""
        if self._body is not None:
            return self._body.checkpoint_id
        if self._cut is not None:
            return self._cut.checkpoint_id
        return next(iter(self.values())).manifest.checkpoint_id

    @property
    def body(self) -> CheckpointBody | None:
        """The contents of ``checkpoint.json``; None for a cut, or a folder without one."""
        return self._body

    @property
    def sequence(self) -> int | None:
        """The number that orders the checkpoints of a run; None without ``checkpoint.json``."""
        return None if self._body is None else self._body.sequence

    @property
    def cut(self) -> str | None:
        """The name of the cut's folder; None when the checkpoint has no cut."""
        if self._body is not None:
            return None if self._body.cut is None else self._body.cut.name
        return None if self._cut is None else self._cut.name

    @property
    def episodes(self) -> tuple[str, ...]:
        """The capture keys of all saved episodes, sorted.

        Without ``checkpoint.json`` they are read from the indexes.
        """
        if self._body is not None:
            return self._body.episodes
        return sorted_capture_keys(key for part in self.values() for key in part.episodes)

    @property
    def restarts(self) -> tuple[str, ...]:
        """The capture keys of the episodes that no participant saved, sorted."""
        return () if self._body is None else self._body.restarts

    @property
    def marks(self) -> Mapping[str, int]:
        """Rollout id to the attempt up to which the rollout is retired."""
        return _NO_MARKS if self._body is None else self._body.marks

    @property
    def state(self) -> Exact:
        """The controller's state; None without ``checkpoint.json``."""
        return None if self._body is None else self._body.state

    @property
    def digest(self) -> str | None:
        """The inner digest of ``checkpoint.json``; None without one."""
        return None if self._body is None else self._body.digest

    def check_cut(self) -> None:
        """Read the ``cut.json`` that ``checkpoint.json`` names, and check it.

        Raises:
            BadCheckpoint: It is damaged, missing, or belongs to another checkpoint.
            StoreError: The store failed.
        """
        if self._body is None or self._body.cut is None:
            return
        cut = load_cut(self._layout, digest=self._body.cut.digest)
        if cut.checkpoint_id != self._body.checkpoint_id:
            file = self._layout.cut_file
            raise Damaged(f"{file}: this cut belongs to another checkpoint", file=file)

    def __getitem__(self, name: str) -> ParticipantCheckpoint:
        """One participant, whose manifest is read and checked on the first access.

        Args:
            name: The participant name.

        Returns:
            The participant.

        Raises:
            NotFound: There is no such participant (also a KeyError).
            BadCheckpoint: Its manifest is damaged or missing, or needs another version of ckptfmt.
            StoreError: The store failed.
        """
        if name not in self._names:
            known = names_text(self._names) if self._names else "no participants"
            raise NotFound(
                f"{self.url}: there is no participant {ascii(name)[:200]}; the checkpoint has {known}"
            )
        part = self._loaded.get(name)
        if part is None:
            part = self._loaded[name] = self._load(name)
        return part

    def _load(self, name: str) -> ParticipantCheckpoint:
        reference = None if self._body is None else self._body.participants[name]
        layout = self._layout.participant(name)
        digest = None if reference is None else reference.manifest
        part = load_participant(layout, name, digest=digest, limits=self._limits)
        if reference is not None and self._body is not None:
            file = layout.manifest_file
            if part.kind != reference.kind:
                raise Damaged(f"{file}: the kind is not the one that {CHECKPOINT_FILE} states", file=file)
            if part.manifest.checkpoint_id != self._body.checkpoint_id:
                raise Damaged(f"{file}: it was written for another checkpoint", file=file)
        return part

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _record_sources(self) -> Iterable[RecordSource]:
        return self.values()

    def verify(self) -> Report:
        """Read and check every byte, and collect all problems, not only the first.

        Returns:
            The problems, and whether the checkpoint is complete.

        Raises:
            StoreError: The store failed.
        """
        report = Report(complete=self._body is not None)
        try:
            self.check_cut()
        except BadCheckpoint as error:
            report.problems.append(Problem.of(error, self._layout.cut_file))
        episodes: set[str] | None = set()
        for name in self:
            try:
                part = self[name]
            except BadCheckpoint as error:
                report.problems.append(Problem.of(error, self._layout.participant(name).manifest_file))
                episodes = None
                continue
            problems = part.verify()
            report.problems += problems
            if any(problem.file.endswith(part.manifest.index) for problem in problems):
                episodes = None
            if episodes is not None:
                episodes = episodes.union(part.episodes)
        if self._body is not None and episodes is not None and sorted(episodes) != list(self._body.episodes):
            message = f"{CHECKPOINT_FILE}: the episodes are not those of the participants"
            report.problems.append(Problem(CHECKPOINT_FILE, Damaged.code, message))
        return report

    @property
    def identity(self) -> str | None:
        """The digest of the cut or of ``checkpoint.json``: another checkpoint in this folder has another one.

        None without both files.
        """
        return self._cut.digest if self._cut is not None else self.digest

    @property
    def limits(self) -> Limits:
        """The limits that apply to reading it."""
        return self._limits

    def __repr__(self) -> str:
        url, body = printable(self.url), self._body
        participants = count_text(len(self), "participant")
        if body is None:
            return f"<Checkpoint {url}: {participants}, without {CHECKPOINT_FILE}>"
        restarts = f", {count_text(len(body.restarts), 'restart')}" if body.restarts else ""
        return (
            f"<Checkpoint {url}: {printable(body.checkpoint_id)}, sequence {body.sequence}, "
            f"{count_text(len(body.episodes), 'episode')}{restarts}, {participants}, complete>"
        )
