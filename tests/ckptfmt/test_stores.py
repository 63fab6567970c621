"""Every store passes the conformance suite. Behaviour of single stores is tested as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import Damaged, UnsupportedStore
from ckptfmt.stores import ForwardingStore, LocalStore, MemoryStore, Store, choose_store
from ckptfmt.testing import CountingStore, StoreConformance
from tests.ckptfmt.building import many_records, write


@pytest.mark.req("FS4", "FS5", "FS6")
class TestLocalStore(StoreConformance):
    def make_store(self, tmp_path: Path) -> Store:
        return choose_store(tmp_path / "run")


class TestMemoryStore(StoreConformance):
    def make_store(self, tmp_path: Path) -> Store:
        return choose_store(f"memory://{tmp_path}/run")


class TestForwardingStore(StoreConformance):
    def make_store(self, tmp_path: Path) -> Store:
        return ForwardingStore(CountingStore(LocalStore(str(tmp_path / "run"))))


def test_links_are_listed_but_neither_read_nor_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"1")
    (tmp_path / "run").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "run" / "folder")
    os.symlink(tmp_path / "real" / "file", tmp_path / "run" / "link")
    store = choose_store(tmp_path / "run")
    assert [(each.path, each.is_folder, each.is_file, each.is_link) for each in store.entries("")] == [
        ("folder", True, False, True),
        ("link", False, False, True),
    ]
    assert [each.path for each in store.walk("")] == ["folder", "link"]
    with pytest.raises(Damaged, match="is a link"):
        store.read("link", 10)


def test_memory_stores_with_the_same_url_share_their_files(tmp_path: Path) -> None:
    one, other = MemoryStore(f"memory://{tmp_path}/a"), choose_store(f"memory:///{tmp_path}//a/")
    assert one.url == other.url
    one.create("x", b"1")
    assert other.read("x", 10) == b"1"
    MemoryStore(f"memory://{tmp_path}").clear()
    assert list(one.walk("")) == []


@pytest.mark.parametrize(
    "url", ["memory://", "memory:///", "memory://a/../b", "memory://./a", "memory://a\0b"]
)
def test_an_invalid_memory_url_is_refused(url: str) -> None:
    with pytest.raises(UnsupportedStore, match="memory://"):
        choose_store(url)


def test_public_functions_accept_a_store_in_place_of_a_url(tmp_path: Path) -> None:
    store = CountingStore(choose_store(tmp_path / "c"))
    manifest = write(store, many_records(3))
    assert store.counts()["create"] == 1
    ckptfmt.publish(store, participants={"agent-0": manifest.digest}, sequence=1)
    assert ckptfmt.diff(store, tmp_path / "c").is_same
    assert ckptfmt.verify(store).ok
    assert ckptfmt.read_checkpoint(store).sequence == 1
    ckptfmt.check_directory(store)


def test_a_checkpoint_is_copied_between_memory_and_disk(tmp_path: Path) -> None:
    memory = f"memory://{tmp_path}/c"
    digest = write(memory, many_records(30), compression="zstd").digest
    ckptfmt.publish(memory, participants={"agent-0": digest}, sequence=1)
    ckptfmt.copy(memory, tmp_path / "c")
    ckptfmt.copy(tmp_path / "c", f"memory://{tmp_path}/again")
    assert ckptfmt.diff(memory, f"memory://{tmp_path}/again").is_same
    assert ckptfmt.open(tmp_path / "c").verify().ok
