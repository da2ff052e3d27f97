"""The log's lines in a prompt: the failures by what they say, each with what stands around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

from corpus.message import words
from corpus.schema import Language
from ingest.logs.events import Event, masked
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.llm.call_lines import call_rows
from service.llm.deciding_lines import named_values
from service.llm.prompt_context import PromptContext
from service.llm.prompt_injection import LONGEST_DECIDING, excerpt, neutralize
from service.llm.telling_rows import told_first

# Rows this near the root's line come before all others; of the log's last rows so many are shown.
NEAR, SHOWN_END = 5, 10
# Failures alike: more of them say little more.
ALIKE = 3
# A row of the surroundings that stands there so often is left out from then on.
REPEATS = 2
# The very last rows stand there however often: they tell whether the job was still at work.
LAST = 4
# So few rows left out in one place stand there all the same.
GAP = 2
# A row of marks below a statement, and what a launcher writes before a rank's rows.
_UNDERLINE = re.compile(r"(?:\[[\w:. ]{1,40}\]:?)?[ \t]*[~^][~^ ]*")
_BEFORE = re.compile(r"^\[[\w:. ]{1,40}\]:? ?")
# Counts of steps, one after the other, that are told.
MAX_COUNTS = 4
# A call in a stack, as Python prints it.
_CALL = 'File "'
_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
# Ranks and streams of one event that are named.
MAX_NAMED = 8
# A stack of more rows is shown in parts.
LONGEST_STACK = 200


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A piece that is sent whole or not at all, the lowest rank first.

    `mark` is that of the log's line, `case` the id of the case that it is of. `cites` is the mark of a line
    of which the row tells without showing it. Where all the lines `said_by` are sent, the row is not: it
    says no more than they do. `is_ours` tells that the row is made of our own sentences alone: nothing in it
    is a secret.
    """

    section: str
    rank: float
    text: str
    mark: str = ""
    number: int = 0
    case: str = ""
    cites: str = ""
    said_by: tuple[int, ...] = ()
    is_ours: bool = False


def own_names(prompt_context: PromptContext) -> frozenset[str]:
    """Give names that only our own answers use; a log that holds them speaks to us."""
    return frozenset(
        name for name in (*prompt_context.library.causes, *prompt_context.library.cases) if "-" in name
    )


def log_rows(prompt_context: PromptContext, longest: int = LONGEST_DECIDING) -> tuple[list[PromptRow], int]:
    """Give the log's lines: failures by what they say, each with the lines around it, and the log's end.

    Lines that decide are shown up to `longest` characters.
    """
    report = prompt_context.report
    events = {event.line: event for event in reversed(report.events)}
    limits = dict.fromkeys(prompt_context.deciding, longest)
    made, suspects = excerpt(report.texts, events, own_names(prompt_context), limits)
    where = report.root.line if report.root else 0
    end = {number for number, _ in report.tail[-SHOWN_END:]}
    failing = sorted(event.line for event in report.standing)
    calls = _stack_lines(report)
    repeated = _repeated_calls(report) | frozenset(_passed_again(report))
    marks = frozenset(_underlines(report))
    told: dict[str, int] = {}
    values = named_values(report)
    of_own_calls = call_rows(report, report.texts)
    numbered = prompt_context.telling.union(told_first(report.texts))

    def rank(number: int, event: Event | None) -> float:
        distance = abs(number - where)
        if event is not None:
            # A standing failure weighs by what it says; one that the run recovered from is only told.
            base = {"root": -3.0, "collateral": 2.0, "teardown": 8.0, "recovered": 6.0}[event.role]
            # The same words again, of another rank or attempt, say little more.
            alike = told[event.pattern] = told.get(event.pattern, 0) + 1
            return base + min(distance, 10_000) / 10_000 - sum(event.weight) / 10 + (alike > ALIKE) * 5.0
        if distance <= NEAR or number in of_own_calls:
            return -1.1 + min(distance, 400) / 1000
        if values is not None and number < where and values.search(report.texts[number]):
            return 1.0
        if number in numbered:
            return 1.2
        if number in end:
            return 3.0
        nearest = min((abs(number - line) for line in failing), default=400)
        return 4.0 + min(nearest, 400) / 10

    rows = []
    last = sorted(end)[-LAST:]
    left_out: dict[int, PromptRow] = {}
    often: dict[str, int] = {}
    for number, text in sorted(made.items(), key=lambda item: abs(item[0] - where)):
        event = events.get(number)
        if event is None and number in marks:
            continue
        alike = often[masked(text)] = often.get(masked(text), 0) + 1
        more = _repeated(event, report, prompt_context.language) if event is not None else ""
        row = PromptRow("log", rank(number, event), text + more, str(report.place(number)), number)
        # Calls of a failing stack may read alike but for their numbers, and each says where it was.
        is_again = number in repeated or (alike > REPEATS and number not in calls)
        stays = number in of_own_calls or number in numbered or number in last
        if event is None and is_again and not stays:
            left_out[number] = row
        else:
            rows.append(row)
    return [*rows, *_between(rows, left_out)], suspects


def _stack_lines(report: CrashReport) -> frozenset[int]:
    """Give the lines of the stacks of what failed; of one that is cut off or endless none."""
    return frozenset(
        number
        for event in report.standing
        for number in range(event.traceback or event.line, event.line + 1)
        if event.line - event.traceback < LONGEST_STACK
    )


def _underlines(report: CrashReport) -> Iterator[int]:
    """Yield the rows that only underline what is called, but those of the job's own calls at the root.

    Python 3.11 and later put one below each statement of a stack.
    """
    root = report.root
    own = [frame.code for frame in root.frames if is_own(frame)] if root is not None else []
    for number, text in report.texts.items():
        if _UNDERLINE.fullmatch(text):
            above = _BEFORE.sub("", report.texts.get(number - 1, "")).strip()
            width = sum(text.count(sign) for sign in "^~")
            if width >= len(above) - 1 or above not in own:
                yield number


def _repeated_calls(report: CrashReport) -> frozenset[int]:
    """Give the rows of stacks that another one says word for word, but for whose rank says it."""
    seen: dict[tuple[str, ...], int] = {}
    found: set[int] = set()
    standing = {event.line for event in report.standing}
    for event in sorted(report.events, key=lambda event: (event.role != "root", event.line not in standing)):
        begin = event.traceback or event.line
        if event.line - begin < LONGEST_STACK:
            texts = report.texts
            rows = {number: texts[number] for number in range(begin, event.line) if number in texts}
            stack = tuple(map(_bare, rows.values()))
            if seen.setdefault(stack, begin) != begin:
                found |= rows.keys()
            # The last of several alike has no event of its own.
            for step in range(1, event.line - begin + 1):
                again, row = event.last - step, texts.get(event.line - step)
                if again <= event.line or row is None or _bare(texts.get(again, "")) != _bare(row):
                    break
                found.add(again)
    return frozenset(found)


def _passed_again(report: CrashReport) -> Iterator[int]:
    """Yield the rows of calls in packages that went through the very same place before, in one stack.

    What wraps each module's call, or walks down a tree, says no more the second time; the innermost call and
    those of the job's own code stay.
    """
    for event in report.events:
        begin = event.traceback or event.line
        numbers = [number for number in range(begin, event.line) if number in report.texts]
        if not event.frames or event.line - begin >= LONGEST_STACK:
            continue
        texts = {number: _BEFORE.sub("", report.texts[number]).strip() for number in numbers}
        heads = [number for number in numbers if texts[number].startswith(_CALL)]
        shown: set[tuple[str, ...]] = set()
        own = {(frame.file, frame.line) for frame in event.frames if is_own(frame)}
        for head, following in pairwise(heads):
            rows = [number for number in numbers if head <= number < following]
            place = _PLACE.match(texts[head])
            is_of_job = place is None or (place["file"], int(place["line"])) in own
            said = tuple(texts[number] for number in rows)
            if said in shown and not is_of_job:
                yield from rows
            shown.add(said)


def _bare(text: str) -> str:
    return masked(_BEFORE.sub("", text))


def _between(rows: Sequence[PromptRow], left_out: Mapping[int, PromptRow]) -> Iterator[PromptRow]:
    """Give the few rows left out between two that are not: to say that they are costs as much as they do."""
    kept = sorted((row.number, row.rank) for row in rows)
    for (above, first), (below, second) in pairwise([(0, -inf), *kept]):
        missing = range(above + 1, below)
        if len(missing) <= GAP and all(number in left_out for number in missing):
            yield from (replace(left_out[number], rank=max(first, second)) for number in missing)


def _repeated(event: Event, report: CrashReport, language: Language) -> str:
    """Say how often a line stands in the log, by whom and by whom not, and when last; nothing of one."""
    if event.count <= 1:
        return ""
    parts = [f"x{event.count}"]
    if event.ranks:
        parts.append(words("prompt.ranks", language, ranks=_listed(event.ranks, language)))
    elif len(event.sources) > 1:
        streams = _listed([neutralize(source, 60) for source in event.sources], language)
        parts.append(words("prompt.streams", language, streams=streams))
    if event.missing:
        parts.append(words("prompt.not-of-ranks", language, ranks=_listed(event.missing, language)))
    if event.last > event.line:
        when = f" ({neutralize(event.last_time, 40)})" if event.last_time else ""
        parts.append(words("prompt.last-at", language, place=f"{report.place(event.last)}{when}"))
    return f"  ({', '.join(parts)})"


def is_told(report: CrashReport, above: int, below: int) -> bool:
    """Tell whether nothing is left out between two rows but blank ones and marks below statements."""
    texts = report.texts
    missing = [number for number in range(above + 1, below) if below - above <= GAP + 1]
    if missing and all(number in texts and _UNDERLINE.fullmatch(texts[number]) for number in missing):
        return True
    return report.blank_between(above, below)


def run_heads(report: CrashReport, language: Language) -> list[tuple[int, str]]:
    """Give what is said where each further run of the root's file begins, by its first line."""
    line = report.root.line if report.root else report.limits.lines
    starts = runs_of(report)
    judged = max((start for start in starts if start <= line), default=0)
    heads = []
    for number, start in enumerate(starts, 1):
        row = "prompt.run-begins-judged" if start == judged else "prompt.run-begins"
        heads.append((start, words(row, language, number=number, count=len(starts))))
    return heads


def runs_of(report: CrashReport) -> list[int]:
    """Give the first lines of the runs that the root's file holds; none where it holds one."""
    line = report.root.line if report.root else report.limits.lines
    number = report.timeline.number(line)
    further = [start for start in report.run_starts if report.timeline.number(start) == number]
    begin = report.timeline.parts[number].first if report.timeline.parts else 1
    return [begin, *further] if further else []


def gap_row(
    report: CrashReport, above: int, below: int, language: Language = "en", *, is_brief: bool = False
) -> str:
    """Say what is left out between two lines that are shown, as far as the rules know it.

    Where they found neither failure nor warning, the lines are called routine; `is_brief` tells only how many
    there are.
    """
    first, last = above + 1, below - 1
    earlier = [event for event in report.events if event.line < first <= event.last and event.count > 1]
    told = {
        "failures": [event for event in report.events if first <= event.line <= last],
        "repeats": [event for event in earlier if event.last <= last],
        "perhaps-repeats": [event for event in earlier if event.last > last and event.count > 2],
    }
    parts = [
        words(
            f"prompt.gap-{what}",
            language,
            lines=_listed([report.place(event.line) for event in events], language),
        )
        for what, events in told.items()
        if events
    ]
    routine = "" if parts or is_brief else "-routine"
    if kinds := list(dict.fromkeys(fact.kind for fact in report.facts if first <= fact.line <= last)):
        parts.append(words("prompt.gap-facts", language, kinds=_listed(kinds, language)))
    if counts := report.timeline.steps_within(first, last):
        parts.insert(0, _counted(counts, language))
    more = f" ({'; '.join(parts)})" if parts and not is_brief else ""
    number = "line" if first == last else "lines"
    return words(f"prompt.gap-{number}{routine}", language, count=last - first + 1) + more


def _counted(counts: Sequence[tuple[float, float]], language: Language) -> str:
    """Say which steps were counted, in order; of many counts, that there are so many."""
    if len(counts) > MAX_COUNTS:
        lows, highs = zip(*counts, strict=True)
        low, high = f"{min(lows):g}", f"{max(highs):g}"
        return words("prompt.steps-anew", language, low=low, high=high, count=len(counts))
    spans = [
        words("prompt.span", language, low=f"{low:g}", high=f"{high:g}") if high > low else f"{low:g}"
        for low, high in counts
    ]
    return words("prompt.steps", language, spans=words("prompt.then", language).join(spans))


def _listed(names: Sequence[object], language: Language) -> str:
    """Name a few of many."""
    left_out = len(names) - MAX_NAMED
    more = words("prompt.and-more", language, count=left_out) if left_out > 0 else ""
    return " ".join(map(str, names[:MAX_NAMED])) + more
