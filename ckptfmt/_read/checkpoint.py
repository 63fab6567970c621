"""A checkpoint as a person holds it: a mapping from participants' names to their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from ckptfmt._errors import CheckpointError, Conflict, Damaged, Incomplete, NotFound
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.checkpoint_file import CHECKPOINT_FILE, CheckpointBody, checked_keys, load_checkpoint_body
from ckptfmt._model.cut_file import CUT_FILE, Cut, load_cut
from ckptfmt._model.fields import is_participant_name
from ckptfmt._model.manifest import MANIFEST_FILE, parse_manifest
from ckptfmt._read.columns import Frames
from ckptfmt._read.participant import ParticipantCheckpoint, load_participant
from ckptfmt._read.report import Report
from ckptfmt._run.orphans import is_of_records
from ckptfmt._text import checkpoint_text
from ckptfmt._values.patches import Exact
from ckptfmt.stores import Url, choose_store
from ckptfmt.stores._interface import Store

if TYPE_CHECKING:
    from ckptfmt._run.listing import Listed
    from ckptfmt._show.diff import CheckpointDiff

_MOST_NAMES: Final = 10
_NO_MARKS: Mapping[str, int] = MappingProxyType({})


def open_checkpoint(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Open a checkpoint, one cut of it, or a folder that :func:`ckptfmt.create` alone wrote.

    ``checkpoint.json`` and ``cut.json`` are read and checked now, manifests when a participant is asked
        for. Raises :class:`NotFound`, :class:`Incomplete` (a checkpoint that was not completed),
        :class:`Damaged`, :class:`Unsupported`, :class:`StoreError`.
    """
    checkpoint = find_checkpoint(choose_store(url), limits)
    checkpoint.check_cut()
    return checkpoint


def find_checkpoint(store: Store, limits: Limits) -> Checkpoint:
    """Like :func:`open_checkpoint`, but without reading the cut that ``checkpoint.json`` names."""
    entries = store.entries("")
    files = {entry.name for entry in entries}
    if CHECKPOINT_FILE in files:
        return Checkpoint(store, load_checkpoint_body(store, limits), None, (), limits)
    if CUT_FILE in files:
        return Checkpoint(store, None, load_cut(store, CUT_FILE), tuple(participants_in(store)), limits)
    if any(entry.is_folder and _has(store.at(entry.name), CUT_FILE) for entry in entries):
        raise Incomplete(
            f"{CHECKPOINT_FILE}: there is none in {store.url}, only cuts: the checkpoint was not completed; "
            "open a cut's folder to look at what it holds",
            file=CHECKPOINT_FILE,
        )
    names = tuple(participants_in(store))
    if not names:
        raise _nothing_here(store, files)
    return Checkpoint(store, None, None, names, limits)


def _nothing_here(store: Store, files: set[str]) -> NotFound | Incomplete:
    if MANIFEST_FILE in files:
        return NotFound(f"{store.url}: this is the folder of one participant; open the folder above it")
    if any(entry.is_folder and _has(store.at(entry.name), CHECKPOINT_FILE) for entry in store.entries("")):
        return NotFound(f"{store.url}: this folder holds checkpoints and is none itself; name one of them")
    if any(map(is_of_records, [*files, *_names_below(store)])):
        return Incomplete(
            f"{MANIFEST_FILE}: there is none in {store.url}, only records: nothing was committed",
            file=MANIFEST_FILE,
        )
    return NotFound(f"{store.url}: there is no checkpoint")


def _names_below(store: Store) -> Iterator[str]:
    for entry in store.entries(""):
        if entry.is_folder and is_participant_name(entry.name):
            yield from (below.name for below in store.entries(entry.name))


def participants_in(store: Store, prefix: str = "") -> Iterator[str]:
    """The names of the participants that committed in a folder, found by looking."""
    for entry in store.entries(prefix):
        name = f"{prefix}/{entry.name}" if prefix else entry.name
        if not entry.is_folder or not is_participant_name(name):
            continue
        folder = store.at(name)
        files = {below.name for below in folder.entries("")}
        if CHECKPOINT_FILE in files or CUT_FILE in files:
            continue  # what lies there belongs to that checkpoint or cut
        if MANIFEST_FILE in files and not _belongs_below(folder, name):
            yield name
        yield from participants_in(store, name)


def _belongs_below(folder: Store, name: str) -> bool:
    """Whether this manifest is that of a participant of some folder below ours."""
    try:
        manifest = parse_manifest(folder.read(MANIFEST_FILE, DEFAULT_LIMITS.manifest_bytes), MANIFEST_FILE)
    except CheckpointError:
        return False  # to be reported when it is opened
    return name.endswith(f"/{manifest.participant}")


def _has(store: Store, name: str) -> bool:
    return any(entry.name == name for entry in store.entries(""))


class Checkpoint(Frames, Mapping[str, ParticipantCheckpoint]):
    """Participants by name. What only ``checkpoint.json`` says is None or empty where there is none.

    It pickles, as its URL: the process that gets it opens the checkpoint again.
    """

    def __init__(
        self,
        store: Store,
        body: CheckpointBody | None,
        cut: Cut | None,
        names: tuple[str, ...],
        limits: Limits,
    ) -> None:
        self._store = store
        self._body = body
        self._cut = cut
        self._names = names if body is None else tuple(body.participants)
        self._limits = limits
        self._loaded: dict[str, ParticipantCheckpoint] = {}
        self.passed_over: tuple[Listed, ...] = ()
        """Later checkpoints that are broken or incomplete; only :func:`ckptfmt.latest` sets it."""
        in_cut = body is not None and body.cut is not None
        self._label = f"{body.cut.name}/" if in_cut and body and body.cut else ""
        self._folder = store.at(self._label.rstrip("/")) if in_cut else store

    @property
    def url(self) -> str:
        return self._store.url

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
        """``checkpoint.json``; None for a cut, or a folder without one."""
        return self._body

    @property
    def sequence(self) -> int | None:
        return None if self._body is None else self._body.sequence

    @property
    def cut(self) -> str | None:
        """The name of the cut's folder."""
        if self._body is not None:
            return None if self._body.cut is None else self._body.cut.name
        return None if self._cut is None else self._cut.name

    @property
    def episodes(self) -> tuple[str, ...]:
        """Sorted capture keys of all that was saved (without ``checkpoint.json``: read from the indexes)."""
        if self._body is not None:
            return self._body.episodes
        return checked_keys(key for part in self.values() for key in part.episodes)

    @property
    def restarts(self) -> tuple[str, ...]:
        return () if self._body is None else self._body.restarts

    @property
    def marks(self) -> Mapping[str, int]:
        return _NO_MARKS if self._body is None else self._body.marks

    @property
    def state(self) -> Exact:
        """The controller's state."""
        return None if self._body is None else self._body.state

    @property
    def digest(self) -> str | None:
        """Inner digest of ``checkpoint.json``."""
        return None if self._body is None else self._body.digest

    def check_cut(self) -> None:
        """Check the ``cut.json`` that ``checkpoint.json`` names. Raises :class:`Damaged`,
        :class:`StoreError`."""
        if self._body is None or self._body.cut is None:
            return
        file = self._label + CUT_FILE
        cut = load_cut(self._folder, file, digest=self._body.cut.digest)
        if cut.checkpoint_id != self._body.checkpoint_id:
            raise Damaged(f"{file}: it is the cut of another checkpoint", file=file)

    def __getitem__(self, name: str) -> ParticipantCheckpoint:
        """One participant; its manifest is read and checked the first time.

        Raises :class:`NotFound` (also a KeyError), :class:`Damaged`, :class:`Unsupported`,
        :class:`StoreError`.
        """
        if name not in self._names:
            raise NotFound(f"{self.url}: there is no participant {ascii(name)[:200]}; {_named(self._names)}")
        part = self._loaded.get(name)
        if part is None:
            part = self._loaded[name] = self._load(name)
        return part

    def _load(self, name: str) -> ParticipantCheckpoint:
        reference = None if self._body is None else self._body.participants[name]
        digest = None if reference is None else reference.manifest
        part = load_participant(
            self._folder, name, f"{self._label}{name}/", digest=digest, limits=self._limits
        )
        if reference is not None and self._body is not None:
            file = f"{self._label}{name}/{MANIFEST_FILE}"
            if part.kind != reference.kind:
                raise Damaged(f"{file}: its kind is not the one that {CHECKPOINT_FILE} names", file=file)
            if part.manifest.checkpoint_id != self._body.checkpoint_id:
                raise Damaged(f"{file}: it was written for another checkpoint", file=file)
        return part

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def verify(self) -> Report:
        """Read and check every byte. Never raises for damage; raises :class:`StoreError`."""
        from ckptfmt._read.verification import verify_checkpoint

        return verify_checkpoint(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.url, self._identity, self._limits, self.passed_over)

    @property
    def _identity(self) -> str | None:
        """What tells it from another checkpoint that is put into its folder later."""
        return self._cut.digest if self._cut is not None else self.digest

    def __repr__(self) -> str:
        return checkpoint_text(self)

    def _repr_html_(self) -> str:
        """For notebooks: what it consists of. Reads the manifests, and no record."""
        from ckptfmt._show.notebook import checkpoint_html

        return checkpoint_html(self)

    def diff(self, other: Checkpoint | Url) -> CheckpointDiff:
        """What changed from this checkpoint to ``other``; see :func:`ckptfmt.diff`."""
        from ckptfmt._show.diff import diff

        return diff(self, other)

    def html_report(self) -> str:
        """A page about this checkpoint, one file without network or script; reads and checks every record.

        Damage is said in the page. Raises :class:`StoreError`.
        """
        from ckptfmt._show.html_report import html_report

        return html_report(self)


def _named(names: tuple[str, ...]) -> str:
    if not names:
        return "it has none"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"it has {', '.join(names[:_MOST_NAMES])}{more}"


def _reopened(url: str, identity: str | None, limits: Limits, passed_over: tuple[Listed, ...]) -> Checkpoint:
    checkpoint = open_checkpoint(url, limits=limits)
    if checkpoint._identity != identity:
        raise Conflict(f"{url}: this is not the checkpoint that was pickled; another one was put there")
    checkpoint.passed_over = passed_over
    return checkpoint
