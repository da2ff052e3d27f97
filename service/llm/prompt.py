"""The prompt: what is known of a failure in ranked rows, within a budget of tokens."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from corpus.message import words
from corpus.schema import Language
from ingest.redaction.redactor import Redactor
from service.llm.claims import Claim, Claims, ModelReply, schema
from service.llm.models import ChatMessage
from service.llm.prompt_context import Prompt, PromptContext
from service.llm.prompt_injection import (
    CLOSE,
    LONGEST_DECIDING,
    LONGEST_ROW,
    OPEN,
    WITHHELD,
    fence,
    neutralize,
)
from service.llm.prompt_lines import PromptRow, gap_row, is_told, log_rows, run_heads
from service.llm.prompt_sections import SECTIONS
from service.llm.prompts.instructions import INSTRUCTIONS
from service.llm.tokens import cut_to_tokens, estimate_tokens

# Stands for a row's end within a piece, while pieces are told apart by theirs.
_BREAK = "\x0b"


# The sections in the order of the prompt: name, and whether it is text of the log.
_SECTIONS: tuple[tuple[str, bool], ...] = (
    ("answer", False),
    ("telemetry", True),
    ("candidates", False),
    ("log", True),
    ("facts", True),
    ("code", True),
    ("settings", True),
    ("files", True),
    ("changes", False),
    ("cases", False),
    ("notes", True),
    ("causes", False),
)


def for_answer(prompt_context: PromptContext, budget: int) -> Prompt:
    """Make the prompt for an answer, of at most `budget` tokens by our estimate."""
    said = INSTRUCTIONS[prompt_context.language]
    system = said.answer.format(open=OPEN, close=CLOSE, but=said.but_changes)
    return _built(prompt_context, system, (), _rest(budget, system, Claims), Claims)


def for_turn(
    prompt_context: PromptContext, budget: int, talk: Sequence[ChatMessage], constraints: Sequence[str]
) -> Prompt:
    """Make the prompt for a turn of a conversation.

    `talk` ends with the question, and what is oldest is cut first.
    """
    said = INSTRUCTIONS[prompt_context.language]
    system = said.turn.format(open=OPEN, close=CLOSE, but=said.but_offered)
    if constraints:
        system += "\nconstraints:\n" + "\n".join(f"- {neutralize(row, 200)}" for row in constraints)
    latest = list(_latest(talk, budget // 4))
    spent = sum(estimate_tokens(message.text) for message in latest)
    return _built(prompt_context, system, latest, _rest(budget, system, ModelReply) - spent, ModelReply)


def for_repair(
    kind: type[Claim], answer: str, problem: str, budget: int, language: Language = "en"
) -> tuple[ChatMessage, ...]:
    """Make the prompt that puts a broken answer into its form; the log is not sent again."""
    form, said = json.dumps(schema(kind)), INSTRUCTIONS[language]
    ours = estimate_tokens(said.repair) + estimate_tokens(said.repair_task)
    left = budget - ours - 2 * estimate_tokens(form) - 300
    # What a model wrote is no more trusted than a log.
    text = "\n".join(neutralize(row, 4000) for row in cut_to_tokens(answer, max(left, 200)).splitlines())
    task = said.repair_task.format(
        schema=form, problem=neutralize(problem, 300), answer=text, open=OPEN, close=CLOSE
    )
    return ChatMessage("system", said.repair), ChatMessage("user", task)


def _rest(budget: int, system: str, kind: type[Claim]) -> int:
    # Each heading and fence costs a few tokens that no row counts.
    return budget - estimate_tokens(system) - estimate_tokens(json.dumps(schema(kind))) - 12 * len(_SECTIONS)


def _latest(talk: Sequence[ChatMessage], budget: int) -> Iterator[ChatMessage]:
    """Give the last messages that fit, in their order; the question itself always."""
    kept: list[ChatMessage] = []
    for message in reversed(talk):
        short = replace(message, text=cut_to_tokens(message.text, budget if not kept else budget // 2))
        budget -= estimate_tokens(short.text)
        if kept and budget < 0:
            break
        kept.append(short)
    return reversed(kept)


def _built(
    prompt_context: PromptContext, system: str, talk: Sequence[ChatMessage], budget: int, kind: type[Claim]
) -> Prompt:
    # Of a small prompt one long row would be all.
    lines, suspects = log_rows(prompt_context, min(LONGEST_DECIDING, max(LONGEST_ROW, budget)))
    rows = [*lines, *(row for make in SECTIONS for row in make(prompt_context))]
    kept, _ = _fitting(rows, budget)
    # Rows that say no more than lines of the log that are sent give their room to others.
    sent = {rows[place].number for place in kept if rows[place].mark}
    rows = [row for row in rows if not row.said_by or not sent.issuperset(row.said_by)]
    kept, omitted = _fitting(rows, budget)
    body = _written(rows, kept, prompt_context)
    if estimate_tokens(body) > budget:
        body = _written(rows, kept, prompt_context, is_brief=True)
    # A conversation's question stands last; what it is about is told before it.
    messages = (ChatMessage("system", system), ChatMessage("user", body), *talk)
    chosen = [row for place, row in enumerate(rows) if place in kept]
    # Beside a line that speaks to a model, only failures may be cited.
    events = {event.line for event in prompt_context.report.events}
    shown_lines = [row for row in chosen if row.mark and not row.text.startswith(WITHHELD)]
    marked = [row for row in shown_lines if not suspects or row.number in events]
    # A line of which only a fact is sent may be cited, for what the fact says.
    told = {row.cites: row for row in chosen if row.cites and not suspects}
    of_log = {name for name, is_text_of_log in _SECTIONS if is_text_of_log}
    ours = "\n".join(row.text for row in chosen if row.section not in of_log)
    return Prompt(
        messages,
        {**{mark: row.text for mark, row in told.items()}, **{row.mark: row.text for row in marked}},
        {**{mark: row.number for mark, row in told.items()}, **{row.mark: row.number for row in marked}},
        frozenset(row.case for row in chosen if row.case),
        ours,
        sum(estimate_tokens(message.text) for message in messages)
        + estimate_tokens(json.dumps(schema(kind))),
        omitted,
        suspects,
        has_telemetry=prompt_context.assessment.snapshot is not None,
    )


def _fitting(rows: Sequence[PromptRow], budget: int) -> tuple[set[int], dict[str, int]]:
    """Choose the rows that fit, by rank, and count the others by section."""
    kept: set[int] = set()
    omitted: dict[str, int] = {}
    for place in sorted(range(len(rows)), key=lambda place: rows[place].rank):
        cost = estimate_tokens(rows[place].text) + estimate_tokens(rows[place].mark) + 5
        if cost <= budget:
            kept.add(place)
            budget -= cost
        else:
            omitted[rows[place].section] = omitted.get(rows[place].section, 0) + 1
    return kept, omitted


def _written(
    rows: Sequence[PromptRow], kept: Collection[int], prompt_context: PromptContext, *, is_brief: bool = False
) -> str:
    """Write the sections; `is_brief` says of lines that are left out no more than their number."""
    parts = []
    report, language = prompt_context.report, prompt_context.language
    for name, of_log in _SECTIONS:
        heading = words(f"prompt.heading-{name}", language)
        chosen = sorted(
            (row for place, row in enumerate(rows) if place in kept and row.section == name),
            key=lambda row: row.number,
        )
        # The report is redacted by line; what stands together only here is looked at once more, before the
        # marks are put on: no mask takes one away, or the end of a row.
        theirs = [place for place, row in enumerate(chosen) if not row.is_ours]
        masked = Redactor().rows([_on_one_line(chosen[place]) for place in theirs])
        clean = dict(zip(theirs, masked, strict=True))
        texts: list[str] = []
        last: PromptRow | None = None
        heads = run_heads(report, language) if name == "log" else []
        for place, row in enumerate(chosen):
            text = clean.get(place, row.text)
            above = last.number if last else 0
            if row.mark and row.number - above > 1 and not is_told(report, above, row.number):
                texts.append(gap_row(report, above, row.number, language, is_brief=is_brief))
            while row.mark and heads and heads[0][0] <= row.number:
                texts.append(heads.pop(0)[1])
            texts.append(f"{row.mark}| {text}" if row.mark else text.replace(_BREAK, "\n"))
            last = row
        if any(WITHHELD in text for text in texts):
            heading += f". {words('prompt.why-withheld', language)}"
        if texts:
            parts.append(f"# {heading}\n" + (fence(texts) if of_log else "\n".join(texts)))
    return "\n\n".join(parts)


def _on_one_line(row: PromptRow) -> str:
    return " ".join(row.text.split("\n")) if row.mark else row.text.replace("\n", _BREAK)


def shown(prompt: Prompt, form: Mapping[str, object], tools: Sequence[Mapping[str, object]] = ()) -> str:
    """Give exactly what would be sent, for a person to read; `tools` are those that may be called."""
    parts = [f"===== {message.role} =====\n{message.text}" for message in prompt.messages]
    parts.append(
        "===== form of the answer (JSON schema) =====\n" + json.dumps(form, ensure_ascii=False, indent=2)
    )
    if tools:
        listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
        parts.append(
            "===== tools that it may call; what they find in the redacted log is sent then =====\n" + listed
        )
    omitted = ", ".join(f"{name} {count}" for name, count in prompt.omitted.items()) or "nothing"
    parts.append(
        f"===== about {prompt.tokens} tokens; left out for want of room: {omitted}; lines withheld: "
        f"{prompt.suspects} ====="
    )
    return "\n\n".join(parts)
