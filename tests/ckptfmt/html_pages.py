"""Reading HTML pages in tests."""

from __future__ import annotations

from html.parser import HTMLParser


class HtmlPage(HTMLParser):
    """The tags, the links and the text of a page.

    Attributes:
        tags: The names of all tags, in order.
        links: The values of all attributes that name another file.
        text: The text of the page without tags.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href", "action", "data")]

    def handle_data(self, data: str) -> None:
        self.text += data
