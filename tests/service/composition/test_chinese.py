"""A Chinese answer: none of our own sentences in it is English, and it changes the job as the English one
does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ingest.logs.inputs import sources
from service.composition import reasons
from service.llm.conversation import Turn
from service.patching.diagnosis_patch import patch_targets
from service.pipeline.triage import Triage
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import Diagnosis
from tests.service.llm.answering import asked
from tests.tables import each_row
from tests.warm import INCIDENTS, WRITE_UPS, answered, diagnosed

# Failures of many frameworks; most have guidance among their changes.
NAMES = (
    "avocet-24",
    "birch-siskin",
    "cairn-flume",
    "dotterel-23",
    "dune-tide",
    "lab-ametrine",
    "lab-serpentine",
    "onyx-dabchick",
    "pebble-40",
    "ruff-19",
    "siskin-09",
    "teasel-flume",
    "thistle-18",
    "w2-pochard",
    "w2-twite",
    "wicket-26",
)
QUESTIONS = (
    "为什么不是网络问题？",
    "这些修改的代价是什么？",
    "怎么确认？",
    "还能怎么改？",
    "不能改 batch size，也没有更多显卡",
    "发生了什么？",
    "天气如何",
)
# Code, commands, citations, and what a log or a program says.
FOREIGN = re.compile(r"`[^`]*`|pip show [\w ]+|\[[^\]]*\]|https?://\S+|“[^”]*”|\"[^\"]*\"")
ENGLISH = re.compile(r"(?:[A-Za-z][A-Za-z'’-]*[,;:]?\s+){4,}[A-Za-z]+")


def english(*texts: str) -> list[str]:
    """Find runs of five English words that are not code, a quote or an address."""
    return [found[0] for text in texts for found in ENGLISH.finditer(FOREIGN.sub("¶", text))]


def chinese(triage: Triage, name: str) -> Diagnosis:
    """Answer for an incident's log in Chinese."""
    return diagnosed(triage, sources.from_path(INCIDENTS / name / "log.txt"), "zh")


def ours(answer: Diagnosis) -> Iterator[str]:
    """Give all that we say ourselves in an answer."""
    yield from (answer.headline, answer.explanation, *answer.checks, answer.engine.note, answer.telemetry.why)
    yield from (item.tell_apart for item in answer.alternatives)
    yield from (item.why for item in answer.evidence)
    for change in answer.changes:
        yield from (str(change.to) if is_guidance(change.to) else "", change.why, change.costs)
    yield from (item.why for item in reasons.translate_reasons(answer.engine.dropped, "zh"))


@each_row(
    ("text", "found"),
    [
        ("把它设成 the node that the log names", 1),
        ("见 “no space left on the device”", 0),
        ("用 `pip show a b c d`", 0),
    ],
)
def test_that_english_is_found_where_it_is_ours(text: str, found: int) -> None:
    assert len(english(text)) == found


@each_row("name", NAMES)
def test_that_a_chinese_answer_has_no_english_sentence_of_ours(name: str, triage: Triage) -> None:
    assert english(*ours(chinese(triage, name))) == []


def test_that_guidance_is_told_in_chinese_and_never_passes_for_a_value(triage: Triage) -> None:
    """Of the same changes in both languages, the same are guidance, and none of it is a target of a patch."""
    told = 0
    for name in NAMES:
        log = INCIDENTS / name / "log.txt"
        first, second = (
            diagnosed(triage, sources.from_path(log), language).changes for language in ("en", "zh")
        )
        assert [(one.key, one.status, is_guidance(one.to)) for one in first] == [
            (two.key, two.status, is_guidance(two.to)) for two in second
        ]
        pairs = [
            (one, two)
            for one, two in zip(first, second, strict=True)
            if is_guidance(one.to) and one.to != two.to
        ]
        report = triage.reader.read(sources.from_path(log))
        targets = patch_targets([two for _, two in pairs], report, triage.library)
        # A limit's own command holds its value, whatever is said beside it.
        assert [target for target in targets if is_guidance(target.to)] == []
        assert {target.to for target in targets} <= {word for one, _ in pairs for word in one.key.split()}
        told += len(pairs)
    assert told >= len(NAMES)


@each_row("name", WRITE_UPS)
def test_that_the_patch_is_the_same_in_both_languages(name: str, triage: Triage) -> None:
    assert answered(triage, name, "zh").patch == answered(triage, name, "en").patch is not None


@each_row("name", WRITE_UPS[:3])
def test_that_a_conversation_is_chinese(name: str, triage: Triage) -> None:
    talk = triage.conversation(asked(triage, name, "zh"), with_model=False)
    turns = [turn for question in QUESTIONS for turn in talk.ask(question) if isinstance(turn, Turn)]
    assert len(turns) == len(QUESTIONS)
    assert english(*(turn.text for turn in turns)) == []
    assert "GPU 与节点的数量" in turns[4].text
