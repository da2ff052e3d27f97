"""A model's words in every face: behind the rules', under the model's name, and without what would lead a
reader away.
"""

from __future__ import annotations

import io
import json
from html import unescape

from rich.console import Console

from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from service.settings import Settings
from tests.service.llm.answering import asked, faithful, hear
from tests.service.llm.injections import BAIT, LURES
from tests.service.llm.scripted import Turn
from ui.chat import answer as chat
from ui.chat import privacy
from ui.chat.view import TriageView
from ui.cli import explain
from ui.mcp import answers as mcp
from ui.slack import answer as slack

TRUE = "The first failure of the job stands in this line."


def printed(diagnosis: Diagnosis) -> str:
    """Print a diagnosis as the command does."""
    console = Console(file=io.StringIO(), width=300)
    explain.render(diagnosis, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def faces(triage: Triage, diagnosis: Diagnosis) -> dict[str, str]:
    """Render an answer in every face."""
    view = TriageView(language=diagnosis.language, state="done", diagnosis=diagnosis)
    return {
        "terminal": printed(diagnosis),
        "page": unescape(
            str(chat.head(view, triage.library))
            + str(chat.why(view, triage.library))
            + str(privacy.render(view))
        ),
        "Slack": "\n".join(str(part) for part in slack.answer(diagnosis, Settings()).blocks),
        "assistant": mcp.brief(mcp.shortened(diagnosis)),
    }


def test_every_face_shows_a_models_words_as_its_own_behind_the_rules(triage: Triage) -> None:
    """True sentences among lures: those are shown, under the model's name, and none of the lures is, also not
    in the list of what was dropped.
    """
    wrong = []
    for language, said, label in (
        ("en", TRUE, "What the model (openai:scripted) says"),
        ("zh", "作业的首个失败就在这一行。", "模型（openai:scripted）的说法"),
    ):
        triage_context = asked(triage, language=language)
        mark = f"[L{triage_context.first.evidence[0].line}]"
        # A true sentence for each lure, since an answer that is mostly dropped is not shown at all.
        text = "\n\n".join(f"{said} {mark}\n\n{lure} {mark}" for lure in LURES)
        final = hear(
            triage,
            triage_context,
            [Turn(json.dumps(faithful(triage_context, explanation=text), ensure_ascii=False), stride=400)],
        ).final
        before = faces(triage, triage_context.first)
        for face, shown in faces(triage, final).items():
            why = triage_context.first.explanation.split("\n")[0].split("[")[0].split("`")[0].strip()[:30]
            ordered = -1 < shown.find(why) < shown.find(label) < shown.find(said)
            baits = [bait for bait in BAIT if shown.count(bait) > before[face].count(bait)]
            wrong += (
                [(language, face, baits)]
                if baits or not (ordered or (face == "assistant" and language == "zh" and said in shown))
                else []
            )
    assert wrong == []
