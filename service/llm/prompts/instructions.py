"""The instructions to a model, in the language of who asks.

Placeholders: `open` and `close` (the marks around log text), `but` (what may be written though), `dropped`
(changes that do not stand).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from corpus.schema import Language
from service.llm.prompts import chinese, english


@dataclass(frozen=True)
class Instructions:
    """All that a model is told in our own words before a prompt's sections.

    `answer` and `turn` ask for an answer and for one to a follow-up question, `repair` and `repair_task` to
    put one into its form; `look` offers the tools, `looked` stands above what they found, `answer_now` ends
    them; `anew` says which changes did not stand. `no_causes` defines what an answer may say that is no
    cause; `but_changes` and `but_offered` fill `but`.
    """

    answer: str
    turn: str
    repair: str
    repair_task: str
    look: str
    looked: str
    answer_now: str
    anew: str
    but_changes: str
    but_offered: str
    no_causes: Mapping[str, str]


_TEXTS: Mapping[Language, ModuleType] = {"en": english, "zh": chinese}
INSTRUCTIONS: Mapping[Language, Instructions] = {
    language: Instructions(
        answer=text.ANSWER,
        turn=text.TURN,
        repair=text.REPAIR,
        repair_task=text.REPAIR_TASK,
        look=text.LOOK,
        looked=text.LOOKED,
        answer_now=text.ANSWER_NOW,
        anew=text.ANEW,
        but_changes=text.BUT_CHANGES,
        but_offered=text.BUT_OFFERED,
        no_causes=text.NO_CAUSES,
    )
    for language, text in _TEXTS.items()
}
