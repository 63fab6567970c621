"""Which place of the disk a path or a URL names, and which ones are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import (
    UnsupportedStore,
    UnusableDirectory,
)
from tests.ckptfmt.building import files_below, many_records, write


@pytest.mark.req("FS10")
@pytest.mark.parametrize(
    "name", ["a b", "r[1]*?", "a#b%20c", "s3:", "x::y", "é\u2028", "~", "$HOME", "'\"", "-rf", "\udcff"]
)
def test_paths_are_taken_literally(tmp_path: Path, name: str) -> None:
    """Special characters of shells, globs and URLs have no meaning in a path."""
    folder = tmp_path / name
    write(folder, many_records(2))
    found = files_below(tmp_path)
    assert len(found) == 3
    assert all(each.startswith(f"{name}/agent-0/") for each in found)
    assert ckptfmt.open(folder).verify().ok
    write(f"file://{tmp_path}/literal/{name}", many_records(2))
    assert (tmp_path / "literal" / name / "agent-0" / "manifest.json").exists()


@pytest.mark.req("FS10")
def test_links_and_dots_in_a_path_mean_what_the_operating_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "below")
    write(tmp_path / "link" / "c", many_records(1))
    assert (tmp_path / "real" / "below" / "c" / "agent-0" / "manifest.json").exists()
    write(f"{tmp_path}/link/../d", many_records(1))
    assert (tmp_path / "real" / "d" / "agent-0" / "manifest.json").exists()
    monkeypatch.chdir(tmp_path)
    write("relative/e", many_records(1))
    assert (tmp_path / "relative" / "e" / "agent-0" / "manifest.json").exists()
    assert ckptfmt.open("relative/e").verify().ok


@pytest.mark.parametrize(
    "url",
    [
        *(
            "s3://bucket/x",
            "gs://b/x",
            "http://h/x",
            "file://host/x",
            "file://relative",
            "FTP://x",
        ),
        *("s3:/b/x", "gs:/b/x", "file:/x", "s3:b"),
    ],
)
def test_urls_of_unsupported_stores_are_refused_and_nothing_is_created(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for attempt in (
        lambda: ckptfmt.create(url, participant="a", kind="agent", checkpoint_id="c"),
        lambda: ckptfmt.open(url),
        lambda: ckptfmt.create_cut(url, "c"),
        lambda: ckptfmt.start_life(url),
        lambda: ckptfmt.check_directory(url),
    ):
        with pytest.raises(UnsupportedStore):
            attempt()
    assert files_below(tmp_path) == []


def test_bytes_are_not_a_url(tmp_path: Path) -> None:
    with pytest.raises(UnusableDirectory):
        ckptfmt.open(os.fsencode(tmp_path))  # type: ignore[arg-type]
