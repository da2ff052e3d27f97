"""The prompt: what is known of a failure in ranked rows, within a budget of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from corpus.keys import last_level
from corpus.library import Library
from corpus.schema import Change
from ingest.logs.events import Event, masked
from ingest.redaction.redactor import Redactor
from service.composition import phrases
from service.llm.claims import Claim, Claims, ModelReply, schema
from service.llm.models import ChatMessage
from service.llm.prompt_context import Prompt, PromptContext
from service.llm.prompt_injection import CLOSE, OPEN, WITHHELD, excerpt, fence, neutralize, withhold
from service.llm.prompts.instructions import ANSWER, LANGUAGES, REPAIR, REPAIR_TASK, TURN
from service.llm.tokens import cut_to_tokens, estimate_tokens
from service.remediation.feasibility import same
from service.remediation.framework_relations import settable_frameworks
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring.scoring import Candidate

MAX_SETTINGS = 60
MAX_NEIGHBOURS = 8
MAX_CASES = 5
# A setting that ranks behind this is of no interest by itself; so many of them are told.
SPECIAL, MAX_DULL = 5.0, 40
_LONGEST = 400
# Rows this near the root's line come before all others; of the log's last rows so many are shown.
NEAR, SHOWN_END = 5, 10
# Lines alike, facts of one kind, failing stacks and their frames: more of them say little more.
ALIKE, OF_A_KIND, STACKS, FRAMES = 3, 6, 4, 12
# Of so many candidates it is told what they are confused with.
TOLD_APART = 2
# A row of the surroundings that stands there so often is left out from then on.
REPEATS = 2
_WORD = re.compile(r"[A-Za-z][\w.-]{2,60}")
# Stands for a row's end within a piece, while pieces are told apart by theirs.
_BREAK = "\x0b"
_SECTION = re.compile(r"^### ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A piece that is sent whole or not at all, the lowest rank first.

    `mark` is that of the log's line, `case` the id of the case that it is of.
    """

    section: str
    rank: float
    text: str
    mark: str = ""
    number: int = 0
    case: str = ""


# The sections in the order of the prompt: name, heading, whether it is text of the log.
_SECTIONS: tuple[tuple[str, str, bool], ...] = (
    ("answer", "First answer, by rules", False),
    ("candidates", "Candidate causes", False),
    ("log", "Lines of the log", True),
    ("facts", "Facts of the log", True),
    ("settings", "The job's settings that the log shows", True),
    ("changes", "Offered changes, checked for this job", False),
    ("cases", "Known cases", False),
    ("notes", "The user's own notes and past crashes", True),
    ("causes", "Other causes", False),
)


def for_answer(prompt_context: PromptContext, budget: int) -> Prompt:
    """Make the prompt for an answer, of at most `budget` tokens by our estimate."""
    system = _told(ANSWER, prompt_context, but=", but in the changes that you propose")
    return _built(prompt_context, system, (), _rest(budget, system, Claims), Claims)


def for_turn(
    prompt_context: PromptContext, budget: int, talk: Sequence[ChatMessage], constraints: Sequence[str]
) -> Prompt:
    """Make the prompt for a turn of a conversation.

    `talk` ends with the question, and what is oldest is cut first.
    """
    system = _told(TURN, prompt_context)
    if constraints:
        system += "\nconstraints:\n" + "\n".join(f"- {neutralize(row, 200)}" for row in constraints)
    latest = list(_latest(talk, budget // 4))
    spent = sum(estimate_tokens(message.text) for message in latest)
    return _built(prompt_context, system, latest, _rest(budget, system, ModelReply) - spent, ModelReply)


def for_repair(kind: type[Claim], answer: str, problem: str, budget: int) -> tuple[ChatMessage, ...]:
    """Make the prompt that puts a broken answer into its form; the log is not sent again."""
    form = json.dumps(schema(kind))
    controller = (
        budget - estimate_tokens(REPAIR) - estimate_tokens(REPAIR_TASK) - 2 * estimate_tokens(form) - 300
    )
    # What a model wrote is no more trusted than a log.
    text = "\n".join(
        neutralize(row, 4000) for row in cut_to_tokens(answer, max(controller, 200)).splitlines()
    )
    task = REPAIR_TASK.format(
        schema=form, problem=neutralize(problem, 300), answer=text, open=OPEN, close=CLOSE
    )
    return ChatMessage("system", REPAIR), ChatMessage("user", task)


def _told(
    instructions: str, prompt_context: PromptContext, but: str = ", and no setting but an offered one"
) -> str:
    return instructions.format(language=LANGUAGES[prompt_context.language], open=OPEN, close=CLOSE, but=but)


def _rest(budget: int, system: str, kind: type[Claim]) -> int:
    # Each heading and fence costs a few tokens that no row counts.
    return budget - estimate_tokens(system) - estimate_tokens(json.dumps(schema(kind))) - 12 * len(_SECTIONS)


def _latest(talk: Sequence[ChatMessage], controller: int) -> Iterator[ChatMessage]:
    """Give the last messages that fit, in their order; the question itself always."""
    kept: list[ChatMessage] = []
    for message in reversed(talk):
        short = replace(
            message, text=cut_to_tokens(message.text, controller if not kept else controller // 2)
        )
        controller -= estimate_tokens(short.text)
        if kept and controller < 0:
            break
        kept.append(short)
    return reversed(kept)


def _built(
    prompt_context: PromptContext,
    system: str,
    talk: Sequence[ChatMessage],
    controller: int,
    kind: type[Claim],
) -> Prompt:
    lines, suspects = _log(prompt_context)
    rows = [*lines, *(row for make in _MAKERS for row in make(prompt_context))]
    kept, omitted = _fitting(rows, controller)
    body = _written(rows, kept)
    # A conversation's question stands last; what it is about is told before it.
    messages = (ChatMessage("system", system), ChatMessage("user", body), *talk)
    chosen = [row for place, row in enumerate(rows) if place in kept]
    # Beside a line that speaks to a model, only failures may be cited.
    events = {event.line for event in prompt_context.report.events}
    marked = [
        row for row in chosen if row.mark and row.text != WITHHELD and (not suspects or row.number in events)
    ]
    of_log = {name for name, _, is_text_of_log in _SECTIONS if is_text_of_log}
    ours = "\n".join(row.text for row in chosen if row.section not in of_log)
    return Prompt(
        messages,
        {row.mark: row.text for row in marked},
        {row.mark: row.number for row in marked},
        frozenset(row.case for row in chosen if row.case),
        ours,
        sum(estimate_tokens(message.text) for message in messages)
        + estimate_tokens(json.dumps(schema(kind))),
        omitted,
        suspects,
    )


def _fitting(rows: Sequence[PromptRow], controller: int) -> tuple[set[int], dict[str, int]]:
    """Choose the rows that fit, by rank, and count the others by section."""
    kept: set[int] = set()
    omitted: dict[str, int] = {}
    for place in sorted(range(len(rows)), key=lambda place: rows[place].rank):
        cost = estimate_tokens(rows[place].text) + estimate_tokens(rows[place].mark) + 5
        if cost <= controller:
            kept.add(place)
            controller -= cost
        else:
            omitted[rows[place].section] = omitted.get(rows[place].section, 0) + 1
    return kept, omitted


def _written(rows: Sequence[PromptRow], kept: Collection[int]) -> str:
    parts = []
    for name, heading, of_log in _SECTIONS:
        chosen = sorted(
            (row for place, row in enumerate(rows) if place in kept and row.section == name),
            key=lambda row: row.number,
        )
        # The report is redacted by line; what stands together only here is looked at once more, before the
        # marks are put on: no mask takes one away, or the end of a row.
        clean = Redactor().rows(
            [" ".join(row.text.split("\n")) if row.mark else row.text.replace("\n", _BREAK) for row in chosen]
        )
        texts: list[str] = []
        last: PromptRow | None = None
        for row, text in zip(chosen, clean, strict=True):
            if row.mark and (gap := row.number - (last.number if last else 0) - 1) > 0:
                texts.append(f"... {gap} lines are not shown")
            texts.append(f"{row.mark}| {text}" if row.mark else text.replace(_BREAK, "\n"))
            last = row
        if texts:
            parts.append(f"# {heading}\n" + (fence(texts) if of_log else "\n".join(texts)))
    return "\n\n".join(parts)


def _log(prompt_context: PromptContext) -> tuple[list[PromptRow], int]:
    """Give the log's lines: failures by what they say, each with the lines around it, and the log's end."""
    report = prompt_context.report
    events = {event.line: event for event in reversed(report.events)}
    made, suspects = excerpt(report.texts, events, own_names(prompt_context))
    where = report.root.line if report.root else 0
    end = {number for number, _ in report.tail[-SHOWN_END:]}
    failing = sorted(event.line for event in report.standing)
    told: dict[str, int] = {}

    def rank(number: int, event: Event | None) -> float:
        distance = abs(number - where)
        if event is not None:
            # A standing failure weighs by what it says; one that the run recovered from is only told.
            base = {"root": -1.2, "collateral": 2.0, "teardown": 8.0, "recovered": 6.0}[event.role]
            # The same words again, of another rank or attempt, say little more.
            alike = told[event.pattern] = told.get(event.pattern, 0) + 1
            return base + min(distance, 10_000) / 10_000 - sum(event.weight) / 10 + (alike > ALIKE) * 5.0
        if distance <= NEAR:
            return -1.1 + distance / 100
        if number in end:
            return 3.0
        nearest = min((abs(number - line) for line in failing), default=400)
        return 4.0 + min(nearest, 400) / 10

    rows = []
    often: dict[str, int] = {}
    for number, text in sorted(made.items(), key=lambda item: abs(item[0] - where)):
        event = events.get(number)
        alike = often[masked(text)] = often.get(masked(text), 0) + 1
        if event is None and alike > REPEATS:
            continue
        more = _repeated(event) if event is not None and event.count > 1 else ""
        rows.append(PromptRow("log", rank(number, event), text + more, str(report.place(number)), number))
    return rows, suspects


def _repeated(event: Event) -> str:
    """Say how often a line stands in the log, by whom, and where last."""
    ranks = f", ranks {', '.join(map(str, event.ranks[:8]))}{', ...' if len(event.ranks) > 8 else ''}"
    streams = f", {len(event.sources)} streams" if len(event.sources) > 1 else ""
    last = f", last at L{event.last}" if event.last > event.line else ""
    return f"  (x{event.count}{ranks if event.ranks else streams}{last})"


def own_names(prompt_context: PromptContext) -> frozenset[str]:
    """Give names that only our own answers use; a log that holds them speaks to us."""
    return frozenset(
        name for name in (*prompt_context.library.causes, *prompt_context.library.cases) if "-" in name
    )


def _answer(prompt_context: PromptContext) -> Iterator[PromptRow]:
    first, library = prompt_context.first, prompt_context.library
    cause = library.causes.get(first.cause or "")
    yield PromptRow(
        "answer",
        -2,
        f"verdict: {first.verdict}; cause: {first.cause}; standing: {first.standing}; action: {first.action}",
    )
    if cause is not None:
        yield PromptRow(
            "answer",
            -1.9,
            f"{cause.title.to(prompt_context.language)}: {cause.means.to(prompt_context.language)}",
        )
        yield PromptRow("answer", 3.5, cause.advice.to(prompt_context.language))
    if ended := phrases.outcome(first.outcome, prompt_context.language):
        yield PromptRow("answer", -1.8, ended)
    seen = ", ".join(f"{found.name} {found.version or ''}".strip() for found in first.frameworks)
    if seen:
        yield PromptRow("answer", 1.0, f"frameworks: {neutralize(seen)}")
    for row in phrases.telemetry(first.telemetry, prompt_context.language):
        yield PromptRow("answer", -1.7, f"telemetry: {withhold(row.removeprefix('- '), (), 600)}")


def _candidates(prompt_context: PromptContext) -> Iterator[PromptRow]:
    for place, candidate in enumerate(prompt_context.candidates):
        cause = prompt_context.library.causes[candidate.cause]
        signs = ", ".join(f"[{prompt_context.report.place(event.line)}]" for event in candidate.events[:4])
        cases = ", ".join(f"[case:{match.case.id}]" for match in candidate.cases[:2])
        told = f"- {cause.id}: {cause.means.to(prompt_context.language)}"
        why = f"probability {candidate.probability:.2f} by the rules"
        yield PromptRow(
            "candidates", -1.5 + place / 10, "; ".join(part for part in (told, why, signs, cases) if part)
        )
    for candidate in prompt_context.candidates[:TOLD_APART]:
        for confusion in prompt_context.library.causes[candidate.cause].confused_with:
            apart = confusion.to(prompt_context.language)
            yield PromptRow("candidates", 1.5, f"- {candidate.cause} or {confusion.cause}: {apart}")


def _facts(prompt_context: PromptContext) -> Iterator[PromptRow]:
    report = prompt_context.report
    root = report.root.line if report.root else 0
    told: set[str] = set()
    for event in sorted(report.standing, key=lambda event: event.role != "root")[:STACKS]:
        if event.frames:
            calls = " > ".join(
                f"{frame.file}:{frame.line} {frame.function}" for frame in event.frames[-FRAMES:]
            )
            stack = withhold(calls, own_names(prompt_context), 1200)
            rank = 0.8 if event.role == "root" else 4.2
            if stack not in told:
                place = report.place(event.line)
                yield PromptRow("facts", rank, f"[{place}] stack: {stack}", number=event.line)
            told.add(stack)
    kinds: dict[str, int] = {}
    # A job prints the same facts at each step; the last ones are those at its death.
    for fact in sorted(report.facts, key=lambda fact: (fact.line != root, abs(fact.line - root))):
        values = withhold(
            " ".join(f"{name}={value}" for name, value in fact.fields.items()), own_names(prompt_context), 300
        )
        if f"{fact.kind} {values}" in told:
            continue
        told.add(f"{fact.kind} {values}")
        seen = kinds[fact.kind] = kinds.get(fact.kind, 0) + 1
        rank = 1.8 if fact.line == root else 4.0 + min(seen, 40) / 4
        if seen <= OF_A_KIND or fact.line == root:
            yield PromptRow(
                "facts", rank, f"[{report.place(fact.line)}] {fact.kind}: {values}", number=fact.line
            )


def _settings(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Give the job's settings: those that the failure is about, then those that are not at their default."""
    assessment, library = prompt_context.assessment, prompt_context.library
    wanted = {last_level(change.key) for change in prompt_context.offered}
    wanted |= {
        last_level(change.key) for cause in prompt_context.candidates for change in _remedies(cause, library)
    }
    near = _words_near(prompt_context)
    mine = sorted(settable_frameworks(assessment.report))
    seen: set[str] = set()
    dull = 0
    for setting in assessment.settings:
        if setting.key in seen or len(seen) >= 8 * MAX_SETTINGS:
            continue
        seen.add(setting.key)
        name = last_level(setting.key)
        spec = next(filter(None, (library.setting(framework, setting.key) for framework in mine)), None)
        rank = 7.5
        if name in wanted:
            rank = 3.0
        elif name in near:
            rank = 3.4
        elif spec is not None:
            is_default = spec.default is not None and same(setting.value, spec.default)
            rank = 6.5 if is_default else 4.6
        dull += rank > SPECIAL
        if rank > SPECIAL and dull > MAX_DULL:
            continue
        yield PromptRow(
            "settings",
            rank + len(seen) / 1000,
            withhold(f"{setting.key}={setting.value}", own_names(prompt_context), 200),
            number=len(seen),
        )


def _remedies(candidate: Candidate, library: Library) -> Iterator[Change]:
    yield from (change for match in candidate.cases[:3] for change in match.case.changes)
    yield from library.remedies.get(candidate.cause, ())


def _words_near(prompt_context: PromptContext) -> frozenset[str]:
    """Give the words of the root's line and of the rows around it, as keys are compared."""
    report = prompt_context.report
    texts = [report.root.text] if report.root else []
    texts += [text for _, text in report.surroundings]
    return frozenset(last_level(word) for text in texts for word in _WORD.findall(text))


def _changes(prompt_context: PromptContext) -> Iterator[PromptRow]:
    for place, change in enumerate(prompt_context.offered):
        was = (
            "" if change.from_ is None else f" (now {withhold(change.from_, own_names(prompt_context), 100)})"
        )
        costs = f" It costs: {change.costs}" if change.costs else ""
        yield PromptRow(
            "changes",
            2.2 + place / 10,
            f"- {change.framework}, {change.kind}: {change.key} = {change.to}{was}. {change.why}{costs}",
        )


def _cases(prompt_context: PromptContext) -> Iterator[PromptRow]:
    library = prompt_context.library
    causes = {candidate.cause for candidate in prompt_context.candidates}
    # A case has to be justified: its signature fits, or words and vectors both find it.
    alike = [
        item.owner
        for item in prompt_context.retrieval.ranked[:MAX_NEIGHBOURS]
        if item.owner in library.cases and len(item.parts) > 1 and library.cases[item.owner].cause in causes
    ]
    fitting = [
        match.case.id
        for match in sorted(
            prompt_context.retrieval.signatures,
            key=lambda match: match.case.cause != prompt_context.first.cause,
        )
        if match.case.id in library.cases and match.case.cause in causes
    ]
    for place, name in enumerate([*dict.fromkeys([*fitting, *alike])][:MAX_CASES]):
        case = library.cases[name]
        yield PromptRow(
            "cases",
            3.2 + place,
            f"[case:{name}] {case.title.to(prompt_context.language)} (cause: {case.cause})",
            number=10 * place,
            case=name,
        )
        sections = [
            (number, " ".join(section.split()))
            for number, section in enumerate(_SECTION.split(case.body.to(prompt_context.language)), 1)
        ]
        for number, section in filter(itemgetter(1), sections):
            rank = 3.3 + place + number / 10 + 2.0 * (place > 0)
            yield PromptRow(
                "cases", rank, f"[case:{name}] {section}", number=10 * place + min(number, 9), case=name
            )


def _notes(prompt_context: PromptContext) -> Iterator[PromptRow]:
    found = [
        item for item in prompt_context.retrieval.ranked if item.kind != "case" and item.document is not None
    ]
    for place, item in enumerate(found[:4]):
        assert item.document is not None  # noqa: S101 - chosen so above
        text = withhold(
            f"{item.owner}: {item.document.title}. {item.document.text} {item.document.fix}",
            own_names(prompt_context),
            _LONGEST,
        )
        yield PromptRow("notes", 6.5 + place, text)


def _causes(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Give every other cause with what it means: one that is not told cannot be named."""
    told = {candidate.cause for candidate in prompt_context.candidates}
    for cause in prompt_context.library.causes.values():
        if cause.id not in told and cause.id != UNKNOWN_CAUSE:
            yield PromptRow("causes", -1.0, f"- {cause.id}: {cause.means.to(prompt_context.language)}")


_MAKERS: Sequence[Callable[[PromptContext], Iterable[PromptRow]]] = (
    _answer,
    _candidates,
    _facts,
    _settings,
    _changes,
    _cases,
    _notes,
    _causes,
)


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
