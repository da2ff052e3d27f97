"""`whycrash search`: cases, notes and past crashes by a person's words."""

from __future__ import annotations

from rich.text import Text

from corpus.message import is_chinese, words
from service.api.keys import checked_team
from service.pipeline.triage import Triage
from ui.cli.codes import EXPLAINED, UNKNOWN
from ui.cli.console import language, load_settings, out, progress


def run(text: str, count: int, lang: str, team: str = "") -> int:
    """Search and print what was found, best first."""
    checked_team(team)
    settings = load_settings()
    chosen = language(lang or ("zh" if is_chinese(text) else ""))
    with progress() as report:
        triage = Triage(settings, report)
        found = triage.retriever.search(text, count, team)
    console = out()
    for item in found:
        case = triage.library.cases.get(item.owner)
        title = case.title.to(chosen) if case else (item.document.title if item.document else "")
        console.print(Text.assemble((f"{item.score:5.2f}  ", "dim"), (item.owner, "cyan"), f"  {title}"))
        if item.kind != "case" and item.document:
            console.print(Text(f"       {item.document.origin}", style="dim"))
    if not found:
        console.print(words("cli.nothing-found", chosen))
    return EXPLAINED if found else UNKNOWN
