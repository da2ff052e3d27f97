"""People's write-ups: the article is kept, the portal's clutter goes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingest import writeups
from ingest.writeups import Section, from_html, read_writeup, sections, strip_recommendations
from tests.tables import each_row

SHARED = sorted((Path(__file__).parents[3] / "shared" / "writeups").glob("*.txt"))

ARTICLE = [
    "FooTrainer项目训练中断问题的排查记录",
    "问题现象",
    "训练进行到第三轮时,某个节点的工作进程被系统终止,日志里只剩下退出码。",
    "- 节点内存持续上涨,与批大小无关",
    "- 其余进程随后报告通信超时",
    "解决方案",
    "1. 调整缓存策略",
    "把每轮结束后的缓存保留下来,避免反复申请:",
    "foo.engine.keep_cache = True",
    "总结",
    "先看内存曲线,再决定换机器还是改配置,不要一上来就加内存。",
]
CARDS = [
    (
        "BarLM-7BBarLM-7B 是某实验室发布的新一代开源语言模型,"
        "支持超长上下文与工具调用,适合在本地部署与二次开发。Python00"
    ),
    "BazOCRBazOCR 是一款轻量的端到端文字识别模型,在多个公开评测上取得领先成绩,支持多语言文档解析。00",
    "QuxTTSQuxTTS 是一款高质量的语音合成系统,支持零样本克隆与流式输出,在情感控制方面表现自然。Jinja00",
]
LISTING = [
    "some kernel mirror",
    "C",
    "24",
    "9",
    "Docs mirror | 开发者文档",
    "Dockerfile",
    "402",
    "3.12 K",
    "暂无简介",
    "Dart",
    "672",
    "159",
]


@each_row(
    ("before", "after"),
    [
        ([], []),
        ([], CARDS),
        ([], ["登录后查看全文", "热门项目推荐", "相关项目推荐", *CARDS]),
        ([], ["项目优选", "收起", *LISTING]),
        (
            [],
            [
                *CARDS,
                "热门内容推荐",
                "最新内容推荐",
                "某课程视频讲解 某工具终极指南",
                "项目优选",
                "收起",
                *LISTING,
            ],
        ),
        (["2025-07-04 16:24:31作者:某某某Name"], ["登录后查看全文", *CARDS]),
        (["作者:某某"], []),
        (["来源:某网站"], []),
        ([], ["Related articles", "Ten tricks for faster training", "You may also like", "Five more tricks"]),
        ([], ["Comments", "great post"]),
    ],
)
def test_clutter_around_an_article_goes(before: list[str], after: list[str]) -> None:
    """Bylines, captions with what follows them, and cards are taken off; nothing of the article is."""
    assert strip_recommendations([ARTICLE[0], *before, *ARTICLE[1:], *after]) == ARTICLE


@each_row(
    "rows",
    [
        [*ARTICLE[:4], "Killed", "exit code 137", "137", *ARTICLE[4:]],
        [
            "Title",
            "The value that works is",
            "64",
            "and not",
            "128",
            "because the batch must divide by the number of ranks.",
        ],
        [
            "Title",
            "Install this version of the library to get the fix: pip install foo==1.2.300",
            "Then start the job again and see.",
        ],
        [
            "Title",
            "We tried it on two clusters in turn and wrote down what we saw.",
            "It happened on both of them in the year 2024",
        ],
    ],
)
def test_numbers_of_an_article_are_not_taken_for_cards(rows: list[str]) -> None:
    """Short lines and closing figures inside a text belong to it."""
    assert strip_recommendations(rows) == rows


@each_row(
    ("rows", "expected"),
    [
        (["# Why", "text", "## How", "more"], [Section("Why", "text"), Section("How", "more")]),
        (["intro", "## How ##", "more"], [Section("", "intro"), Section("How", "more")]),
        (["1. Lower the batch", "Set it to half."], [Section("Lower the batch", "Set it to half.")]),
        (
            ["1. Lower the batch, then start again.", "Done."],
            [Section("", "1. Lower the batch, then start again.\nDone.")],
        ),
        (["一、原因", "内存持续上涨,直到被系统杀掉。"], [Section("原因", "内存持续上涨,直到被系统杀掉。")]),
        (
            ["问题现象", "训练进行到第三轮时中断,没有报错。"],
            [Section("问题现象", "训练进行到第三轮时中断,没有报错。")],
        ),
        (
            ["Root cause", "The cache was freed and filled again in every round."],
            [Section("Root cause", "The cache was freed and filled again in every round.")],
        ),
        (
            ["text", "```", "# a comment", "x = 1", "```", "end of it"],
            [Section("", "text\n```\n# a comment\nx = 1\n```\nend of it")],
        ),
        (
            ["lr = 0.1", "is what we set in the configuration."],
            [Section("", "lr = 0.1\nis what we set in the configuration.")],
        ),
        (
            ["- a point", "that goes on for some while here."],
            [Section("", "- a point\nthat goes on for some while here.")],
        ),
        (["-", "text", "*"], [Section("", "text")]),
        ([], []),
    ],
)
def test_headings_divide_a_write_up(rows: list[str], expected: list[Section]) -> None:
    """Markdown's headings, numbered ones, and short bare lines with more text under them; never code."""
    assert sections(rows) == expected


PAGE = """\
<html><head><title>Site | Post</title><style>p {color: red}</style><script>track('me')</script></head><body>
<nav><a href="/">Home</a> <a href="/login">Sign up now</a></nav><header>Our great site</header>
<article><h1>Why <em>ranks</em> hang</h1>
<p>One rank waits in a <code>barrier</code> that the others never reach.</p>
<h2>What to do</h2><ul><li>Raise the limit</li><li>Find the slow rank</li></ul>
<pre>export FOO_TIMEOUT=60
python train.py</pre><button>Copy</button></article>
<aside>Read this as well</aside><footer>All rights reserved</footer></body></html>
"""


def test_a_page_gives_its_article(tmp_path: Path) -> None:
    """Markup, scripts, navigation and what stands beside the article are not read; headings stay headings."""
    rows = [row for row in from_html(PAGE) if row]
    assert rows[0] == "# Why ranks hang"
    assert "## What to do" in rows
    assert {"- Raise the limit", "- Find the slow rank", "export FOO_TIMEOUT=60", "python train.py"} <= set(
        rows
    )
    assert not re.search(
        r"track|color|Home|Sign up|great site|rights reserved|as well|Copy|Site \|", "\n".join(rows)
    )
    (tmp_path / "post.html").write_text(PAGE, encoding="utf-8")
    documents = read_writeup(tmp_path / "post.html")
    assert {document.title for document in documents} == {"Why ranks hang"}
    assert [document.heading for document in documents] == ["", "What to do"]


@each_row(
    "page",
    ["<p>no body tag</p>", "<main><p>in main</p></main>", "<div><p>unclosed <b>tags", "plain text, no tag"],
)
def test_a_page_without_an_article_gives_its_text(page: str) -> None:
    """Broken and bare HTML still has words."""
    assert "".join(from_html(page)).strip() in {
        "no body tag",
        "in main",
        "unclosed tags",
        "plain text, no tag",
    }


def test_a_write_up_becomes_notes(tmp_path: Path) -> None:
    """Title, headings and language are known; each piece has an id of its own and its file as origin."""
    path = tmp_path / "note.txt"
    path.write_text("\n".join([*ARTICLE, *CARDS]), encoding="utf-8")
    documents = read_writeup(path)
    assert {
        (document.kind, document.title, document.language, document.origin) for document in documents
    } == {("note", ARTICLE[0], "zh", str(path))}
    assert documents[0].heading == "问题现象"
    assert {"调整缓存策略", "总结"} <= {document.heading for document in documents}
    assert len({document.id for document in documents}) == len(documents)
    assert "foo.engine.keep_cache = True" in "\n".join(document.text for document in documents)


def test_an_english_write_up_is_english(tmp_path: Path) -> None:
    """A few Chinese words do not make it Chinese."""
    (tmp_path / "a.md").write_text(
        "# Ranks hang\n" + "One rank waits while the others went on. " * 9 + "显存\n", encoding="utf-8"
    )
    assert {document.language for document in read_writeup(tmp_path / "a.md")} == {"en"}


@each_row("content", [b"", b"\n\n  \n", b"<html></html>"])
def test_a_file_without_text_gives_nothing(tmp_path: Path, content: bytes) -> None:
    """Empty files are no notes."""
    (tmp_path / "a.html").write_bytes(content)
    assert read_writeup(tmp_path / "a.html") == []


def test_a_note_holds_no_secret(tmp_path: Path) -> None:
    """People paste keys into their notes; they are masked before the index sees them."""
    (tmp_path / "a.md").write_text(
        "# Notes on a crash\nWe set password=hunter22long and it ran again.\n", encoding="utf-8"
    )
    assert "hunter22long" not in repr(read_writeup(tmp_path / "a.md"))
    assert "[redacted:password]" in repr(read_writeup(tmp_path / "a.md"))


@pytest.mark.skipif(not SHARED, reason="the shared write-ups are not beside this checkout")
@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.name[:3])
def test_nothing_of_a_real_pages_recommendations_is_kept(path: Path) -> None:
    """The last words kept are the article's, and what portals advertise is not among them."""
    rows = path.read_text(encoding="utf-8").splitlines()
    kept = "\n".join(document.text for document in read_writeup(path))
    assert not re.search(
        r"项目优选|项目推荐|内容推荐|登录后|暂无简介|作者:|HunyuanOCR|RuoYi|OpenHarmony|LeetCode|Kimi|GLM-\d|ERNIE|Jinja00|Python00",
        kept,
    )
    assert "总结" in {document.heading for document in read_writeup(path)} or "OOM" in rows[0]
    assert len(kept) > 600


@pytest.mark.skipif(not SHARED, reason="the shared write-ups are not beside this checkout")
@pytest.mark.parametrize("path", SHARED, ids=lambda path: path.name[:3])
def test_nothing_of_a_real_article_is_lost(path: Path) -> None:
    """All up to the conclusion's paragraph is kept, but the byline."""
    rows = [row.strip() for row in path.read_text(encoding="utf-8").splitlines() if row.strip(" -*")]
    end = next((place for place, row in enumerate(rows) if row in {"总结", "实施建议"}), 5) + 2
    kept = "\n".join(
        f"{document.title}\n{document.heading}\n{document.text}" for document in read_writeup(path)
    )
    missing = [
        row
        for row in rows[:end]
        if not writeups.BYLINE.match(row) and row.lstrip("#0123456789. ") not in kept
    ]
    assert missing == []
