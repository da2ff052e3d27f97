"""What a browser would make of a piece of HTML, for tests of pages."""

from __future__ import annotations

from html.parser import HTMLParser


class Seen(HTMLParser):
    """The elements, attributes and text of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.strange: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        """Note what no part of ours writes."""
        self.strange.append(data)

    def handle_decl(self, decl: str) -> None:
        """Note a declaration."""
        self.strange.append(decl)

    def handle_pi(self, data: str) -> None:
        """Note an instruction."""
        self.strange.append(data)

    def unknown_decl(self, data: str) -> None:
        """Note any other declaration."""
        self.strange.append(data)
