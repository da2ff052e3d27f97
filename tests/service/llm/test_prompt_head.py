"""What the head of a prompt says of the first answer, and of the runs that the log holds."""

from __future__ import annotations

from service.llm.prompts.instructions import INSTRUCTIONS
from service.pipeline.triage import Triage
from tests.factories import steps
from tests.service.llm.answering import asked_of, context_and_prompt


def head(triage: Triage, log: str) -> list[str]:
    """Give the rows about the first answer."""
    _, prompt = context_and_prompt(asked_of(triage, log))
    section = next(
        part for part in prompt.messages[1].text.split("\n\n") if part.startswith("# First answer")
    )
    return section.split("\n")[1:]


def test_a_log_that_just_stops_is_told_under_the_name_that_the_instructions_want(triage: Triage) -> None:
    """The head says insufficient-evidence where the rule does, and no other name beside it."""
    first = head(triage, steps(*range(1, 40)))[0]
    assert "insufficient-evidence" in first
    assert "no-failure" not in first
    rule = "log just stops amid work, `insufficient-evidence`"
    said = INSTRUCTIONS["en"]
    assert [text.count(rule) for text in (said.answer, said.no_causes["no-failure"])] == [1, 1]
