"""The options of the job's own program that lead to the failing statement, as changes.

Only where the way from the statement to the option is unbroken, and where the message ties the two: by the
option's value, or because nothing else is handed to the part that failed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from corpus.expressions import compiled
from corpus.flow_aims import FlowAim, Seeks, known_flow_aims
from corpus.keys import canonical, last_level
from corpus.library import Library
from corpus.message import words
from corpus.schema import Cause, Language, Scalar
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.data_flow.evidence import (
    PATHS,
    Tie,
    is_address,
    is_path,
    numbers_of,
    tied_by_number,
    tied_by_path,
    tied_by_word,
)
from service.remediation.data_flow.failing_parts import (
    choices_of,
    divisors,
    empty_parts,
    guards_of,
    index_parts,
    key_parts,
    layers_of,
    missed_key,
    parts_named,
    parts_of,
    passing_value,
    shaped,
    switches_of,
    tables_of,
)
from service.remediation.data_flow.job_program import JobProgram, OwnCall
from service.remediation.data_flow.slices import COMPUTED, PASSED, FlowEnd, Slicer
from service.remediation.framework_relations import settable_frameworks
from service.remediation.own_edits import job_files
from service.schemas.diagnosis import ProposedChange

# How many own calls, from the innermost outwards, are looked at, and how many options are offered.
MOST_CALLS, MOST_OFFERED = 8, 2
# More options that are handed to a part with nothing to tell them apart are none.
MOST_ALIKE = 2
LONGEST = 120
# How many exceptions of one chain are looked at, and how far below the root the others may stand.
MOST_CHAINED, LINKED = 2, 60
# Numbers over one, alone or in a list.
_SIZES = re.compile(r"\[?(?:[2-9]|[1-9]\d{1,8})(?:, ?[1-9]\d{0,8})*\]?")
# Words for a value that is not there.
_NOTHING = re.compile(r"(?:\bnot |['\"])NoneType\b")
_COMPARED = re.compile(r"between instances of '(?P<one>\w+)' and '(?P<other>\w+)'")
_ON = frozenset({"true", "1", "yes", "on"})
# Switches without which nothing is left of the job, or that choose what it does.
_WHOLE_JOB = re.compile(
    r"(?i)(?:^|[_.-])(?:do_)?(?:train(?:ing)?|main|cuda|gpu|run|load|verbose|debug|log|test"
    r"|eval(?:uate)?|predict|infer(?:ence)?|sample|generate|only|do)$|^enabled?$"
)
# How far from a check's condition an option that it reads may stand.
NEAREST = 5
# A number that comes by a longer way is met by chance.
FARTHEST = 9


_Tied = tuple[FlowEnd, Tie]


@dataclass(frozen=True)
class FlowOption:
    """An option that leads to the failing statement, what ties it to the message, and where it arrives."""

    aim: FlowAim
    end: FlowEnd
    tie: Tie
    key: str
    now: str | None
    place: str
    spelled: str = ""

    @property
    def is_firm(self) -> bool:
        """Tell whether the message itself tells the option, by its value or by the check that reads it."""
        return self.tie.rank <= 1


def flow_options(report: CrashReport, settings: Sequence[Setting], cause: Cause) -> list[FlowOption]:
    """Give the options that the failing statement has its values from and that the message speaks of."""
    root = report.root
    if root is None or not root.frames:
        return []
    chain = [root]
    if root.handled:  # then what came of it, too
        linked = (event for event in report.standing if event.linked and event.frames)
        chain += [event for event in linked if 0 < event.line - root.line <= LINKED]
    for event in chain[:MOST_CHAINED]:
        if found := _of_event(event, report, settings, cause):
            return found
    return []


def _of_event(
    root: Event, report: CrashReport, settings: Sequence[Setting], cause: Cause
) -> list[FlowOption]:
    message = _message(root, report)
    aims = [
        aim
        for aim in known_flow_aims()
        if (cause.id in aim.causes or cause.category in aim.categories)
        and compiled(aim.expression).search(message)
        and (not aim.stands or any(compiled(aim.stands).search(frame.code) for frame in root.frames))
    ]
    if not aims:
        return []
    at_hand = [JobFile(name, text) for name, text in report.failing_source.files]
    program = JobProgram(root.frames, [*job_files(report), *at_hand])
    own = program.calls[::-1][:MOST_CALLS]
    if not own:
        return []
    try:
        for aim in aims:
            for place, call in enumerate(_within_loop(aim, own)):
                found = _options(aim, call, place, program, message, settings)
                if found:
                    return found[:MOST_OFFERED]
            if aim.seeks == "path":
                found = _written(aim, own[0], program, message)
                if found:
                    return found
    except RecursionError:  # code that nests deeper than a walk can
        return []
    return []


def _within_loop(aim: FlowAim, own: Sequence[OwnCall]) -> Sequence[OwnCall]:
    """Give the calls up to the outermost one of a function that the row names, all where it names none."""
    if not aim.calls:
        return own
    # A decorator stands between a call and its function: what the next own call is in tells it.
    names = [(call.calls, inner.frame.function) for inner, call in pairwise((own[0], *own))]
    named = [place for place, both in enumerate(names) if any(map(compiled(aim.calls).search, both))]
    return own[: named[-1] + 1] if named else ()


def _options(
    aim: FlowAim, call: OwnCall, place: int, program: JobProgram, message: str, settings: Sequence[Setting]
) -> list[FlowOption]:
    if aim.seeks in ("guard", "empty", "part", "made", "key", "divisor", "table") and place:
        return []
    if aim.seeks == "source" and aim.stands and not compiled(aim.stands).search(call.frame.code):
        return []
    found = _SEARCHES[aim.seeks](_OptionSearch(call, Slicer(program), message, settings, aim, place))
    made: dict[str, FlowOption] = {}
    for end, tie in found:
        setting = _setting(end, tie, settings)
        key = setting.key if setting is not None and setting.key not in end.short else end.key
        now = setting.value if setting is not None else end.value
        if tie.value is not None:
            now = tie.value
        if end.kind == "parameter":  # written at a call: rather a place of the code than an option
            tie = replace(tie, rank=tie.rank + 1)
        option = FlowOption(aim, end, tie, key, now, call.frame.found_at, setting.spelled if setting else "")
        made.setdefault(canonical(key), option)
    return sorted(made.values(), key=lambda item: (item.tie.rank, item.end.how, item.end.steps))


def _written(aim: FlowAim, call: OwnCall, program: JobProgram, message: str) -> list[FlowOption]:
    """Give the one option whose value in the code is the folder that a path of the message lies in."""
    found = [
        FlowOption(aim, end, Tie(1, end.value), end.key, end.value, call.frame.found_at)
        for end in Slicer(program).written_values()
        if end.value and end.value.strip("./").count("/") and (tie := tied_by_path(end, [end.value], message))
        if tie.rank == 0
    ]
    return found if len({canonical(option.key) for option in found}) == 1 else []


@dataclass(frozen=True)
class _OptionSearch:
    """Where options are sought: an own call above `place` others, the slices from it, what the log says."""

    call: OwnCall
    slicer: Slicer
    message: str
    settings: Sequence[Setting]
    aim: FlowAim
    place: int

    def ends(self, parts: Iterable[ast.expr]) -> list[FlowEnd]:
        """Give the ends of some parts of the call's statement."""
        return [end for part in parts for end in self.slicer.ends(part, self.call.scope)]

    def is_option(self, end: FlowEnd) -> bool:
        """Tell whether an end is something that a person sets: by its kind, or since the run was given it.

        A field of a class that holds options has a default, as a constant has; what the run printed or was
        started with tells the two apart.
        """
        return _is_option(end) or (
            end.kind == "constant"
            and any(item.line or item.spelled != "dump" for item in _named(end, self.settings))
        )

    def valued(self) -> list[tuple[FlowEnd, list[str]]]:
        """Give the ends of the failing parts, each with the values that it is seen to have."""
        return [(end, _values(end, self.settings)) for end in self.ends(parts_of(self.call))]

    def by_path(self) -> list[_Tied]:
        """Give the options whose value is, or is part of, the path; one alone also where it is not shown."""
        valued = [(end, values) for end, values in self.valued() if not is_address(values, self.message)]
        whole = self.aim.whole
        ties = ((end, tied_by_path(end, values, self.message, by_levels=whole)) for end, values in valued)
        # An option of which no value shows may be any that is handed to calls below.
        tied = [(end, tie) for end, tie in ties if tie is not None and (tie.rank < 2 or not self.place)]
        if len(tied) == 1 and tied[0][1].rank > 1 and len(valued) <= MOST_ALIKE:
            return [(tied[0][0], Tie(1, tied[0][1].value))]  # nothing else is behind the path
        if not tied:
            return self._checked_paths()
        best = min((tie.rank for _, tie in tied), default=0)
        if best < 2:
            return [(end, tie) for end, tie in tied if tie.rank < 2]
        nearest = [(end, tie) for end, tie in tied if end.how == min(end.how for end, _ in tied)]
        return next((found for found in (tied, nearest) if len(found) <= MOST_ALIKE), [])

    def _checked_paths(self) -> list[_Tied]:
        """Give the options that the path is made of for which a check of the job's own code looks."""
        for test in guards_of(self.call, self.message):
            ends = [end for end in self.ends([test]) if self.is_option(end)]
            read = [
                end
                for end in ends
                if PATHS.search(last_level(end.key))
                and not is_address(_values(end, self.settings), self.message)
            ]
            if read:
                return [(end, Tie(1)) for end in read] if len(read) <= MOST_ALIKE else []
        return []

    def by_word(self) -> list[_Tied]:
        """Give the options whose value is a word of the message."""
        ties = ((end, tied_by_word(end, values, self.message)) for end, values in self.valued())
        return [(end, tie) for end, tie in ties if tie is not None]

    def by_key(self) -> list[_Tied]:
        """Give the options whose value is the very key that a mapping has not."""
        ends = self.ends(key_parts(self.call))
        key = missed_key(self.message)
        return [
            (end, Tie(0, value))
            for end in ends
            for value in _values(end, self.settings)
            if end.how == PASSED and value.strip("'\"") == key
        ][:MOST_ALIKE]

    def by_divisor(self) -> list[_Tied]:
        """Give the options that what is divided by is made of, where they are few."""
        for part in divisors(self.call):
            read = [end for end in self.ends([part]) if self.is_option(end) and end.how != COMPUTED]
            if read:
                return [(end, Tie(1)) for end in read] if len(read) <= MOST_ALIKE else []
        return []

    def by_number(self) -> list[_Tied]:
        """Give the options that a number of the message is, or is made of."""
        handed = [
            (end, Tie(1, number))
            for part, number in shaped(self.call, self.message)
            for end in self.ends([part])
            if end.how == PASSED
        ]
        near = [(end, values) for end, values in self.valued() if end.steps <= FARTHEST]
        tied = handed or tied_by_number(near, numbers_of(self.message))
        # A layer of a library is no call of the job's own: what it was made with stands where it was made.
        made = [end for part in layers_of(self.call) for end in self.slicer.made_with(part, self.call.scope)]
        sized = [(end, _values(end, self.settings)) for end in made if self.is_option(end)]
        return tied or tied_by_number(sized, numbers_of(self.message, of_weight=True))

    def by_part(self) -> list[_Tied]:
        """Give the options that are handed on as they are to what failed, where they are few."""
        ends = self.ends(index_parts(self.call, self.message))
        handed = [end for end in ends if end.how == PASSED and self.is_option(end)]
        fitting = [end for end in handed if _may_be(end, self.message, self.settings)]
        return [(end, Tie(1)) for end in fitting] if len(fitting) <= MOST_ALIKE else []

    def by_guard(self) -> list[_Tied]:
        """Give the options that the nearest condition of a check reads which reads any."""
        for test in guards_of(self.call, self.message):
            read = [end for end in self.ends([test]) if self.is_option(end) and end.steps <= NEAREST]
            if read:
                tie = Tie(1, to=self._passing(test) if len(read) == 1 else None)
                return [(end, tie) for end in read] if len(read) <= MOST_ALIKE else []
        return []

    def _passing(self, test: ast.expr) -> Scalar | None:
        """Give the value that a check asks of an option which gets there as it is given."""
        side, value = passing_value(self.call, test) or (None, None)
        ends = self.ends([side]) if side is not None else []
        return value if ends and all(end.how == PASSED for end in ends) else None

    def by_nothing(self) -> list[_Tied]:
        """Give the options that decide whether what is missing is there."""
        parts = empty_parts(self.call, self.message)
        ends = [end for part in parts for end in self.slicer.empty_by(part, self.call.scope)]
        return [(end, Tie(1)) for end in ends if self.is_option(end)][:MOST_ALIKE]

    def by_made_part(self) -> list[_Tied]:
        """Give the options that decide whether a part of the model is made which the message names."""
        named = [(part, end) for part in parts_named(self.message) for end in self.slicer.made_by(part)]
        return [(replace(end, part=part), Tie(1)) for part, end in named if self.is_option(end)][:MOST_ALIKE]

    def by_switch(self) -> list[_Tied]:
        """Give the switch that is on and without which the statement is not reached."""
        true, there = switches_of(self.call, self.message)
        ends = [end for end in self.ends(true) if end.how == PASSED]
        ends += [end for part in there for end in self.slicer.empty_by(part, self.call.scope)]
        if self.aim.names:
            ends = [end for end in ends if compiled(self.aim.names).search(last_level(end.key))]
        valued = ((end, _values(end, self.settings)) for end in ends if not _WHOLE_JOB.search(end.key))
        on = [end for end, values in valued if values and values[0].strip("'\"").lower() in _ON]
        is_any = not self.aim.names
        return [(end, Tie(2 if is_any else 1)) for end in on[:1]] or (self._chosen() if is_any else [])

    def _chosen(self) -> list[_Tied]:
        """Give the option whose word chose the branch in which the statement stands."""
        for part, word in choices_of(self.call):
            for end in self.ends([part]):
                values = [value.strip("'\"") for value in _values(end, self.settings)]
                if end.how == PASSED and self.is_option(end) and values[:1] == [word]:
                    return [(end, Tie(2, word))]
        return []

    def by_size(self) -> list[_Tied]:
        """Give the sizes and counts that are handed on as they are, where they are few."""
        handed = [
            (end, Tie(1, values[0]))
            for end, values in self.valued()
            if end.how == PASSED and self.is_option(end) and values and _SIZES.fullmatch(values[0])
            if compiled(self.aim.names).search(last_level(end.key))
        ]
        return handed if len({end.key for end, _ in handed}) <= MOST_ALIKE else []

    def by_source(self) -> list[_Tied]:
        """Give the options that name the file; what a call is handed comes before what it is called on."""
        named = compiled(self.aim.names) if self.aim.names else PATHS
        is_table = self.aim.seeks == "table"
        for part in tables_of(self.call, self.message) if is_table else parts_of(self.call):
            sources = ((end, _values(end, self.settings)) for end in self.ends([part]))
            read = [
                (end, Tie(1, next(iter(values), None)))
                for end, values in sources
                if named.search(last_level(end.key))
                and (any(map(is_path, values)) or not values)
                # A text that code writes there is one part of a name among others.
                and (self.is_option(end) or (end.how == PASSED and bool(values)))
            ]
            if read:
                return read[:MOST_ALIKE]
        return []


_SEARCHES: Mapping[Seeks, Callable[[_OptionSearch], list[_Tied]]] = {
    "path": _OptionSearch.by_path,
    "word": _OptionSearch.by_word,
    "key": _OptionSearch.by_key,
    "divisor": _OptionSearch.by_divisor,
    "number": _OptionSearch.by_number,
    "part": _OptionSearch.by_part,
    "guard": _OptionSearch.by_guard,
    "empty": _OptionSearch.by_nothing,
    "made": _OptionSearch.by_made_part,
    "switch": _OptionSearch.by_switch,
    "source": _OptionSearch.by_source,
    "table": _OptionSearch.by_source,
    "size": _OptionSearch.by_size,
}


def _is_option(end: FlowEnd) -> bool:
    """Tell whether an end is something that a person sets: a constant is where it is written as one."""
    return end.kind in ("option", "env") or (
        end.kind == "constant" and end.key.isupper() and len(end.key) > 2
    )


def _may_be(end: FlowEnd, message: str, settings: Sequence[Setting]) -> bool:
    """Tell whether an option's value can be the one whose type a message refuses."""
    # What code falls back to tells nothing of a run that may have been given another value.
    values = [item.value for item in _named(end, settings) if item.line or item.spelled != "dump"]
    if not values and end.kind == "constant" and end.value is not None:
        values = [end.value]
    if _NOTHING.search(message):
        return not values or any(_read(value) is None for value in values)
    if compared := _COMPARED.search(message):
        # Of two values that are not compared the one that is no number is wrong.
        odd = {compared["one"], compared["other"]} - {"int", "float"}
        return not values or not odd or bool(odd & {type(_read(value)).__name__ for value in values})
    told = re.search(r"(?:, not|but (?:got|received)|to float:|base 10:) ['\"]?(?P<sort>[\w.-]+)", message)
    if not values or told is None:
        return True
    sorts = {type(_read(value)).__name__ for value in values}
    return told["sort"] in sorts or any(value.strip("'\"") in message for value in values)


def _read(value: str) -> object:
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None if value in ("null", "None", "") else value


def _values(end: FlowEnd, settings: Sequence[Setting]) -> list[str]:
    """Give the values that an option is seen to have: those that the job gives before code's own."""
    named = _named(end, settings)
    given = [item.value for item in named if item.value.strip()]
    is_given = any(item.line or item.spelled != "dump" for item in named)
    default = [end.value] if end.value is not None and not is_given else []
    return list(dict.fromkeys([*given, *default]))


def _named(end: FlowEnd, settings: Sequence[Setting]) -> list[Setting]:
    """Give the job's settings of an option's name: by the whole path, else by its end if one has it."""
    wanted = canonical(end.key)
    short = [item for item in settings if item.spelled == "flag" and item.key.lstrip("-") in end.short]
    if short:  # what a command gives comes before what code itself has
        return short
    whole = [item for item in settings if canonical(item.key) == wanted]
    if whole or end.kind == "env":
        # What code falls back to is not the value of a run that is given another one.
        return [item for item in whole if item.line or item.spelled != "dump"] or whole
    ending = [item for item in settings if canonical(item.key).endswith(f".{wanted}")]
    if ending or end.kind != "option":
        return ending
    leaf = [item for item in settings if last_level(item.key) == last_level(end.key)]
    return leaf if len({item.value for item in leaf}) == 1 else []


def _setting(end: FlowEnd, tie: Tie, settings: Sequence[Setting]) -> Setting | None:
    """Give the setting that holds the value by which an option is tied, else the first of its name."""
    named = _named(end, settings)
    held = [
        item for item in named if tie.value is not None and item.value.strip("'\"") == tie.value.strip("'\"")
    ]
    return next(iter([*held, *named]), None)


def _message(root: Event, report: CrashReport) -> str:
    """Give what an exception says, also where the line that stands for it is another one's."""
    body = root.body.strip()
    name = root.exception.partition("(")[0]
    if not name or name.rpartition(".")[2] in body:
        return f"{body}\n{root.rest}" if root.rest else body
    near = (report.texts.get(line, "") for line in range(root.line - LINKED // 2, root.line + LINKED))
    told = next((text.strip() for text in near if f"{name}: " in text), "")
    return told[told.find(f"{name}: ") :] if told else f"{name}: {body}"


def flow_changes(
    options: Sequence[FlowOption], report: CrashReport, library: Library, language: Language
) -> Iterator[ProposedChange]:
    """Make a change of each option: which one it is, what it holds, and how that gets to the failing line."""
    mine = settable_frameworks(report)
    for option in options:
        owner = next((name for name in sorted(mine) if library.setting(name, option.key)), "python")
        is_env = option.end.kind == "env" or option.spelled == "env"
        now = (option.now or "").strip("'\"").replace("`", "'")
        shown = words("changes.flow-now", language, value=now) if 0 < len(now) < LONGEST else ""
        why = words(
            f"changes.flow-{option.aim.seeks}",
            language,
            key=option.key,
            now=shown,
            place=option.place,
            part=option.end.part.replace("`", "'"),
            reads=option.end.reads.replace("`", "'"),
        )
        yield ProposedChange(
            framework="env" if is_env else owner,
            kind="env" if is_env else "flag" if option.key.startswith("--") else "setting",
            key=option.key,
            from_=option.now or None,
            to=words(f"changes.{option.aim.to}", language) if option.tie.to is None else option.tie.to,
            why=why,
            status="unverified" if option.tie.to is None else "verified",
            proof=None if option.tie.to is None else why,
        )
