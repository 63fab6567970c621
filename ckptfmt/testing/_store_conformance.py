"""The test suite that every implementation of a store must pass."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ckptfmt
from ckptfmt._errors import Conflict, Damaged, LimitExceeded, NotFound, Stopped
from ckptfmt.stores import Store
from ckptfmt.testing._counting_store import CountingStore

_UNUSUAL_NAMES = ("a b.json", "é\u2028.json", "x#y?z%20.json", "-rf", ".hidden")
_PIECE = bytes(range(256)) * 1000


@contextmanager
def _raises(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def _never() -> bool:
    return False


def _always() -> bool:
    return True


def _names(store: Store, folder: str = "") -> list[str]:
    """The paths of the files below a folder."""
    return [each.path for each in store.walk(folder) if not each.is_folder]


class StoreConformance:
    """Tests for an implementation of :class:`ckptfmt.stores.Store`.

    A subclass that implements :meth:`make_store` makes pytest run them. The last tests save, read, list, copy
    and prune checkpoints in the store, and count its calls.

    Example:
        ::

            class TestMyStore(StoreConformance):
                def make_store(self, tmp_path: Path) -> Store:
                    return MyStore(f"my://{tmp_path.name}")
    """

    def make_store(self, tmp_path: Path) -> Store:
        """Create a store whose place is empty; a subclass implements this method.

        Args:
            tmp_path: An empty folder of the local disk, another one for each test.

        Returns:
            The store.
        """
        raise NotImplementedError

    # Writing

    def test_a_created_file_is_never_replaced(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("a/b.json", b"first")
        with _raises(Conflict):
            store.create("a/b.json", b"second")
        assert store.read("a/b.json", 100) == b"first"
        assert _names(store) == ["a/b.json"]

    def test_only_one_of_many_concurrent_creates_succeeds(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        start = threading.Barrier(8)

        def create(number: int) -> bool:
            start.wait()
            try:
                store.create("one.json", b"%d" % number)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = [number for number, created in enumerate(pool.map(create, range(8))) if created]
        assert len(won) == 1
        assert store.read("one.json", 100) == b"%d" % won[0]

    def test_a_placed_file_is_complete_and_replaces_an_older_one(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.place("f/x", (b"", _PIECE, b"", _PIECE), _never)
        assert store.read("f/x", 10**7) == _PIECE * 2
        store.place("f/x", (b"short",), _never)
        assert store.read("f/x", 10**7) == b"short"
        assert _names(store) == ["f/x"]

    def test_a_stopped_place_leaves_nothing(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        with _raises(Stopped):
            store.place("x", (_PIECE,), _always)
        store.place("y", (b"before",), _never)
        with _raises(Stopped):
            store.place("y", (_PIECE,), _always)
        assert store.read("y", 100) == b"before"
        assert _names(store) == ["y"]

    def test_a_place_whose_chunks_raise_leaves_nothing(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)

        def fail() -> Iterator[bytes]:
            yield _PIECE
            raise ZeroDivisionError

        with _raises(ZeroDivisionError):
            store.place("x", fail(), _never)
        assert _names(store) == []

    def test_a_staged_file_has_no_name_until_it_is_placed(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        staged = store.stage()
        assert _names(store) == []
        staged.append((b"one ", memoryview(b"two ")), _never)
        staged.sync()
        assert staged.unsynced == 0
        staged.append((b"three",), _never)
        with _raises(NotFound):
            store.read("name", 100)
        staged.place("name", _never)
        staged.discard()
        staged.discard()
        assert store.read("name", 100) == b"one two three"
        assert _names(store) == ["name"]

    def test_an_append_that_fails_adds_nothing(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        staged = store.stage()

        def fail() -> Iterator[bytes]:
            yield b"lost"
            raise ZeroDivisionError

        staged.append((b"kept ",), _never)
        with _raises(ZeroDivisionError):
            staged.append(fail(), _never)
        with _raises(Stopped):
            staged.append((b"stopped",), _always)
        staged.append((b"too",), _never)
        with _raises(Stopped):
            staged.place("x", _always)
        staged.place("x", _never)
        staged.discard()
        assert store.read("x", 100) == b"kept too"

    def test_a_discarded_file_leaves_nothing(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        staged = store.stage()
        staged.append((_PIECE,), _never)
        staged.discard()
        assert _names(store) == []

    def test_deleting_a_missing_file_is_no_error(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("a/x", b"1")
        store.delete("a/x")
        store.delete("a/x")
        store.delete("nowhere/x")
        assert _names(store) == []

    # Reading

    def test_parts_of_a_file_are_read(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("x", b"0123456789")
        assert store.read_range("x", 2, 3) == b"234"
        assert store.read_range("x", 8, 100) == b"89"
        assert store.read_range("x", 100, 5) == b""
        with store.open("x") as file:
            assert file.size == 10
            assert [file.read(4), file.read(4), file.read(4), file.read(4)] == [b"0123", b"4567", b"89", b""]

    def test_a_file_that_is_too_large_is_not_read(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("x", b"0123456789")
        assert store.read("x", 10) == b"0123456789"
        with _raises(LimitExceeded):
            store.read("x", 9)

    def test_missing_names_are_not_found(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("file", b"1")
        for name in ("x", "a/b/c", "file/below"):
            with _raises(NotFound):
                store.read(name, 10)
            with _raises(NotFound):
                store.read_range(name, 0, 1)
            with _raises(NotFound), store.open(name):
                pass
            with _raises(NotFound):
                store.stat(name)
            with _raises(NotFound):
                store.entries(name)
            assert list(store.walk(name)) == []

    def test_a_folder_is_not_read_as_a_file(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("folder/x", b"1")
        try:
            store.read("folder", 10)
        except (NotFound, Damaged):
            return
        raise AssertionError("a folder was read as a file")

    def test_names_are_taken_literally(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        for name in _UNUSUAL_NAMES:
            store.create(f"in/{name}", name.encode())
        assert [each.name for each in store.entries("in")] == sorted(_UNUSUAL_NAMES)
        assert all(store.read(f"in/{name}", 100) == name.encode() for name in _UNUSUAL_NAMES)

    # Inspection

    def test_entries_are_sorted_and_tell_files_from_folders(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        for name in ("b/y", "b/x", "b/c/z", "a"):
            store.create(name, b"12345")
        assert [(each.path, each.is_folder, each.is_file) for each in store.entries("")] == [
            ("a", False, True),
            ("b", True, False),
        ]
        assert [each.path for each in store.entries("b")] == ["b/c", "b/x", "b/y"]
        assert [each.name for each in store.at("b").entries("")] == ["c", "x", "y"]
        assert store.entries("")[0].size == store.stat("a").size == 5
        assert store.stat("b").is_folder
        assert not store.stat("b").is_file

    def test_a_walk_lists_a_folder_before_its_content(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        for name in ("b/c/z", "b/x", "a"):
            store.create(name, b"1")
        found = [each.path for each in store.walk("")]
        assert sorted(found) == ["a", "b", "b/c", "b/c/z", "b/x"]
        assert all(
            found.index(path.rpartition("/")[0]) < place for place, path in enumerate(found) if "/" in path
        )
        assert sorted(each.path for each in store.walk("b")) == ["b/c", "b/c/z", "b/x"]

    def test_modification_times_use_the_clock_of_the_store(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        before = store.server_time()
        store.create("x", b"1")
        after = store.server_time()
        # The resolution of file times may be a second.
        assert before - 2 <= store.stat("x").modified == store.entries("")[0].modified <= after + 2
        assert _names(store) == ["x"]

    def test_a_store_contains_the_folders_below_it(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        assert store.contains(store.at("a"))
        assert store.contains(store.at("a/b"))
        assert not store.contains(store)
        assert not store.at("a").contains(store)
        assert not store.at("a").contains(store.at("ab"))

    # Folders, durability, pickling

    def test_only_empty_folders_are_removed(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("a/x", b"1")
        assert not store.remove_empty_folder("a")
        store.delete("a/x")
        assert store.remove_empty_folder("a")
        assert store.remove_empty_folder("a")
        store.create("b/c/x", b"1")
        store.remove_created_folders()
        assert store.read("b/c/x", 10) == b"1"

    def test_written_files_can_be_made_durable(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("a/b/x", b"1")
        store.make_durable("a/b")
        store.make_folder_durable("a/b")
        store.at("a").make_durable("")

    def test_check_usable_leaves_nothing(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        with _raises(NotFound):
            store.at("nowhere").check_usable()
        store.create("a/x", b"1")
        store.at("a").check_usable()
        assert _names(store) == ["a/x"]

    def test_a_pickled_store_refers_to_the_same_place(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        store.create("a/x", b"1")
        copy = pickle.loads(pickle.dumps(store.at("a")))
        assert (copy.url, copy.read("x", 10)) == (store.at("a").url, b"1")

    # The whole library

    def test_a_checkpoint_is_saved_and_read_back(self, tmp_path: Path) -> None:
        run = self.make_store(tmp_path)
        store = run.at("step-1")
        cut = _checkpoint(store, 1)
        checkpoint = ckptfmt.open(store)
        assert list(checkpoint) == ["agent-0", "tools/0"]
        assert checkpoint["tools/0"]["r7"].payload == {"number": 7, "nan": None}
        assert [each.payload["number"] for each in checkpoint["agent-0"]] == list(range(20))
        copy = pickle.loads(pickle.dumps(checkpoint))
        assert copy["agent-0"]["r3"].payload == checkpoint["agent-0"]["r3"].payload
        assert checkpoint.verify().ok
        assert ckptfmt.open(store.at(cut)).verify().ok
        assert ckptfmt.start_life(run) == 0
        assert ckptfmt.start_life(run, "step-1") == 1
        assert [each.source_checkpoint_id for each in ckptfmt.list(run).lives] == [None, "step-1"]

    def test_damage_is_found(self, tmp_path: Path) -> None:
        store = self.make_store(tmp_path)
        cut = _checkpoint(store, 1)
        manifest = ckptfmt.open(store)["agent-0"].manifest
        file = f"{cut}/agent-0/{manifest.segments[0].file}"
        data = store.read(file, 10**6)
        store.place(file, (data[:50], bytes([data[50] ^ 1]), data[51:]), _never)
        assert [each.file for each in ckptfmt.verify(store).problems] == [file]
        store.delete(file)
        assert [each.code for each in ckptfmt.verify(store).problems] == ["incomplete"]

    def test_a_run_is_listed_copied_and_pruned(self, tmp_path: Path) -> None:
        run = self.make_store(tmp_path)
        for step in (1, 2, 10):
            _checkpoint(run.at(f"step-{step}"), step)
        left = ckptfmt.create_cut(run.at("step-11"), "step-11")
        assert [(each.name, each.state) for each in ckptfmt.list(run)] == [
            *((f"step-{step}", "complete") for step in (1, 2, 10)),
            ("step-11", "incomplete"),
        ]
        ckptfmt.copy(run.at("step-10"), run.at("copies/step-10"))
        assert ckptfmt.open(run.at("copies/step-10")).digest == ckptfmt.open(run.at("step-10")).digest
        with _raises(Conflict):
            ckptfmt.copy(run.at("step-10"), run.at("step-10/inside"))
        removed = ckptfmt.prune(run, keep=1, minimum_age=0).removed
        assert sorted(each.path for each in removed) == ["step-1", f"step-11/{left.name}", "step-2"]
        assert [each.name for each in ckptfmt.list(run)] == ["step-10"]
        assert ckptfmt.latest(run).verify().ok

    def test_opening_and_fetching_take_a_constant_number_of_calls(self, tmp_path: Path) -> None:
        """The number depends neither on other files in the run nor on the number of records."""
        run = self.make_store(tmp_path)
        _checkpoint(run.at("step-0"), 0)
        counts = []
        for beside in (0, 12):
            for number in range(beside):
                run.create(f"step-0/notes/{number}.txt", b"not of the format")
                run.create(f"other-{number}/x/y/z.txt", b"not of the format")
            counting = CountingStore(run)
            checkpoint = ckptfmt.open(counting.at("step-0"))
            opened = dict(counting.counts())
            assert checkpoint["agent-0"]["r3"].payload["number"] == 3
            counts.append((opened, counting.counts()))
        assert counts[0] == counts[1]
        # Opening reads checkpoint.json and cut.json. Fetching one record reads the manifest, the head of the
        # index (with its only block), and the record.
        assert counts[0] == ({"read": 2}, {"read": 3, "read_range": 2})

    def test_the_calls_of_a_listing_grow_only_with_the_checkpoints(self, tmp_path: Path) -> None:
        run = self.make_store(tmp_path)
        totals = []
        for step in range(3):
            _checkpoint(run.at(f"step-{step}"), step)
            counting = CountingStore(run)
            ckptfmt.list(counting)
            totals.append(len(counting.calls))
        assert totals[2] - totals[1] == totals[1] - totals[0] <= 10


def _checkpoint(store: Store, step: int) -> str:
    """Create a complete checkpoint of two participants, and return the name of its cut."""
    cut = ckptfmt.create_cut(store, f"step-{step}")
    manifests = {}
    participants: dict[str, tuple[str, ckptfmt.Compression]] = {
        "agent-0": ("agent", "none"),
        "tools/0": ("resources", "zstd"),
    }
    for name, (kind, compression) in participants.items():
        options: dict[str, Any] = {"participant": name, "kind": kind, "checkpoint_id": f"step-{step}"}
        with ckptfmt.create(store.at(cut.name), **options, compression=compression) as writer:
            for number in range(20):
                payload = {"number": number, "nan": None}
                writer.write(ckptfmt.Record(ckptfmt.EpisodeId(f"r{number}"), payload, number))
        manifests[name] = writer.manifest.digest
    ckptfmt.publish(store, participants=manifests, sequence=step, cut=cut, state={"step": step})
    return cut.name
