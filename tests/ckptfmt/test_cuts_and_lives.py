"""Creating and reading cuts and lives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import (
    Damaged,
    Incomplete,
    InvalidId,
    NotFound,
)
from tests.ckptfmt.building import body_of, sealed


def test_a_cut_has_a_random_name_and_word(tmp_path: Path) -> None:
    cuts = [ckptfmt.create_cut(tmp_path / "step-1", "step-1") for _ in range(3)]
    assert (
        len({cut.name for cut in cuts})
        == len({cut.word for cut in cuts})
        == len({cut.digest for cut in cuts})
        == 3
    )
    for cut in cuts:
        assert cut.url == str(tmp_path / "step-1" / cut.name)
        assert ckptfmt.read_cut(cut.url) == cut
        assert body_of(Path(cut.url) / "cut.json") == {"checkpoint_id": "step-1", "word": cut.word}


@pytest.mark.req("CM11")
def test_a_folder_without_a_valid_cut_json_is_not_a_cut(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        ckptfmt.read_cut(tmp_path / "nowhere")
    with pytest.raises(Incomplete, match="not the folder of the cut"):
        ckptfmt.read_cut(tmp_path)
    (tmp_path / "cut.json").write_bytes(b"{}")
    with pytest.raises(Damaged):
        ckptfmt.read_cut(tmp_path)
    bodies: list[Any] = [{"checkpoint_id": 1, "word": "w"}, {"checkpoint_id": "c"}, []]
    for body in bodies:
        (tmp_path / "cut.json").write_bytes(sealed(body))
        with pytest.raises(Damaged):
            ckptfmt.read_cut(tmp_path)
    with pytest.raises(InvalidId):
        ckptfmt.create_cut(tmp_path / "x", "")


@pytest.mark.req("CO13")
def test_lives_are_numbered_from_zero(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert [ckptfmt.start_life(run), ckptfmt.start_life(run, "step-1"), ckptfmt.start_life(run)] == [0, 1, 2]
    assert [body_of(run / "lives" / f"{life}.json") for life in range(3)] == [
        {"life": 0, "source_checkpoint_id": None},
        {"life": 1, "source_checkpoint_id": "step-1"},
        {"life": 2, "source_checkpoint_id": None},
    ]
    for name in ("7.json", "007.json", "9", "x.json", "8.json.tmp"):
        (run / "lives" / name).write_bytes(b"")
    assert ckptfmt.start_life(run) == 8
