"""The one builder of HTML: text of others goes into a page as text, wherever it stands."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.html.markup import Html, document, element, escape, folded, join, link, style_sheet, visible
from tests.parsed_html import Seen
from tests.syntax import modules
from tests.tables import each_row

# What a module that wrote markup by hand would hold; a lone opening tag is of no use.
CLOSING_TAG = re.compile(r"</[a-z][a-z0-9]*>")
# The experiments of the lab print what models' tokenizers have for special tokens.
LAB = "eval/lab/"


def test_that_nothing_else_writes_markup() -> None:
    """No other module calls the builder's class or holds a tag, so no text can go into a page unescaped."""
    wrong = []
    for module in modules("service", "eval", "ui"):
        if module.name == "service/html/markup.py" or module.name.startswith(LAB):
            continue
        wrong += [f"{module.name}:{line}" for line, text in module.texts if CLOSING_TAG.search(text)]
        for node in module.nodes:
            made = node.func if isinstance(node, ast.Call) else None
            if (isinstance(made, ast.Name) and made.id == "Html") or (
                isinstance(made, ast.Attribute) and made.attr == "Html"
            ):
                wrong.append(f"{module.name}:{made.lineno}")
    assert wrong == []


@given(st.text(max_size=80), st.text(max_size=40))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_that_any_text_stays_text(content: str, value: str) -> None:
    """Content and attributes come back as they were shown, in one element."""
    seen = Seen(element("code", content, title=value, hidden=None, open=False))
    assert [tag for tag, _ in seen.elements] == ["code"]
    assert "".join(seen.texts) == visible(content)
    assert seen.elements[0][1] == {"title": visible(value)}


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
    assert visible(text) == expected


def test_that_what_is_cut_says_so() -> None:
    """A text that is longer than its place ends in dots."""
    assert visible("abcdef", 3) == "abc…"
    assert visible("abc", 3) == "abc"


def test_that_html_is_escaped_once() -> None:
    """Markup passes and all else is escaped, in elements and in attributes; added to, it is text again."""
    made = element("p", element("b", "a<b"), "&", title='"x"', class_=None)
    assert made == '<p title="&quot;x&quot;"><b>a&lt;b</b>&amp;</p>'
    assert escape(made) is made
    assert join(element("b", "<"), "<", None, between="&") == "<b>&lt;</b>&amp;&lt;"
    assert element("p", made + "<") == f"<p>{escape(str(made) + '<')}</p>"
    assert not isinstance(made + "<", Html)


@each_row(
    ("attributes", "expected"),
    [
        ({"open": True}, "<p open></p>"),
        ({"open": False, "title": None}, "<p></p>"),
        ({"title": ""}, '<p title=""></p>'),
        ({"data_line": 1000}, '<p data-line="1000"></p>'),
        ({"x": 1.5, "y": 0.333333}, '<p x="1.5" y="0.33"></p>'),
        ({"class_": "a", "stroke_width": 2}, '<p class="a" stroke-width="2"></p>'),
    ],
)
def test_that_attributes_are_written_as_html_has_them(
    attributes: dict[str, str | float | bool | None], expected: str
) -> None:
    """True stands without a value, None and False are left out, numbers have two decimals at most."""
    assert element("p", **attributes) == expected


def test_that_a_folded_part_keeps_its_key() -> None:
    """The page that is rendered anew finds it by its key; without one it is a plain part that opens."""
    assert folded("<more>", "x", key="k", is_open=True) == (
        '<details data-key="k" open><summary>&lt;more&gt;</summary>x</details>'
    )
    assert folded("more") == "<details><summary>more</summary></details>"


def test_that_a_style_sheet_cannot_end_itself() -> None:
    """A browser reads rules without entities, so what would close the element is refused."""
    assert style_sheet("a > b { color: red }") == "<style>a > b { color: red }</style>"
    with pytest.raises(ValueError, match="closing tag"):
        style_sheet("</style><script>")
    assert "default-src 'none'" in document("t").replace("&#x27;", "'")


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
