"""The tools of a model that investigates: read-only, over the redacted log and what is known.

Each is a function from arguments to what it found. What a tool gives of the log is data like the log itself:
`service/llm/investigation.py` fences it, withholds what in it speaks to a model, and bounds it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from corpus.keys import canonical
from corpus.message import Message
from corpus.message_atlas import shipped
from ingest.logs.clock import parse_time
from ingest.logs.events import Event
from ingest.logs.timeline import YEAR
from service.llm.cause_lookups import describe_cause
from service.llm.job_files import read_file
from service.llm.log_view import LogView, Writer, around, begins_late, line_number, units, written
from service.llm.prompt_context import PromptContext
from service.llm.prompt_injection import LONGEST_ROW, neutralize, withhold
from service.llm.prompt_lines import own_names
from service.llm.row_folding import folded, folded_readings, head_and_tail, readings_of
from service.llm.setting_lookups import at_this_job, describe_setting, named_settings

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
# Messages of a line, and places that say the same.
SOURCES = 3
MAX_WORDS, LONGEST_WORD = 12, 80
_LONGEST_ARGUMENT = 200


class ToolError(ValueError):
    """A call cannot be answered; its text says why, in words for the model."""


@dataclass(frozen=True)
class Found:
    """What a tool found.

    `says` tells a person what was looked at. `rows` are lines of the log by their numbers, `data` is text of
    the log or the job that has no line of its own, `ours` text of ours; `cases` are those that it tells of.
    `pieces` are what is shown of rows that are longer; `is_of_file`: `data` are rows of a file of the job's.
    """

    says: Message
    rows: Mapping[int, str] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    cases: frozenset[str] = frozenset()
    pieces: Mapping[int, str] = field(default_factory=dict)
    is_of_file: bool = False


@dataclass(frozen=True)
class ToolContext:
    """What the tools look into; `near` finds ids of cases by words."""

    prompt_context: PromptContext
    view: LogView
    near: Callable[[str], Sequence[str]] | None = None


Arguments = Mapping[str, str]


@dataclass(frozen=True)
class Tool:
    """A tool as a model is told of it.

    `parameters` maps the name of each to what it means; those in `optional` may be left out.
    """

    name: str
    says: str
    parameters: Mapping[str, str]
    run: Callable[[ToolContext, Arguments], Found]
    optional: frozenset[str] = frozenset()

    def schema(self) -> dict[str, Any]:
        """Give it in the form in which chat models are told of functions."""
        properties = {name: {"type": "string", "description": told} for name, told in self.parameters.items()}
        required = [name for name in self.parameters if name not in self.optional]
        parameters = {"type": "object", "properties": properties, "required": required}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.says, "parameters": parameters},
        }


def call_tool(context: ToolContext, name: str, given: Mapping[str, Any]) -> Found:
    """Run a tool; raises ToolError where there is none of that name, or it cannot be run so."""
    tool = TOOLS.get(name)
    if tool is None:
        raise ToolError(f"there is no such tool; there are {', '.join(TOOLS)}")
    arguments = {
        key: neutralize(str(given[key]), _LONGEST_ARGUMENT).strip()
        for key in tool.parameters
        if isinstance(given.get(key), str | int | float)
    }
    if missing := [key for key in tool.parameters if not arguments.get(key) and key not in tool.optional]:
        raise ToolError(f"the argument {missing[0]} is missing: {tool.parameters[missing[0]]}")
    try:
        return tool.run(context, arguments)
    except ToolError:
        raise
    except ValueError as error:
        raise ToolError(str(error)) from error


def _place(context: ToolContext, number: int) -> str:
    return str(context.prompt_context.report.place(number))


def _span(context: ToolContext, arguments: Arguments) -> tuple[int, int]:
    """Give the first and last line of the optional arguments of those names; all lines without them."""
    report = context.prompt_context.report
    first = line_number(arguments["first"], report) if arguments.get("first") else 1
    last = line_number(arguments["last"], report) if arguments.get("last") else max(report.limits.lines, 1)
    if last < first:
        raise ToolError("the last line stands before the first")
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
        return Found(Message("model.looked-no-lines", **ends), ours=("No such lines are at hand.",))
    rows = there
    if len(there) > MAX_ROWS:
        failing = {
            line for event in context.prompt_context.report.events for line in (event.line, event.last)
        }
        rows = folded(there, failing)
        kept = head_and_tail([1] * len(rows), MAX_ROWS)
        rows = {number: rows[number] for place, number in enumerate(sorted(rows)) if place in kept}
    told = f"{len(rows)} of the lines are shown, without those amid runs alike and, of many, the middle"
    more = f"{told}; a span of at most {MAX_ROWS} lines is shown whole." if is_long or rows != there else ""
    return Found(Message("model.looked-lines", **ends), rows, ours=(more,) if more else ())


def _search_log(context: ToolContext, arguments: Arguments) -> Found:
    said = arguments.get("words", "")
    wanted = [units(part)[:MAX_WORDS] for part in said.split("|")]
    wanted = [[word[:LONGEST_WORD] for word in words] for words in wanted if words]
    rank, stream = _rank(arguments), arguments.get("stream", "").lower().split()
    if any(len(max(words, key=len)) < 2 for words in wanted) or not (wanted or rank or stream):
        raise ToolError("words of at least two characters are looked for, or a rank, or a stream")
    hits = context.view.search(wanted or [[""]], _span(context, arguments), Writer(rank, tuple(stream)))
    of = " ".join(filter(None, [f"rank {rank}" if rank else "", *stream]))
    said = " | ".join(" ".join(map(written, words)) for words in wanted)
    of_whom = f"{said} ({of})" if said and of else said or of
    more = "More such lines stand between the first and the last of them: ask for a span with first and last."
    return Found(
        Message("model.looked-words", words=of_whom, count=len(hits.rows)),
        hits.rows,
        ours=(more,) if hits.has_more else () if hits.rows else ("No line that is at hand is such.",),
        pieces={
            number: around(text, wanted) for number, text in hits.rows.items() if len(text) > LONGEST_ROW
        },
    )


def _rank(arguments: Arguments) -> str:
    """Give the optional argument of that name as digits."""
    rank = arguments.get("rank", "").lower().removeprefix("rank").strip()
    if rank and not rank.isdecimal():
        raise ToolError("a rank is a number")
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
    left = (f"{len(events) - len(shown)} more events are not shown.",) if len(events) > len(shown) else ()
    says = Message("model.looked-events", count=len(events))
    if rank:
        says = Message("model.looked-events-rank", count=len(events), rank=rank)
    return Found(says, {event.line: event.text for event in shown}, ours=(*told, *left) or ("None.",))


def _time_range(arguments: Arguments) -> tuple[float, float]:
    """Give the optional arguments `since` and `until` in seconds since the epoch; all time without them."""
    found = [-math.inf, math.inf]
    for place, name in enumerate(("since", "until")):
        if arguments.get(name):
            when = parse_time(arguments[name], YEAR)
            if when is None:
                raise ToolError("a time is given as the log prints it, with its day")
            found[place] = when
    return found[0], found[1]


def _event_row(context: ToolContext, event: Event) -> str:
    parts = [event.role, event.kind, f"x{event.count}" if event.count > 1 else ""]
    parts.append(f"last at {_place(context, event.last)}" if event.last > event.line else "")
    parts.append(f"ranks {', '.join(map(str, event.ranks[:16]))}" if event.ranks else "")
    parts.append(f"not by ranks {', '.join(map(str, event.missing[:16]))}" if event.missing else "")
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
        raise ToolError("a count is a number")
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
        return Found(Message("model.looked-nothing"), ours=("No such lines are at hand.",))
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
    left = (f"{len(found) - len(rows)} more are not shown.",) if len(found) > len(rows) else ()
    says = Message("model.looked-settings", count=len(found), prefix=arguments.get("prefix", ""))
    return Found(says, data=rows, ours=left if rows else ("The job has none of that name that is known.",))


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
    library, report = prompt_context.library, prompt_context.report
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
        return Found(says, ours=("The catalogue has no such setting.",))
    # What the job has it at is text of the job.
    ids, found = own_names(prompt_context), prompt_context.assessment.settings
    settings = [replace(item, value=withhold(item.value, ids, _LONGEST_ARGUMENT)) for item in found]
    shown = replace(report, settings=tuple(settings))
    told = [
        f"{describe_setting(spec, shown, prompt_context.language)} {at_this_job(spec, shown, library)}"
        for spec in specs
    ]
    return Found(says, ours=tuple(told))


def _find_cases(context: ToolContext, arguments: Arguments) -> Found:
    prompt_context, words = context.prompt_context, arguments["words"]
    library, language = prompt_context.library, prompt_context.language
    names = context.near(words) if context.near else _by_words(context, words)
    cases = [library.cases[name] for name in dict.fromkeys(names) if name in library.cases][:CASES]
    told = tuple(
        f"[case:{case.id}] {case.title.to(language)} (cause: {case.cause}). "
        + " ".join(case.body.to(language).split())[: CASE_TEXT // (1 + place)]
        for place, case in enumerate(cases)
    )
    says = Message("model.looked-cases", words=words, count=len(cases))
    return Found(says, ours=told or ("No case is near.",), cases=frozenset(case.id for case in cases))


def _by_words(context: ToolContext, words: str) -> list[str]:
    """Rank cases by how many of the words stand in their titles and ids."""
    wanted = set(words.lower().split())
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
        raise ToolError("there is no such cause; the prompt lists them")
    return Found(Message("model.looked-cause", cause=name), ours=told)


def _read_telemetry(context: ToolContext, arguments: Arguments) -> Found:
    snapshot = context.prompt_context.assessment.snapshot
    if snapshot is None:
        return Found(Message("model.looked-no-telemetry"), ours=("Telemetry is not available for this job.",))
    begin, end = _time_range(arguments)
    wanted = arguments.get("name", "").lower()
    found = readings_of(snapshot.model_dump(mode="json", exclude={"history"}), "")
    readings = {name: value for name, value in found if wanted in name.lower()}
    courses = []
    for series in snapshot.history:
        labels = ",".join(f"{key}={value}" for key, value in series.labels.items())
        values = [value for at, value in series.points if begin <= at <= end]
        if values and wanted in series.name.lower():
            courses.append(
                f"{series.name}{{{labels}}}: {len(values)} points, first {values[0]:g}, last {values[-1]:g}, "
                f"lowest {min(values):g}, highest {max(values):g}"
            )
    rows = [*(f"{name} = {value}" for name, value in readings.items()), *courses]
    says = Message("model.looked-telemetry", count=len(rows))
    if len(rows) <= MAX_READINGS:
        return Found(says, data=tuple(rows), ours=() if rows else ("None.",))
    rows = [*folded_readings(readings), *courses]
    kept = head_and_tail([1] * len(rows), MAX_READINGS)
    left = [row for place, row in enumerate(rows) if place not in kept]
    more = f" {len(left)} more are not shown, from {_name(left[0])} to {_name(left[-1])}." if left else ""
    told = f"Readings that differ only in what they are of stand in one row; name them more narrowly.{more}"
    return Found(says, data=tuple(row for place, row in enumerate(rows) if place in kept), ours=(told,))


def _name(reading: str) -> str:
    return neutralize(re.split(r" = |: |\{", reading)[0], LONGEST_WORD)


def _find_in_source(context: ToolContext, arguments: Arguments) -> Found:
    number = line_number(arguments["line"], context.prompt_context.report)
    rows = context.view.lines([(number, number)])
    matches = shipped().look_up(rows.get(number, ""))[:SOURCES]
    shown = {found.name for found in context.prompt_context.report.frameworks}
    told = tuple(
        f"{site.package} {site.versions or '(every version read)'}: {site.file}, {site.symbol}"
        f"; {site.exception or 'logged'}; involves {', '.join(site.names) or 'no setting'}"
        for match in matches
        for site in sorted(match.sites, key=lambda site: site.framework not in shown)[:SOURCES]
    )
    says = Message("model.looked-source", line=_place(context, number), count=len(told))
    return Found(says, rows, ours=told or ("No source that is known says this line.",))


_FIRST, _LAST = "mark of the first line, such as L12", "mark of the last line"
_SINCE, _UNTIL = "a time as the log prints it", "a time as the log prints it"
_ROWS = (
    Tool(
        "read_lines",
        f"Read lines of the log. Of more than {MAX_ROWS}, rows alike are folded and the middle is left out.",
        {"first": _FIRST, "last": _LAST},
        _read_lines,
    ),
    Tool(
        "search_log",
        "Find lines that hold words, in any order and case; `|` stands between alternatives, and words in "
        'quotation marks stand together ("out of memory"). No expressions. '
        "Of a rank or stream alone, by what stands before its lines; without words, all of its lines.",
        {
            "words": "such as: killed process | out of memory",
            "rank": "its number",
            "stream": "words of its lines' label or its file's name, such as WorkerDict, pid=12, ip=10.0.0.3",
            "first": _FIRST,
            "last": _LAST,
        },
        _search_log,
        frozenset({"words", "rank", "stream", "first", "last"}),
    ),
    Tool(
        "read_events",
        "List the failures and warnings that the rules found: of a rank, of lines, of a span of time.",
        {"rank": "its number", "first": _FIRST, "last": _LAST, "since": _SINCE, "until": _UNTIL},
        _read_events,
        frozenset({"rank", "first", "last", "since", "until"}),
    ),
    Tool(
        "read_traceback",
        "Read the whole traceback that a line belongs to.",
        {"line": "mark of a line of it, such as that of its message"},
        _read_traceback,
    ),
    Tool(
        "last_normal_lines",
        "Read the last lines before the first failure that tell of no failure.",
        {"count": f"how many, at most {MAX_NORMAL}"},
        _last_normal_lines,
        frozenset({"count"}),
    ),
    Tool(
        "job_settings",
        "List the job's settings whose names begin with a prefix.",
        {"prefix": "such as actor_rollout_ref.rollout; empty for all"},
        _job_settings,
        frozenset({"prefix"}),
    ),
    Tool(
        "read_job_file",
        "Read rows of one of the job's own files, or those that hold a phrase (else all, else any of its "
        "words), each with its whole call. `|` stands between phrases.",
        {"name": "the file's name", "first": "number of the first row", "words": "such as a name of code"},
        _read_file,
        frozenset({"first", "words"}),
    ),
    Tool(
        "describe_setting",
        "Say what a setting does, its default, range and cost, and how it is spelled at the job's version.",
        {"key": "its name"},
        _describe_setting,
    ),
    Tool(
        "find_in_source",
        "Find where the frameworks' sources say what a line says, and which settings they test there.",
        {"line": "mark of the line, such as L12"},
        _find_in_source,
    ),
    Tool("find_cases", "Find known cases by words.", {"words": "what the case is about"}, _find_cases),
    Tool(
        "describe_cause",
        "Give a cause's definition, and what tells it apart from others.",
        {"cause": "its id"},
        _describe_cause,
    ),
    Tool(
        "read_telemetry",
        "Give what the machine's telemetry says, of a span of time where it was recorded.",
        {"name": "part of the readings' names, such as memory", "since": _SINCE, "until": _UNTIL},
        _read_telemetry,
        frozenset({"name", "since", "until"}),
    ),
)
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _ROWS}
