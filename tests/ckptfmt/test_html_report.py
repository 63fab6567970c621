"""The HTML report of one checkpoint."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import StoreError
from ckptfmt.testing import Fault, failing_disk
from tests.ckptfmt.building import Built, build, many_records, record, write
from tests.ckptfmt.html_pages import HtmlPage


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "step-1", [*many_records(30), record("large", "x" * 5000, 200), record("none")])


def section(page: str, title: str) -> str:
    """The text of one section of the page."""
    return HtmlPage(page[page.index(f"<h2>{title}</h2>") :].split("<h2>")[1]).text


def test_the_sections_of_a_report(built: Built) -> None:
    page = ckptfmt.html_report(ckptfmt.open(built.folder))
    text = HtmlPage(page).text
    assert "Every record was read and is what was written." in text
    assert all(word in text for word in ("step-1", built.cut.name, "64", "episodes32"))
    sizes = section(page, "Sizes by participant")
    assert all(name in sizes for name in ("agent-0", "agent", "tools/0", "resources", "%"))
    boundaries = section(page, "Episodes by boundary")
    assert "none: from its input2" in boundaries
    assert "200 to 203" in boundaries
    assert section(page, "Oldest episodes").split("size")[1].startswith("large200")
    assert section(page, "Largest episodes").split("size")[1].startswith("large2009.8 KiB")
    assert "large" in section(page, "Largest records")
    assert "None." in section(page, "Restarts")


def test_restarts_are_listed(tmp_path: Path) -> None:
    manifest = write(tmp_path, [record("a")])
    ckptfmt.publish(
        tmp_path, participants={"agent-0": manifest.digest}, sequence=1, restarts=["late", "later-a1"]
    )
    assert "2: late, later-a1" in section(ckptfmt.html_report(ckptfmt.open(tmp_path)), "Restarts")


def test_a_report_has_no_scripts_and_no_links(built: Built) -> None:
    page = ckptfmt.html_report(ckptfmt.open(built.folder))
    found = HtmlPage(page)
    assert not {"script", "img", "link", "iframe", "object", "form"}.intersection(found.tags)
    assert found.links == []
    assert re.search(r"https?:|@import|url\(", page) is None
    assert "default-src 'none'" in page


def test_a_report_fits_a_small_screen_and_wraps_no_short_text(built: Built) -> None:
    page = ckptfmt.html_report(ckptfmt.open(built.folder))
    assert '<meta name="viewport" content="width=device-width' in page
    assert "color-scheme: light dark" in page
    cells = re.findall(r'<t[dh] style="([^"]*)">([^<]*)</t[dh]>', page)
    for style, text in cells:
        assert ("overflow-wrap:anywhere" in style) == (len(text) > 28)
    assert {style for style, text in cells if text == "records"} == {
        "text-align:left;white-space:nowrap",  # in the table of facts
        "text-align:right;white-space:nowrap",
    }


@pytest.mark.req("FS9")
def test_damage_is_reported_and_the_rest_is_shown(built: Built) -> None:
    file = next((built.cut_folder / "agent-0").glob("records-*"))
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    text = HtmlPage(ckptfmt.html_report(ckptfmt.open(built.folder))).text
    assert "1 participant is damaged" in text
    assert "was changed after writing" in text
    assert "tools/0" in text
    with failing_disk(Fault("open_for_reading", errno.EIO, "*records-*")):
        with pytest.raises(StoreError):
            ckptfmt.html_report(ckptfmt.open(built.folder))


def test_a_report_without_records_and_without_checkpoint_json(tmp_path: Path) -> None:
    write(tmp_path, [])
    page = ckptfmt.html_report(ckptfmt.open(tmp_path))
    text = HtmlPage(page).text
    assert "No episodes." in text
    assert "without checkpoint.json" in text
    assert ">cut<" not in page  # there is none
