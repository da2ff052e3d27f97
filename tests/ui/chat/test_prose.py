"""An answer's Markdown and its patch as elements of the page."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsed_html import Seen
from tests.tables import each_row
from ui.chat import diff, prose

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


@given(MARKDOWN)
@settings(derandomize=True, deadline=None, max_examples=400)
def test_that_prose_makes_known_elements_only(text: str) -> None:
    """Whatever an explanation holds, no other element and no other attribute comes of it."""
    seen = Seen(prose.render(text))
    assert seen.strange == []
    for tag, attributes in seen.elements:
        assert tag in ALLOWED
        assert set(attributes) <= ALLOWED[tag]


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
    """Each row has its kind, and what it says is all there but the file's name, which stands above."""
    patch = "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,2 +1,2 @@\n a: <1>\n-b: 2\n+b: 3\n"
    seen = Seen(diff.render(patch, "en"))
    kinds = [attributes["class"] for tag, attributes in seen.elements if tag == "span"]
    assert kinds == ["d hunk", "d same", "d del", "d add"]
    assert "".join(seen.texts).endswith("@@ -1,2 +1,2 @@ a: <1>-b: 2+b: 3")
    assert diff.files(patch) == ["x.yaml"]
