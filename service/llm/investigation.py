"""A model that looks before it answers: rounds of tool calls within bounds, then its answer.

The model decides what to look at, and nothing else: the tools only read, each answer is bounded and fenced,
and what it may quote afterwards is what it was shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from corpus.message import Message, in_language, words
from corpus.schema import Language
from ingest.redaction.redactor import Redactor
from service.llm import model_calls
from service.llm.claims import MAX_ANSWER, Claim, Claims
from service.llm.client import LlmClient
from service.llm.deadline import Deadline
from service.llm.log_view import LogView
from service.llm.models import ChatMessage, ToolCall, parsed_arguments
from service.llm.prompt import for_answer
from service.llm.prompt_context import Prompt, PromptContext
from service.llm.prompt_injection import (
    LONGEST_DECIDING,
    WITHHELD,
    excerpt,
    fence,
    neutralize,
    withhold,
    withhold_in_file,
)
from service.llm.prompt_lines import gap_row, own_names
from service.llm.prompts.instructions import INSTRUCTIONS, Instructions
from service.llm.row_folding import head_and_tail
from service.llm.tokens import cut_to_tokens, estimate_tokens
from service.llm.tools import TOOLS, Found, ToolContext, ToolError, call_tool, schemas
from service.llm.triage_context import TriageContext
from service.schemas.diagnosis import Dropped, TraceStep
from service.schemas.errors import ModelRejectedError, ModelToolsError

# Of what a model may be shown in all, one answer is at most this part.
LARGEST = 4
# What a row costs beside its text and mark, and what may be said of the gap above it.
ROW = 8
# Of what a model writes before its calls, so much is sent back to it.
MAX_THOUGHT = 2000
# Calls of one round that are answered at all, be it with a refusal; what else it makes is not read.
MAX_AT_ONCE = 16
_SHOWN, _MAX_ARGUMENTS = 200, 8
# Arguments that are marks of lines, and one however it is written.
_MARKS = frozenset({"first", "last", "line"})
_MARK = re.compile(r"\[?l?(\d+)\]?")
# How a row of a file begins: with its number.
_ROW = re.compile(r"(\d+): ")


@dataclass(frozen=True, slots=True)
class LookLimits:
    """How often a model may look, and for how many seconds; no calls are a single shot."""

    calls: int = 0
    seconds: float = 45.0


SINGLE_SHOT = LookLimits()


@dataclass
class Investigation:
    """A model's looks at one job; `prompt` grows by what they show, `rows` holds the lines as they stand.

    `kind` is the form of the answer that they lead to.
    """

    triage_context: TriageContext
    prompt_context: PromptContext
    prompt: Prompt
    limits: LookLimits
    budget: int
    kind: type[Claim] = Claims
    trace: list[TraceStep] = field(default_factory=list)
    rows: dict[int, str] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _notes: list[str] = field(default_factory=list)

    @property
    def _language(self) -> Language:
        return self.prompt_context.language

    @property
    def _instructions(self) -> Instructions:
        return INSTRUCTIONS[self._language]

    @property
    def first_messages(self) -> tuple[ChatMessage, ...]:
        """What a model is sent first."""
        if not self.limits.calls:
            return self.prompt.messages
        system, *rest = self.prompt.messages
        return (
            replace(system, text=system.text + self._instructions.look.format(calls=self.limits.calls)),
            *rest,
        )

    def listen(self, asker: LlmClient, is_said: Callable[[], bool]) -> Iterator[str | TraceStep]:
        """Yield each look, and the answer as far as it has come; raises ModelError.

        A model that calls no tools is asked once, as without them.
        """
        if not self.limits.calls:
            yield from asker.stream(self.prompt.messages, self.kind, is_said)
            return
        deadline = Deadline(min(self.limits.seconds, asker.deadline.left))
        view = LogView(self.prompt_context.report, self.triage_context.reopen, deadline)
        tools = ToolContext(self.prompt_context, view, self.triage_context.near)
        messages = [*self.first_messages]
        while len(self.trace) < self.limits.calls and deadline.left:
            text = ""
            try:
                for text in asker.stream_with_tools(messages, schemas(self._language), is_said):
                    yield text
            except ModelRejectedError as error:
                # Without tools, or where what was found is too long, it is asked in another way.
                if self.trace or isinstance(error, ModelToolsError):
                    break
                raise
            calls = asker.calls[:MAX_AT_ONCE]
            # An answer that was passed on in part stands, whatever is called beside it.
            if is_said() or not calls:
                return
            # As it can be sent back: with an id, and a name that providers take.
            calls = tuple(
                ToolCall(
                    call.id[:_SHOWN] or f"call_{len(messages)}_{place}",
                    call.name if call.name in TOOLS else "unknown",
                    call.arguments,
                )
                for place, call in enumerate(calls)
            )
            messages.append(ChatMessage("assistant", text[:MAX_THOUGHT], calls))
            for call in calls:
                before = len(self.trace)
                messages.append(ChatMessage("tool", self._answered(tools, call), call_id=call.id))
                yield from self.trace[before:]
        try:
            yield from asker.stream(self._last_messages(), self.kind, is_said)
        except ModelRejectedError:
            if not self._notes or is_said():
                raise
            # What was found may be what makes it too long.
            yield from asker.stream(self.prompt.messages, self.kind, is_said)

    def ask_anew(self, asker: LlmClient, answer: str, dropped: Sequence[Dropped]) -> Claims:
        """Ask for the answer once more, saying which changes did not stand and why; raises ModelError."""
        language = self._language
        rows = "\n".join(
            f"- {neutralize(in_language(item.what, language), _SHOWN)}: {in_language(item.why, language)}"
            for item in dropped
        )
        said = self._instructions.anew.format(dropped=rows)
        talk = (ChatMessage("assistant", answer[:MAX_ANSWER]), ChatMessage("user", said))
        return asker.read(Claims, asker.whole((*self._last_messages(), *talk), Claims))

    def _last_messages(self) -> tuple[ChatMessage, ...]:
        """Give what asks for the answer at once: the first prompt, and what was found, without any calls."""
        if not self._notes:
            return self.prompt.messages
        found = "\n\n".join(
            f"{step.tool} {json.dumps(step.arguments, ensure_ascii=False)}\n{text}"
            for step, text in zip(self.trace, self._notes, strict=True)
        )
        said = self._instructions
        text = f"{said.looked}\n\n{found}\n\n{said.answer_now}"
        return (*self.prompt.messages, ChatMessage("user", text))

    def _answered(self, tools: ToolContext, call: ToolCall) -> str:
        """Answer a call; one beyond the bounds is refused and counts for nothing."""
        if len(self.trace) >= self.limits.calls:
            return self._instructions.answer_now
        arguments = parsed_arguments(call.arguments)
        kept = {
            neutralize(str(name), 40): Redactor().clean(neutralize(str(value), _SHOWN))
            for name, value in list((arguments or {}).items())[:_MAX_ARGUMENTS]
        }
        says = Message("model.looked-wrong", tool=call.name)
        asked = _question(call.name, arguments or {})
        if arguments is None:
            text = self._error(Message("tools.no-object"))
        elif asked in self._asked:
            text = words("tools.asked-before", self._language)
        else:
            self._asked.add(asked)
            tools.view.is_cut = False
            try:
                with model_calls.tool_call(call.name):
                    found = call_tool(tools, call.name, arguments)
                text, says = self._shown(found), found.says
            except ToolError as error:
                text = self._error(error.args[0])
            if tools.view.is_cut:
                text += "\n" + words("tools.time-up", self._language)
        # A model may repeat what it could not have seen, such as a key that it guesses.
        told = says.with_values(Redactor().clean)
        self.trace.append(TraceStep(tool=call.name, arguments=kept, found=told))
        self._notes.append(text)
        return text

    def _error(self, why: object) -> str:
        return words("tools.error", self._language, why=why)

    def _shown(self, found: Found) -> str:
        """Give an answer as a model gets it, and add it to what may be quoted and cited."""
        if found.is_lines_alone and self.rows.keys() >= found.rows.keys():
            report = self.prompt_context.report
            ends = dict.fromkeys([min(found.rows), max(found.rows)])
            lines = words("tools.to", self._language).join(str(report.place(number)) for number in ends)
            return words("tools.shown-before", self._language, lines=lines)
        ids = own_names(self.prompt_context)
        report = self.prompt_context.report
        events = {event.line for event in report.events}
        limits = dict.fromkeys(self.prompt_context.deciding, LONGEST_DECIDING)
        rows, suspects = excerpt({**found.rows, **found.pieces}, events, ids, limits)
        if found.is_of_file:
            data, spoken = withhold_in_file(found.data, ids)
        else:
            data = tuple(withhold(text, ids) for text in found.data)
            spoken = sum(WITHHELD in text for text in data)
        ours = [in_language(text, self._language) for text in found.ours]
        suspects += spoken + sum(WITHHELD in text for text in ours)
        left = max(0, self.budget - sum(map(estimate_tokens, self._notes)))
        left = min(left, max(self.budget // LARGEST, 200))
        parts: list[str] = []
        for text in ours:
            parts.append(cut_to_tokens(text, left))
            left -= estimate_tokens(parts[-1])
        every = [*rows.items(), *((0, text) for text in data)]
        marks = [str(report.place(number)) if number else "" for number, _ in every]
        costs = [
            estimate_tokens(text) + estimate_tokens(mark) + ROW
            for (_, text), mark in zip(every, marks, strict=True)
        ]
        # Of a file one reads on from a row: its end says nothing without what stands between.
        kept = _head(costs, left) if found.is_of_file else head_and_tail(costs, left)
        shown: dict[int, str] = {}
        fenced: list[str] = []
        last = 0
        for place, (number, text) in enumerate(every):
            if place not in kept:
                continue
            if number and last and number > last + 1 and not report.blank_between(last, number):
                fenced.append(gap_row(report, last, number, self._language))
            fenced.append(f"{marks[place]}| {text}" if number else text)
            if number:
                shown[number], last = text, number
        # The rows are masked one look at a time; what stands together only here is looked at once more.
        clean = Redactor().rows(fenced)
        parts += [fence(clean)] if clean else []
        if any(WITHHELD in row for row in fenced):
            parts.append(words("prompt.why-withheld", self._language))
        parts += _said_to_be_cut(marks, kept, self._language, data if found.is_of_file else ())
        self.rows |= {number: found.rows[number] for number in shown}
        self._extend(shown, found, suspects, "\n".join(parts))
        return "\n".join(parts)

    def _extend(self, shown: Mapping[int, str], found: Found, suspects: int, text: str) -> None:
        prompt, report = self.prompt, self.prompt_context.report
        may_cite = [number for number, row in shown.items() if not row.startswith(WITHHELD)]
        new = {str(report.place(number)): number for number in may_cite}
        numbers = {**new, **prompt.numbers}
        lines = {**{mark: shown[number] for mark, number in new.items()}, **prompt.lines}
        suspects += prompt.suspects
        if suspects:
            # Beside a line that speaks to a model, only failures may be cited.
            events = {event.line for event in report.events}
            numbers = {mark: number for mark, number in numbers.items() if number in events}
            lines = {mark: lines[mark] for mark in numbers}
        self.prompt = replace(
            prompt,
            lines=lines,
            numbers=numbers,
            cases=prompt.cases | found.cases,
            suspects=suspects,
            looked=(*prompt.looked, text),
        )


def _question(name: str, arguments: Mapping[str, object]) -> str:
    """Give what a call asks, however it is written: a mark with or without its letter, a number as a text."""
    tool = TOOLS.get(name)
    said = {
        key: str(value).strip().casefold()
        for key, value in arguments.items()
        if tool is None or key in tool.parameters
    }
    for key in _MARKS & said.keys():
        if mark := _MARK.fullmatch(said[key]):
            said[key] = mark[1]
    return f"{name} {json.dumps({key: value for key, value in said.items() if value}, sort_keys=True)}"


def _head(costs: Sequence[int], room: int) -> set[int]:
    """Choose the places of the first rows that fit the room."""
    sums = accumulate(costs)
    return {place for place, cost in enumerate(sums) if cost <= room}


def _said_to_be_cut(
    marks: Sequence[str], kept: Collection[int], language: Language, of_file: Sequence[str]
) -> list[str]:
    """Say how many rows there was no room for, and how they are asked for; `of_file` are those of a file."""
    cut = [place for place in range(len(marks)) if place not in kept]
    if not cut:
        return []
    if of_file and (row := _ROW.match(of_file[cut[0]])):
        return [words("tools.no-room-file", language, count=len(cut), first=row[1])]
    first, last = marks[cut[0]], marks[cut[-1]]
    ask = (
        words("tools.ask-span", language, first=first, last=last)
        if first and last
        else words("tools.ask-narrower", language)
    )
    return [words("tools.no-room", language, count=len(cut), ask=ask)]


def begin_investigation(
    triage_context: TriageContext, prompt_context: PromptContext, budget: int, limits: LookLimits
) -> Investigation:
    """Make the prompt, with room for the tools where there are to be any."""
    prompt_context = replace(prompt_context, may_look=limits.calls > 0)
    prompt = for_answer(prompt_context, budget_beside_tools(budget, limits, prompt_context.language))
    return Investigation(triage_context, prompt_context, prompt, limits, budget)


def budget_beside_tools(budget: int, limits: LookLimits, language: Language) -> int:
    """Give how many tokens a prompt may have beside the tools that go with it."""
    if not limits.calls:
        return budget
    form = json.dumps(schemas(language), ensure_ascii=False)
    spent = estimate_tokens(INSTRUCTIONS[language].look) + estimate_tokens(form)
    return max(budget - spent, budget // 2)
