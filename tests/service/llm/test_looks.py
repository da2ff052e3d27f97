"""What a model that looks is told: in whose language, and of what it has seen before."""

from __future__ import annotations

import re
from typing import Any

from corpus.message import CHINESE
from ingest.logs.inputs import sources
from service.llm.investigation import LookLimits
from service.llm.prompts.instructions import INSTRUCTIONS
from service.llm.tools import schemas
from service.llm.triage_context import TriageContext
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.service.llm.answering import hear, say
from tests.service.llm.scripted import Turn
from tests.service.llm.test_investigation import LIMITS, job, log, look, shown
from tests.tables import each_row
from tests.waiting import PATIENCE

SAME = [
    ({"first": "L3", "last": "L5"}, {"first": "3", "last": "[L5]"}),
    ({"first": "L3", "last": "L5"}, {"last": "l5", "first": " L3 ", "rank": "0"}),
]


def told_of(
    triage: Triage,
    calls: list[tuple[str, dict[str, Any]]],
    language: str = "en",
    context: TriageContext | None = None,
) -> list[str]:
    """Give what a model hears on its calls, one after the other."""
    context = context or job(triage, language=language)
    told: list[str] = []

    def script(body: dict[str, Any]) -> Turn:
        told.extend(str(row["content"]) for row in body["messages"][-1:] if row["role"] == "tool")
        return Turn(calls=(calls[len(told)],)) if len(told) < len(calls) else say(context)

    hear(triage, context, script, limits=LookLimits(len(calls) + 1, PATIENCE))
    return told


@each_row("first, again", SAME)
def test_the_same_question_in_other_letters_is_answered_by_where_the_answer_stands(
    first: dict[str, Any], again: dict[str, Any], triage: Triage
) -> None:
    """A mark without its letter, in brackets, an argument that the tool has not: nothing is sent again."""
    told = told_of(triage, [("read_lines", first), ("read_lines", again)])
    assert "L4| " in told[0]
    assert told[1] == "You asked this before; the answer stands above."


def test_lines_that_other_looks_have_shown_are_named_and_not_sent_again(triage: Triage) -> None:
    """Of a span within one that was read only its ends come; one that goes on beyond it is read."""
    spans = [("L3", "L9"), ("L4", "L6"), ("L8", "L11")]
    calls = [("read_lines", {"first": first, "last": last}) for first, last in spans]
    told = told_of(triage, calls)
    assert told[1].endswith(": L4 to L6.")
    assert "L11| " in told[2]


def test_a_file_is_read_on_from_the_row_for_which_there_was_no_room(triage: Triage) -> None:
    """Its first rows come without a gap, and the number of the next."""
    code = "\n".join(f"x{number} = '{'a ' * 150}'" for number in range(90))
    read = triage.read(sources.from_text(log()), files=[ConfigFile("train.py", code)])
    call: tuple[str, dict[str, Any]] = ("read_job_file", {"name": "train.py"})
    told = told_of(triage, [call], context=triage.diagnose(read))[0]
    rows = [int(number) for number in re.findall(r"^(\d+): x", told, re.MULTILINE)]
    assert rows == list(range(1, len(rows) + 1))
    assert f"{90 - len(rows)} rows behind these are not shown" in told
    assert f"read on with first {len(rows) + 1}" in told


def test_whoever_asks_in_chinese_gets_all_of_ours_in_chinese(triage: Triage) -> None:
    """Instructions, tools and what they say of what they found; names, ids and quotes stay as they are."""
    for text in vars(INSTRUCTIONS["zh"]).values():
        assert CHINESE.search(str(text))
    for tool in schemas("zh"):
        described = [tool["function"]["description"]]
        described += [part["description"] for part in tool["function"]["parameters"]["properties"].values()]
        assert [text for text in described if not CHINESE.search(text)] == []
    calls: list[tuple[str, dict[str, Any]]] = [
        ("search_log", {"words": "nowhere-at-all"}),
        ("read_lines", {"first": "the first", "last": "L9"}),
        ("describe_cause", {"cause": "no-failure"}),
        ("describe_setting", {"key": "warp_factor"}),
        ("read_job_file", {"name": "nothing.py"}),
        ("rm_rf", {}),
        ("find_cases", {"words": "disk"}),
        ("read_telemetry", {}),
    ]
    assert [text for text in told_of(triage, calls, "zh") if not CHINESE.search(text)] == []


def test_instructions_have_the_same_form_in_each_language() -> None:
    """What is filled in, and the names that an answer is made of, stand in each translation."""
    forms = [
        "{open}",
        "{close}",
        "{but}",
        '"cause": "<id>"',
        "`no-failure`",
        "`insufficient-evidence`",
        "`script`",
    ]
    for said in INSTRUCTIONS.values():
        assert [form for form in forms if form not in said.answer] == []
        assert "{calls}" in said.look
        assert [name for name in ("{schema}", "{problem}", "{answer}") if name not in said.repair_task] == []


def test_a_look_lists_the_ids_of_all_causes(triage: Triage) -> None:
    """The prompt of a model with tools names only those near the signs; one call names every other."""
    context = job(triage)
    turns = [look("describe_cause", cause="all"), say(context)]
    heard = hear(triage, context, turns, limits=LIMITS)
    named, told = heard.server.prompt(0), shown(heard.server, 1)
    causes = [name for name in triage.library.causes if name != "insufficient-evidence"]
    assert [name for name in causes if name not in told] == []
    assert "describe_cause" in named
    assert [name for name in causes if name not in named]
    alone = hear(triage, context, [say(context)]).server.prompt(0)
    assert [name for name in causes if name not in alone] == []
