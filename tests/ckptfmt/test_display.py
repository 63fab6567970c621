"""Displays in a notebook and an interpreter: escaped, and made from the manifests alone."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt._text import size_text
from ckptfmt.testing import Fault, failing_disk
from tests.ckptfmt.building import Built, build, many_records, record, write
from tests.ckptfmt.html_pages import HtmlPage
from tests.ckptfmt.runs import checkpoint

HOSTILE_TEXT = "<script>alert(1)</script> & \u202etxt\x1b["


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1", many_records(5))


def html_of(value: Any) -> str:
    page = value._repr_html_()
    assert isinstance(page, str)
    return page


def test_a_checkpoint_is_displayed(built: Built) -> None:
    opened = ckptfmt.open(built.folder)
    assert "step-1, sequence 1, 5 episodes, 2 participants, complete" in repr(opened)
    page = HtmlPage(html_of(opened))
    assert all(word in page.text for word in ("step-1", "sequence 1", "5 episodes", "agent-0", "tools/0"))
    cut = ckptfmt.open(built.cut_folder)
    assert "without checkpoint.json" in repr(cut)
    assert "without checkpoint.json" in html_of(cut)


def test_a_run_is_displayed(built: Built) -> None:
    run = built.folder.parent
    checkpoint(run, 2)
    ckptfmt.create_cut(run / "step-3", "step-3")
    listing = ckptfmt.list(run)
    for shown in (repr(listing), HtmlPage(html_of(listing)).text):
        assert all(word in shown for word in ("step-1", "step-2", "complete", "incomplete", "1 orphan"))
    lines = repr(listing).splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        *("checkpoint", "step-1", "step-2", "step-3", "checkpoint.json:", "1")
    ]
    assert len({line.index("complete") for line in lines[2:4]}) == 1


def test_a_participant_and_a_record_are_displayed(built: Built) -> None:
    part = ckptfmt.open(built.folder)["tools/0"]
    assert "tools/0 (resources): 5 records" in repr(part)
    text = HtmlPage(html_of(part)).text
    assert all(word in text for word in ("tools/0", "resources", "5 records", "zstd"))
    found = part["r3"]
    assert "r3 at boundary 3" in repr(found)
    assert "episoder3boundary3" in HtmlPage(html_of(found)).text


def test_a_report_is_true_without_problems(built: Built) -> None:
    report = ckptfmt.open(built.folder).verify()
    assert report
    assert (report.ok, report.complete) == (True, True)
    assert "every byte is what was written" in html_of(report)
    cut = ckptfmt.open(built.cut_folder).verify()
    assert (bool(cut), cut.complete) == (True, False)
    assert "no checkpoint.json" in html_of(cut)
    next((built.cut_folder / "agent-0").glob("records-*")).unlink()
    damaged = ckptfmt.open(built.folder).verify()
    assert not damaged
    assert (damaged.ok, damaged.complete) == (False, True)
    assert "incomplete" in HtmlPage(html_of(damaged)).text
    (built.folder / "checkpoint.json").write_bytes(b"")
    assert not ckptfmt.verify(built.folder).complete


def test_columns_of_numbers_are_right_aligned_and_facts_are_not(built: Built) -> None:
    opened = ckptfmt.open(built.folder)
    pages = [html_of(opened), html_of(opened["agent-0"]), html_of(ckptfmt.list(built.folder.parent))]
    for page in pages:
        assert all(
            "text-align:right" in cell for cell in re.findall(r"<t[dh][^>]*>(?:size|5|2|\d.*?KiB)<", page)
        )
        assert "text-align:left" in page
    facts = html_of(opened["agent-0"]["r3"])
    assert "text-align:right" not in facts
    assert "references" not in facts  # there are none
    assert "none" in html_of(opened["agent-0"]["r0"])
    assert "problem" not in pages[0]


def test_displays_read_no_records_and_no_indexes(built: Built) -> None:
    with failing_disk(
        Fault("open_for_reading", errno.EIO, "*records-*", times=None),
        Fault("open_for_reading", errno.EIO, "*index-*", times=None),
    ):
        opened = ckptfmt.open(built.folder)
        repr(opened)
        html_of(opened)
        for part in opened.values():
            repr(part)
            html_of(part)
        repr(ckptfmt.list(built.folder.parent))


def test_a_damaged_participant_does_not_hide_the_others(built: Built) -> None:
    (built.cut_folder / "agent-0" / "manifest.json").write_bytes(b"")
    text = HtmlPage(html_of(ckptfmt.open(built.folder))).text
    assert "is empty" in text
    assert "resources" in text


@pytest.mark.parametrize("where", ["id", "kind"])
def test_names_are_escaped(tmp_path: Path, where: str) -> None:
    label = HOSTILE_TEXT.replace("\x1b", "")
    options = {"checkpoint_id": label} if where == "id" else {"kind": label}
    folder = tmp_path / f"run{HOSTILE_TEXT.replace('/', '')}" / "step-1"
    manifest = write(folder, [record("r")], **options)  # type: ignore[arg-type]  # names of keywords
    ckptfmt.publish(folder, participants={"agent-0": manifest.digest}, sequence=1)
    opened = ckptfmt.open(folder)
    pages = [html_of(opened), html_of(ckptfmt.list(folder.parent)), ckptfmt.html_report(opened)]
    for page in [*pages, html_of(opened["agent-0"])]:
        assert "script" not in HtmlPage(page).tags
        assert "\u202e" not in page
        assert "\x1b" not in page
    assert all("&lt;script&gt;" in page for page in pages)
    for text in (repr(opened), repr(ckptfmt.list(folder.parent))):
        assert "\u202e" not in text
        assert "\x1b" not in text


def test_size_texts() -> None:
    assert [size_text(size) for size in (0, 1023, 1024, 5 * 1024**2, 2**60)] == [
        *("0 bytes", "1023 bytes", "1.0 KiB", "5.0 MiB", "1048576.0 TiB"),
    ]
