"""How an answer is laid out: what matters first, within Slack's limits, and nothing of a log as markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from service.pipeline.triage import Triage
from service.schemas.diagnosis import (
    Alternative,
    CaseHit,
    Diagnosis,
    Engine,
    Evidence,
    ProposedChange,
    ReadLimits,
    Telemetry,
)
from service.schemas.records import CrashNoteRecord, Recurrence
from service.settings import Settings
from tests.tables import each_row
from tests.ui.slack.workspace import buttons, shown
from tests.warm import EVERY, WRITE_UPS, answered
from ui.slack import fitting
from ui.slack.answer import (
    AnswerExtras,
    SlackMessage,
    answer,
    hits_message,
    page_of,
    text_message,
    turn,
    whole,
)
from ui.slack.fitting import AnswerPiece, fit
from ui.slack.mrkdwn import clip, escape, from_markdown, length, link, unescape

QUICK = settings(derandomize=True, deadline=None, max_examples=60)
HERE = Settings(public_url="https://w.example/")
TEXTS = st.text(alphabet=st.characters(codec="utf-8"), max_size=400)
# What people's markup is made of, more often than chance would have it.
NASTY = st.lists(
    st.sampled_from(
        [
            "<",
            ">",
            "&",
            "|",
            "`",
            "```",
            "*",
            "_",
            "\n",
            "\n\n",
            "<!channel>",
            "<@U1>",
            "<https://x|y>",
            "&lt;",
            "a b",
            "# h",
            "- i",
            "\x1b[31m",
            "\u202e",
        ]
    ),
    max_size=60,
).map("".join)


def diagnosis(**fields: Any) -> Diagnosis:
    """Make an answer; fields override."""
    made: dict[str, Any] = {
        "id": "01M",
        "source": "train.log",
        "verdict": "diagnosed",
        "cause": "gpu-oom-training",
        "category": "gpu-memory",
        "confidence": 0.9,
        "standing": "established",
        "action": "change-config",
        "headline": "The GPU ran out of memory",
        "explanation": "It was full. [L3]",
        "limits": ReadLimits(bytes=1, lines=1),
    }
    return Diagnosis(**{**made, **fields})


def change(key: str, **fields: Any) -> ProposedChange:
    """Make a change."""
    made: dict[str, Any] = {
        "framework": "verl",
        "kind": "setting",
        "key": key,
        "to": 1,
        "why": "less memory",
        "status": "verified",
    }
    return ProposedChange(**{**made, **fields})


def huge(text: str = "word " * 2000, count: int = 60) -> Diagnosis:
    """Make an answer of which everything is too long and too much."""
    return diagnosis(
        headline=text[:5000],
        explanation="\n\n".join([text] * count),
        cases=tuple(CaseHit(id=f"verl/c{n}", title=text, score=1) for n in range(count)),
        evidence=tuple(
            Evidence(line=n, text=text, role="root" if n == 1 else "collateral", why="x")
            for n in range(count)
        ),
        changes=tuple(
            change(f"{text[:900]}{n}", why=text, costs=text, from_=text[:900]) for n in range(count)
        ),
        checks=(text,) * count,
        alternatives=tuple(Alternative(cause=f"c{n}", confidence=0.1, tell_apart=text) for n in range(count)),
        telemetry=Telemetry(says="agrees", why=text),
        engine=Engine(note=text),
        patch="x",
    )


def check(message: SlackMessage) -> None:
    """Check Slack's limits, and ours."""
    assert length(message.blocks) < 12_000
    assert len(message.blocks) <= 50
    assert 0 < len(message.text) <= 4000
    for block in message.blocks:
        texts = [block["text"]] if "text" in block else block.get("elements", [])
        limit = {"header": 150, "section": 3000, "context": 3000, "actions": 75 * 25, "rich_text": 12_000}[
            block["type"]
        ]
        assert 0 < length(texts) <= limit
        if block["type"] in ("section", "context"):
            assert all(text["verbatim"] for text in texts)


# What Slack would take for markup of its own: only links that the answer itself made may be left.
def markup(message: SlackMessage) -> list[str]:
    """Give what begins a mention, a link or another command in texts that are read as markup."""
    texts = [
        text["text"]
        for block in message.blocks
        if block["type"] in ("section", "context")
        for text in ([block["text"]] if "text" in block else block["elements"])
    ]
    return [found for text in [*texts, message.text] for found in re.findall(r"<[^>]*>?", text)]


@each_row("name", EVERY)
@each_row("language", ["en", "zh"])
def test_that_answers_fit_and_lead_with_the_conclusion(triage: Triage, name: str, language: str) -> None:
    made = answered(triage, name, language)
    short, full = answer(made, HERE), whole(made, HERE)
    assert length(short.blocks) < 2_000
    for message in (short, full):
        check(message)
        assert message.blocks[0]["text"]["text"].startswith(made.headline.replace("`", "")[:100])
        assert all(re.match(r"<https?://[^|<>]+\|[^<>|]+>", item) for item in markup(message))
        assert "[case:" not in shown({"blocks": message.blocks})


@each_row("name", WRITE_UPS)
def test_that_the_first_message_holds_proof_and_first_change_and_leads_to_the_rest(
    triage: Triage, name: str
) -> None:
    """The job, the line that proves the cause and the first change; a button for what is left out."""
    made = answered(triage, name)
    message = answer(made, HERE)
    text = shown({"blocks": message.blocks})
    assert made.source[-40:] in text
    assert made.changes[0].key in text
    root = next(item for item in made.evidence if item.role == "root")
    assert f":{root.line}" in text or f"L{root.line}" in text
    first = buttons({"blocks": message.blocks})[0]
    assert first["action_id"] == "whycrash_more"


def test_that_the_first_message_stays_short_whatever_comes_with_it() -> None:
    """Notes, an earlier crash with all that was said of it, and a model's words, each of them too long."""
    word = "word " * 2000
    now = datetime(2026, 11, 28, tzinfo=UTC)
    note = CrashNoteRecord(
        fingerprint="f", state="fixed", owner="o" * 100, fixed_by="b" * 500, created=now, caller="c"
    )
    seen = Recurrence(times=3, first=now, last=now, triage="01M", job=word, fix=word, note=note)
    message = answer(huge(), HERE, AnswerExtras((word,), (word,) * 9, "m", seen))
    check(message)
    assert length(message.blocks) < 2_200


def test_that_an_oversized_answer_is_cut_by_rank_and_says_so() -> None:
    message = whole(huge(), HERE)
    check(message)
    text = shown({"blocks": message.blocks})
    # The first change and the line that proves the cause outrank what follows from it.
    assert "word" in text
    assert "What to change" in text
    assert re.search(r"(\d+) further parts are left out", text)
    assert "L1 " in text
    assert "L59 " not in text


def test_that_parts_of_lower_rank_go_first() -> None:
    pieces = [
        AnswerPiece("A", 10, "a" * 900),
        AnswerPiece("B", 30, "b" * 900),
        AnswerPiece("B", 20, "c" * 900),
    ]
    blocks, left = fit(pieces, most=2000)
    text = shown({"blocks": blocks})
    assert left == 1
    assert "a" * 900 not in text
    assert text.index("b" * 900) < text.index("c" * 900)


def test_that_an_answer_without_a_cause_names_none() -> None:
    text = shown(
        {
            "blocks": answer(
                diagnosis(verdict="unknown", cause="insufficient-evidence", standing="none"), HERE
            ).blocks
        }
    )
    assert "insufficient-evidence" not in text


@each_row(
    ("fields", "page"),
    [
        ({"public_url": "https://w.example/"}, "https://w.example/?triage=X"),
        ({}, ""),
        ({"host": "::"}, ""),
        ({"host": "::1"}, ""),
        ({"host": "10.0.0.7", "port": 80}, "http://10.0.0.7:80/?triage=X"),
        ({"host": "fd00::1"}, "http://[fd00::1]:8642/?triage=X"),
    ],
)
def test_that_the_page_is_linked_where_others_can_reach_it(fields: dict[str, Any], page: str) -> None:
    assert page_of(replace(Settings(), **fields), "X") == page


def test_that_the_patch_is_offered_where_there_is_one() -> None:
    with_patch, without = (answer(diagnosis(patch=patch), Settings()) for patch in ("--- a\n", None))
    assert [item["action_id"] for item in buttons({"blocks": with_patch.blocks})] == [
        "whycrash_patch",
        "whycrash_right",
        "whycrash_wrong",
    ]
    assert [item["action_id"] for item in buttons({"blocks": without.blocks})] == [
        "whycrash_right",
        "whycrash_wrong",
    ]


@each_row(
    ("text", "expected"),
    [
        ("**bold** and *it*", "*bold* and *it*"),
        ("## Why\nx", "*Why*\nx"),
        ("- a\n  - b", "• a\n  • b"),
        ("a `**x** <y>` b", "a `**x** &lt;y&gt;` b"),
        ("```\n- a\n```", "```\n- a\n```"),
        ("<!here> & [x](https://e)", "&lt;!here&gt; &amp; [x](https://e)"),
        ("a ` b", "a ` b"),
    ],
)
def test_that_markdown_becomes_slacks(text: str, expected: str) -> None:
    assert from_markdown(text) == expected


@each_row(
    ("url", "expected"),
    [
        ("https://a.example/b?c&d", "<https://a.example/b?c&amp;d|t&gt;¦>"),
        ("javascript:alert(1)", "t&gt;|"),
        ("https://a|b", "t&gt;|"),
        ("https://a b", "t&gt;|"),
        ("http://[", "t&gt;|"),
        ("mailto:x", "t&gt;|"),
    ],
)
def test_that_only_addresses_of_the_web_are_linked(url: str, expected: str) -> None:
    assert link(url, "t>|") == expected


@QUICK
@given(TEXTS | NASTY)
def test_that_escaping_leaves_no_markup_and_loses_no_visible_character(text: str) -> None:
    escaped = escape(text)
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", escaped)
    assert unescape(escaped) == "".join(char for char in text if char in "\t\n" or char.isprintable())


@QUICK
@given(NASTY, st.integers(2, 200))
def test_that_a_cut_leaves_no_half_of_an_entity(text: str, most: int) -> None:
    cut = clip(escape(text), most)
    assert len(cut) <= most
    assert not re.search(r"&(?!amp;|lt;|gt;)", cut)


@QUICK
@given(TEXTS | NASTY)
def test_that_any_text_in_an_answer_is_shown_within_the_limits_and_as_text(text: str) -> None:
    case = CaseHit(id="verl/x", title=text, score=1, urls=(f"https://e.example/{text}",), fix=text)
    made = diagnosis(
        headline=text,
        explanation=f"{text} [case:verl/x]",
        evidence=(Evidence(line=1, text=text, role="root", why=text, file=text),),
        changes=(change(text, to=text, from_=text, why=text, costs=text, framework=text),),
        checks=(text,),
        cases=(case,),
        alternatives=(Alternative(cause=text, confidence=0.1, tell_apart=text),),
        telemetry=Telemetry(says="agrees", why=text),
        engine=Engine(note=text),
    )
    for message in (
        answer(made, HERE, AnswerExtras((text,), (text,))),
        whole(made, HERE),
        turn(text, made, HERE),
        text_message(text or "x"),
        hits_message([case], "en"),
    ):
        check(message) if message.text else None
        assert all(re.match(r"<https://e\.example/[^|<>\s]*\|[^<>|]*>", item) for item in markup(message)), (
            markup(message)
        )


@QUICK
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 100), st.integers(1, 4000), st.booleans()),
        max_size=120,
    )
)
def test_that_what_fits_keeps_to_both_limits(parts: list[tuple[str, float, int, bool]]) -> None:
    pieces = [
        AnswerPiece(heading, score, "x" * size, is_log)
        for heading, score, size, is_log in sorted(parts, key=lambda part: part[0])
    ]
    blocks, left = fit(pieces)
    assert length(blocks) <= fitting.TEXT
    assert len(blocks) <= fitting.BLOCKS
    assert 0 <= left <= len(pieces)
    json.dumps(blocks)
