"""Text of others goes into the page as text."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tables import each_row
from ui.chat import diff, prose
from ui.chat.markup import Html, element, escaped, joined, link, shown

# What an answer's Markdown can become, with the attributes that it can have.
ALLOWED = {
    "p": set(),
    "ul": set(),
    "ol": set(),
    "li": set(),
    "strong": set(),
    "code": set(),
    "pre": {"tabindex"},
    "button": {"type", "class", "data-case", "data-file", "data-line"},
}
PIECES = st.sampled_from(
    [
        "<script>",
        "</code>",
        "<img src=x onerror=a()>",
        "&lt;",
        "&#60;",
        "`",
        "**",
        "[L12]",
        "[a/b.log:L3]",
        "[case:x/y]",
        "[L1](http://x)",
        "![i](http://x)",
        "\n",
        "\n\n",
        "- ",
        "1. ",
        "# ",
        "```\n",
        '"',
        "'",
        "=",
        "onclick=",
        "javascript:",
        "\x1b[31m",
        "\u202e",
        "word ",
        "${x}",
        "{{y}}",
        "\x00",
        "  ",
        "<!--",
        "]]>",
    ]
)
MARKDOWN = st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=30).map("".join)


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


@given(MARKDOWN)
@settings(derandomize=True, deadline=None, max_examples=400)
def test_that_prose_makes_known_elements_only(text: str) -> None:
    """Whatever an explanation holds, no other element and no other attribute comes of it."""
    seen = Seen(prose.render(text))
    assert seen.strange == []
    for tag, attributes in seen.elements:
        assert tag in ALLOWED
        assert set(attributes) <= ALLOWED[tag]


@given(st.text(max_size=80), st.text(max_size=40))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_that_any_text_stays_text(content: str, value: str) -> None:
    """Content and attributes come back as they were shown, in one element."""
    seen = Seen(element("code", content, title=value, hidden=None, open=False))
    assert [tag for tag, _ in seen.elements] == ["code"]
    assert "".join(seen.texts) == shown(content)
    assert seen.elements[0][1] == {"title": shown(value)}


@each_row(
    ("text", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\x", "x"),
        ("\x9b31mold", "old"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("tab\tand\nrow", "tab\tand\nrow"),
        ("中文 émoji 🙂", "中文 émoji 🙂"),
    ],
)
def test_that_what_acts_is_taken_out(text: str, expected: str) -> None:
    """Codes of terminals and marks of direction go; words, tabs and rows stay."""
    assert shown(text) == expected


def test_that_what_is_cut_says_so() -> None:
    """A text that is longer than its place ends in dots."""
    assert shown("abcdef", 3) == "abc…"
    assert shown("abc", 3) == "abc"


def test_that_html_is_escaped_once() -> None:
    """What is HTML already is not escaped again."""
    assert joined(element("b", "<"), "<", None) == "<b>&lt;</b>&lt;"
    assert isinstance(escaped("<"), Html)


@each_row(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.com",
        "https://a b",
        'https://x" onclick="y',
        "HTTPS:x",
        "",
    ],
)
def test_that_only_addresses_of_the_web_are_linked(url: str) -> None:
    """What is no plain http address stays text."""
    assert Seen(link(url, "source")).elements == []


def test_that_links_lead_out_safely() -> None:
    """Another site learns nothing of the page and cannot reach back into it."""
    [(tag, attributes)] = Seen(link("https://example.com/a?b=c&d", "source")).elements
    assert (tag, attributes["href"]) == ("a", "https://example.com/a?b=c&d")
    assert {"noopener", "noreferrer"} <= set((attributes["rel"] or "").split())


@each_row(
    ("text", "expected"),
    [
        ("one\ntwo", "<p>one two</p>"),
        ("**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>"),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
        ("- a\n  goes on\nrest", "<ul><li>a goes on</li></ul><p>rest</p>"),
        ("before\n- a", "<p>before</p><ul><li>a</li></ul>"),
        ("# Title\n\ntext", "<p><strong>Title</strong></p><p>text</p>"),
        ("```yaml\na: 1\nb: 2\n```\nafter", '<pre tabindex="0"><code>a: 1\nb: 2\n</code></pre><p>after</p>'),
        ("[L12]", '<p><button type="button" class="cite" data-line="12">L12</button></p>'),
        (
            "[rank0/out.log:L7]",
            (
                '<p><button type="button" class="cite" data-file="rank0/out.log" '
                'data-line="7">rank0/out.log:L7</button></p>'
            ),
        ),
        ("[case:verl/x]", '<p><button type="button" class="cite" data-case="verl/x">verl/x</button></p>'),
        ("[not a citation](x)", "<p>[not a citation](x)</p>"),
        ("`[L1]`", "<p><code>[L1]</code></p>"),
    ],
)
def test_that_prose_reads_as_it_is_meant(text: str, expected: str) -> None:
    """Paragraphs, lists, bold, code and citations."""
    assert prose.render(text) == expected


def test_that_what_differs_within_a_row_is_marked() -> None:
    """In a command of many words, the one that changes; rows that only come or go are not marked."""
    html = diff.render("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-run a=1 b=2 c=3\n+run a=1 b=5 c=3\n+new\n", "en")
    assert "<mark>" not in html
    html = diff.render("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-run a=1 b=2 c=3\n+run a=1 b=5 c=3\n", "en")
    assert html.count("<mark>") == 2
    assert "b=<mark>5</mark> c=3" in html


def test_that_a_patch_keeps_its_rows() -> None:
    """Each row has its kind, and what it says is all there."""
    patch = "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,2 +1,2 @@\n a: <1>\n-b: 2\n+b: 3\n"
    seen = Seen(diff.render(patch, "en"))
    kinds = [attributes["class"] for tag, attributes in seen.elements if tag == "span"]
    assert kinds == ["d file", "d file", "d hunk", "d same", "d del", "d add"]
    assert "".join(seen.texts).endswith("--- a/x.yaml+++ b/x.yaml@@ -1,2 +1,2 @@ a: <1>-b: 2+b: 3")
    assert diff.files(patch) == ["x.yaml"]
