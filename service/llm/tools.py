"""The tools of a model that investigates: read-only, over the redacted log and what is known.

Each is a function from arguments to what it found. What a tool gives of the log is data like the log itself:
`service/llm/investigation.py` fences it, withholds what in it speaks to a model, and bounds it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any

from corpus.keys import canonical
from corpus.message import Message, words
from corpus.schema import Language
from ingest.logs.clock import parse_time
from ingest.logs.events import Event
from ingest.logs.timeline import YEAR
from service.llm.cause_lookups import ALL, describe_cause
from service.llm.job_files import read_file
from service.llm.log_view import LogView, Writer, around, begins_late, line_number, units, written
from service.llm.prompt_context import PromptContext
from service.llm.prompt_injection import LONGEST_ROW, neutralize, withhold
from service.llm.prompt_lines import own_names
from service.llm.row_folding import folded, folded_readings, head_and_tail, readings_of
from service.llm.setting_lookups import at_this_job, describe_setting, named_settings
from service.llm.source_lookups import source_places
from service.llm.telling_rows import told_first

# Rows of one answer.
MAX_ROWS = 120
# Rows of a longer span that are read at all: its first and last.
MAX_READ = 2000
MAX_EVENTS = 40
MAX_SETTINGS = 60
MAX_READINGS = 60
# Rows read before a failure for its traceback, and for the last normal lines; rows after a traceback's end.
BEFORE, NORMAL, MAX_NORMAL, AFTER = 80, 400, 40, 2
CASES, CASE_TEXT = 3, 1600
MAX_WORDS, LONGEST_WORD = 12, 80
_LONGEST_ARGUMENT = 200


class ToolError(ValueError):
    """A call cannot be answered; its message says why, in words for the model."""


@dataclass(frozen=True)
class Found:
    """What a tool found.

    `says` tells a person what was looked at. `rows` are lines of the log by their numbers, `data` is text of
    the log or the job that has no line of its own, `ours` text of ours, as messages where it is a sentence;
    `cases` are those that it tells of.
    `pieces` are what is shown of rows that are longer; `is_of_file`: `data` are rows of a file of the job's.
    """

    says: Message
    rows: Mapping[int, str] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    cases: frozenset[str] = frozenset()
    pieces: Mapping[int, str] = field(default_factory=dict)
    is_of_file: bool = False

    @property
    def is_lines_alone(self) -> bool:
        """Whether it shows whole lines of the log and tells nothing beside them."""
        return bool(self.rows) and not (self.data or self.ours or self.pieces or self.cases)


@dataclass(frozen=True)
class ToolContext:
    """What the tools look into; `near` finds ids of cases by words."""

    prompt_context: PromptContext
    view: LogView
    near: Callable[[str], Sequence[str]] | None = None


Arguments = Mapping[str, str]


@dataclass(frozen=True)
class Tool:
    """A tool as a model is told of it; of its `parameters`, those in `optional` may be left out.

    What it does, and what each parameter means, say the messages of its name.
    """

    name: str
    parameters: tuple[str, ...]
    run: Callable[[ToolContext, Arguments], Found]
    optional: frozenset[str] = frozenset()

    def means(self, parameter: str = "") -> Message:
        """Say what a parameter means; without one, what the tool does."""
        row = f"{self.name}-{parameter}" if parameter else self.name
        return Message(f"tools.tool-{row}", most=MAX_ROWS, most_normal=MAX_NORMAL, all=ALL)

    def schema(self, language: Language) -> dict[str, Any]:
        """Give it in the form in which chat models are told of functions."""
        properties = {
            name: {"type": "string", "description": self.means(name).in_language(language)}
            for name in self.parameters
        }
        required = [name for name in self.parameters if name not in self.optional]
        parameters = {"type": "object", "properties": properties, "required": required}
        told = {"name": self.name, "description": self.means().in_language(language)}
        return {"type": "function", "function": {**told, "parameters": parameters}}


def call_tool(context: ToolContext, name: str, given: Mapping[str, Any]) -> Found:
    """Run a tool; raises ToolError where there is none of that name, or it cannot be run so."""
    tool = TOOLS.get(name)
    if tool is None:
        raise ToolError(Message("tools.no-tool", names=", ".join(TOOLS)))
    arguments = {
        key: neutralize(str(given[key]), _LONGEST_ARGUMENT).strip()
        for key in tool.parameters
        if isinstance(given.get(key), str | int | float)
    }
    if missing := [key for key in tool.parameters if not arguments.get(key) and key not in tool.optional]:
        raise ToolError(Message("tools.missing", name=missing[0], means=tool.means(missing[0])))
    try:
        return tool.run(context, arguments)
    except ToolError:
        raise
    except ValueError as error:
        raise ToolError(*error.args) from error


def _place(context: ToolContext, number: int) -> str:
    return str(context.prompt_context.report.place(number))


def _span(context: ToolContext, arguments: Arguments) -> tuple[int, int]:
    """Give the first and last line of the optional arguments of those names; all lines without them."""
    report = context.prompt_context.report
    first = line_number(arguments["first"], report) if arguments.get("first") else 1
    last = line_number(arguments["last"], report) if arguments.get("last") else max(report.limits.lines, 1)
    if last < first:
        raise ToolError(Message("tools.last-before-first"))
    return first, last


def _read_lines(context: ToolContext, arguments: Arguments) -> Found:
    first, last = _span(context, arguments)
    is_long = last - first >= MAX_READ
    spans = [(first, first + MAX_READ // 2 - 1), (last - MAX_READ // 2 + 1, last)] if is_long else []
    there = context.view.lines(spans or [(first, last)])
    ends = {
        "first": _place(context, min(there, default=first)),
        "last": _place(context, max(there, default=last)),
    }
    if not there:
        return Found(Message("model.looked-no-lines", **ends), ours=(Message("tools.no-lines"),))
    rows = there
    if len(there) > MAX_ROWS:
        failing = {
            line for event in context.prompt_context.report.events for line in (event.line, event.last)
        }
        rows = folded(there, failing.union(told_first(there)))
        kept = head_and_tail([1] * len(rows), MAX_ROWS)
        rows = {number: rows[number] for place, number in enumerate(sorted(rows)) if place in kept}
    more = Message("tools.of-the-lines", count=len(rows), most=MAX_ROWS)
    is_part = is_long or rows != there
    return Found(Message("model.looked-lines", **ends), rows, ours=(more,) if is_part else ())


def _search_log(context: ToolContext, arguments: Arguments) -> Found:
    said = arguments.get("words", "")
    wanted = [units(part)[:MAX_WORDS] for part in said.split("|")]
    wanted = [[word[:LONGEST_WORD] for word in each] for each in wanted if each]
    rank, stream = _rank(arguments), arguments.get("stream", "").lower().split()
    if any(len(max(each, key=len)) < 2 for each in wanted) or not (wanted or rank or stream):
        raise ToolError(Message("tools.short-words"))
    hits = context.view.search(wanted or [[""]], _span(context, arguments), Writer(rank, tuple(stream)))
    of = " ".join(filter(None, [f"rank {rank}" if rank else "", *stream]))
    said = " | ".join(" ".join(map(written, each)) for each in wanted)
    of_whom = f"{said} ({of})" if said and of else said or of
    more = Message("tools.more-between")
    return Found(
        Message("model.looked-words", words=of_whom, count=len(hits.rows)),
        hits.rows,
        ours=(more,) if hits.has_more else () if hits.rows else (Message("tools.no-line-such"),),
        pieces={
            number: around(text, wanted) for number, text in hits.rows.items() if len(text) > LONGEST_ROW
        },
    )


def _rank(arguments: Arguments) -> str:
    """Give the optional argument of that name as digits."""
    rank = arguments.get("rank", "").lower().removeprefix("rank").strip()
    if rank and not rank.isdecimal():
        raise ToolError(Message("tools.no-rank"))
    return rank


def _read_events(context: ToolContext, arguments: Arguments) -> Found:
    report = context.prompt_context.report
    first, last = _span(context, arguments)
    rank = _rank(arguments)
    begin, end = _time_range(arguments)
    # An event without a time is of no span.
    is_any_time = not arguments.get("since") and not arguments.get("until")
    events = [
        event
        for event in report.events
        if first <= event.line <= last
        and (not rank or int(rank) in event.ranks or event.rank == rank)
        and (is_any_time or begin <= (parse_time(event.time, YEAR) or -math.inf) <= end)
    ]
    shown = sorted(events, key=lambda event: (event.role not in ("root", "collateral"), event.line))[
        :MAX_EVENTS
    ]
    told = tuple(_event_row(context, event) for event in sorted(shown, key=lambda event: event.line))
    left = len(events) - len(shown)
    more = (Message("tools.more-events", count=left),) if left else ()
    says = Message("model.looked-events", count=len(events))
    if rank:
        says = Message("model.looked-events-rank", count=len(events), rank=rank)
    return Found(
        says, {event.line: event.text for event in shown}, ours=(*told, *more) or (Message("tools.none"),)
    )


def _time_range(arguments: Arguments) -> tuple[float, float]:
    """Give the optional arguments `since` and `until` in seconds since the epoch; all time without them."""
    found = [-math.inf, math.inf]
    for place, name in enumerate(("since", "until")):
        if arguments.get(name):
            when = parse_time(arguments[name], YEAR)
            if when is None:
                raise ToolError(Message("tools.no-time"))
            found[place] = when
    return found[0], found[1]


def _event_row(context: ToolContext, event: Event) -> str:
    language = context.prompt_context.language
    parts = [event.role, event.kind, f"x{event.count}" if event.count > 1 else ""]
    if event.last > event.line:
        parts.append(words("prompt.last-at", language, place=_place(context, event.last)))
    for told, ranks in (("ranks", event.ranks), ("not-of-ranks", event.missing)):
        if ranks:
            parts.append(words(f"prompt.{told}", language, ranks=", ".join(map(str, ranks[:16]))))
    return f"[{_place(context, event.line)}] {', '.join(filter(None, parts))}"


def _read_traceback(context: ToolContext, arguments: Arguments) -> Found:
    report = context.prompt_context.report
    line = line_number(arguments["line"], report)
    events = [event for event in report.events if event.traceback or event.frames]
    about = min(
        events,
        key=lambda event: min(abs(line - place) for place in (event.line, event.last, event.traceback)),
        default=None,
    )
    end = line
    begin = max(1, line - BEFORE)
    if about is not None and (about.traceback or about.line) - AFTER <= line <= about.line + AFTER:
        begin, end = about.traceback or max(1, about.line - BEFORE), about.line
    rows = context.view.lines([(max(begin, end - MAX_ROWS), end + AFTER)])
    frames = tuple(
        f"{frame.file}:{frame.line} {frame.function}: {frame.code}"
        for frame in (about.frames if about is not None and about.line == end else ())
    )
    return Found(Message("model.looked-traceback", line=_place(context, end)), rows, frames)


def _last_normal_lines(context: ToolContext, arguments: Arguments) -> Found:
    report = context.prompt_context.report
    count = arguments.get("count") or "20"
    if not count.isdecimal():
        raise ToolError(Message("tools.no-count"))
    root = report.root
    # Without a failure, what the log ends with.
    failed = (root.traceback or root.line) if root else report.limits.lines + 1
    notable = {line for event in report.events for line in (event.line, event.last)} if root else set()
    part = report.timeline.parts[report.timeline.number(failed)].first if report.timeline.parts else 1
    before = context.view.lines([(max(part, failed - NORMAL), failed)])
    if root and not (root.traceback == failed and begins_late(before.get(failed, ""))):
        before.pop(failed, None)
    normal = [number for number, text in before.items() if text.strip() and number not in notable]
    rows = {number: before[number] for number in normal[-max(1, min(int(count), MAX_NORMAL)) :]}
    if not rows:
        return Found(Message("model.looked-nothing"), ours=(Message("tools.no-lines"),))
    ends = {"first": _place(context, min(rows)), "last": _place(context, max(rows))}
    return Found(Message("model.looked-normal", **ends), rows)


def _job_settings(context: ToolContext, arguments: Arguments) -> Found:
    prefix = canonical(arguments.get("prefix", "")).lower()
    found: dict[str, str] = {}
    for setting in context.prompt_context.assessment.settings:
        key = canonical(setting.key).lower()
        if key.startswith(prefix) or f".{prefix}" in key:
            found.setdefault(setting.key, setting.value)
    rows = tuple(f"{key}={value}" for key, value in islice(found.items(), MAX_SETTINGS))
    left = (Message("tools.more-not-shown", count=len(found) - len(rows)),) if len(found) > len(rows) else ()
    says = Message("model.looked-settings", count=len(found), prefix=arguments.get("prefix", ""))
    return Found(says, data=rows, ours=left if rows else (Message("tools.no-setting-of-name"),))


def _read_file(context: ToolContext, arguments: Arguments) -> Found:
    rows, more = read_file(
        context.prompt_context.report.launches,
        arguments["name"],
        arguments.get("first", ""),
        arguments.get("words", ""),
        context.prompt_context.remark_on,
    )
    says = Message("model.looked-file", name=arguments["name"], count=len(rows))
    return Found(says, data=rows, ours=more, is_of_file=True)


def _describe_setting(context: ToolContext, arguments: Arguments) -> Found:
    prompt_context, key = context.prompt_context, arguments["key"]
    library, report, language = prompt_context.library, prompt_context.report, prompt_context.language
    frameworks = [framework.name for framework in report.frameworks]
    # Else that of any framework: the log may not show which one runs.
    frameworks += [framework for framework, known in library.specs if canonical(known) == canonical(key)]
    specs = (
        named_settings(key, library, report)
        or [
            spec
            for name in dict.fromkeys(frameworks)
            if (spec := library.setting(name, key, report.version(name))) is not None
        ][:CASES]
    )
    says = Message("model.looked-setting", key=key)
    if not specs:
        return Found(says, ours=(Message("tools.not-in-catalogue"),))
    # What the job has it at is text of the job.
    ids, found = own_names(prompt_context), prompt_context.assessment.settings
    settings = [replace(item, value=withhold(item.value, ids, _LONGEST_ARGUMENT)) for item in found]
    shown = replace(report, settings=tuple(settings))
    told = [
        f"{describe_setting(spec, shown, language)} {at_this_job(spec, shown, library, language)}"
        for spec in specs
    ]
    return Found(says, ours=tuple(told))


def _find_cases(context: ToolContext, arguments: Arguments) -> Found:
    prompt_context, said = context.prompt_context, arguments["words"]
    library, language = prompt_context.library, prompt_context.language
    names = context.near(said) if context.near else _by_words(context, said)
    cases = [library.cases[name] for name in dict.fromkeys(names) if name in library.cases][:CASES]
    told = tuple(
        words("prompt.case-title", language, case=case.id, title=case.title.to(language), cause=case.cause)
        + "\n"
        + " ".join(case.body.to(language).split())[: CASE_TEXT // (1 + place)]
        for place, case in enumerate(cases)
    )
    says = Message("model.looked-cases", words=said, count=len(cases))
    return Found(says, ours=told or (Message("tools.no-case"),), cases=frozenset(case.id for case in cases))


def _by_words(context: ToolContext, said: str) -> list[str]:
    """Rank cases by how many of the words stand in their titles and ids."""
    wanted = set(said.lower().split())
    scores = {
        case.id: sum(word in f"{case.id} {case.title.en} {case.title.zh}".lower() for word in wanted)
        for case in context.prompt_context.library.cases.values()
    }
    return sorted(filter(scores.get, scores), key=lambda name: -scores[name])


def _describe_cause(context: ToolContext, arguments: Arguments) -> Found:
    prompt_context, name = context.prompt_context, arguments["cause"].strip("`[] ")
    holds = prompt_context.assessment.holds
    told = describe_cause(name, prompt_context.library, prompt_context.language, holds)
    if not told:
        raise ToolError(Message("tools.no-cause", all=ALL))
    return Found(Message("model.looked-cause", cause=name), ours=told)


def _read_telemetry(context: ToolContext, arguments: Arguments) -> Found:
    snapshot, language = context.prompt_context.assessment.snapshot, context.prompt_context.language
    if snapshot is None:
        return Found(Message("model.looked-no-telemetry"), ours=(Message("tools.no-telemetry"),))
    begin, end = _time_range(arguments)
    wanted = arguments.get("name", "").lower()
    found = readings_of(snapshot.model_dump(mode="json", exclude={"history"}), "")
    readings = {name: value for name, value in found if wanted in name.lower()}
    courses = []
    for series in snapshot.history:
        labels = ",".join(f"{key}={value}" for key, value in series.labels.items())
        values = [value for at, value in series.points if begin <= at <= end]
        if values and wanted in series.name.lower():
            ends = {"first": values[0], "last": values[-1], "low": min(values), "high": max(values)}
            told = {name: f"{value:g}" for name, value in ends.items()}
            name = f"{series.name}{{{labels}}}"
            courses.append(words("tools.course", language, name=name, count=len(values), **told))
    rows = [*(f"{name} = {value}" for name, value in readings.items()), *courses]
    says = Message("model.looked-telemetry", count=len(rows))
    if len(rows) <= MAX_READINGS:
        return Found(says, data=tuple(rows), ours=() if rows else (Message("tools.none"),))
    rows = [*folded_readings(readings), *courses]
    kept = head_and_tail([1] * len(rows), MAX_READINGS)
    left = [row for place, row in enumerate(rows) if place not in kept]
    ours = [Message("tools.readings-alike")]
    if left:
        first, last = _name(left[0]), _name(left[-1])
        ours.append(Message("tools.readings-left", count=len(left), first=first, last=last))
    return Found(says, data=tuple(row for place, row in enumerate(rows) if place in kept), ours=tuple(ours))


def _name(reading: str) -> str:
    return neutralize(re.split(r" = |: |\{", reading)[0], LONGEST_WORD)


def _find_in_source(context: ToolContext, arguments: Arguments) -> Found:
    report = context.prompt_context.report
    number = line_number(arguments["line"], report)
    rows = context.view.lines([(number, number)])
    count, told = source_places(number, rows.get(number, ""), report)
    return Found(Message("model.looked-source", line=_place(context, number), count=count), rows, ours=told)


_ROWS = (
    Tool("read_lines", ("first", "last"), _read_lines),
    Tool(
        "search_log",
        ("words", "rank", "stream", "first", "last"),
        _search_log,
        frozenset({"words", "rank", "stream", "first", "last"}),
    ),
    Tool(
        "read_events",
        ("rank", "first", "last", "since", "until"),
        _read_events,
        frozenset({"rank", "first", "last", "since", "until"}),
    ),
    Tool("read_traceback", ("line",), _read_traceback),
    Tool("last_normal_lines", ("count",), _last_normal_lines, frozenset({"count"})),
    Tool("job_settings", ("prefix",), _job_settings, frozenset({"prefix"})),
    Tool("read_job_file", ("name", "first", "words"), _read_file, frozenset({"first", "words"})),
    Tool("describe_setting", ("key",), _describe_setting),
    Tool("find_in_source", ("line",), _find_in_source),
    Tool("find_cases", ("words",), _find_cases),
    Tool("describe_cause", ("cause",), _describe_cause),
    Tool(
        "read_telemetry", ("name", "since", "until"), _read_telemetry, frozenset({"name", "since", "until"})
    ),
)
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ROWS}


@cache
def schemas(language: Language) -> tuple[dict[str, Any], ...]:
    """Give all tools in the form in which chat models are told of functions."""
    return tuple(tool.schema(language) for tool in _ROWS)
