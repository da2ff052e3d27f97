"""Where else a job's output and settings tell of what the failing line names: its values and its paths.

A failure often names a value whose place of origin stands elsewhere in the log: a number that a setting holds
or that others add up to, a folder of another round than the one that is written, a switch that an assertion
tests. Only what is distinctive counts: numbers of three digits and more, paths of three parts that differ
in one, names that the failing statement reads and that the job sets, names that differ in their spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations, islice
from typing import Literal

from corpus.keys import canonical, last_level
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
from ingest.logs.stacks.statements import named_in
from service.scoring.assessment import Assessment

MOST_TRACES = 3
# A value of which more settings are is nobody's.
MOST_OWNERS = 2
# The least number that is not met by chance, and the least that others add up to.
DISTINCTIVE, LEAST_SUM = 100, 1000
# Longer values are no value to tell in a sentence.
LONGEST_VALUE = 100
_NUMBER = re.compile(r"(?<![\w./:%-])\d{1,12}(?![\w%:]|[.,]\d|/)")
_PATH = re.compile(
    r"(?<![\w/.@:-])(?:~|\.{1,2}|[A-Za-z]:)?(?:/[\w.@+=-]+){2,}|(?<![\w/.@:-])[\w.@+=-]+(?:/[\w.@+=-]+)+"
)
_DIGITS = re.compile(r"\d+")
# A message that is about whether a path is there.
_OF_PATHS = re.compile(
    r"(?i)no such file|does(?:n't| not) exist|not found|file exists|already exists|cannot (?:open|find)"
    r"|could(?:n't| not) (?:open|find)|unable to (?:open|find)|not a directory|is not empty"
)
# A row of a stack, whose path is that of code.
_CALL = re.compile(r"\bFile \"|site-packages/|dist-packages/")


# What is said to be unknown or missing, by its name.
_OF_NAMES = re.compile(
    r"(?i)keyerror|no attribute|not found|unknown|unrecogni[sz]ed|invalid choice|no such"
    r"|does(?:n't| not) exist|not (?:in|a valid|supported|defined)\b|unexpected keyword|not registered"
)
_QUOTED = re.compile(r"['\"`](?P<name>[A-Za-z][\w.-]{3,79})['\"`]")
_WORD = re.compile(r"(?<![\w./-])[A-Za-z][\w-]{3,79}(?:\.[\w-]+){0,5}(?![\w/])")
# How like names are of which one is a slip of the other.
ALIKE = 0.87

TraceKind = Literal["setting", "sum", "path", "tested", "name"]


@dataclass(frozen=True, slots=True)
class ValueTrace:
    """Something that the failing line names, and where else it stands: the sentence's name and its values.

    `line` is the report's line of the other place; 0 where it stands in a file of the job's own. `key` is the
    setting that holds it, if one does.
    """

    kind: TraceKind
    values: Mapping[str, str]
    line: int = 0
    key: str = ""


def trace_values(assessment: Assessment) -> tuple[ValueTrace, ...]:
    """Give where else stands what the root's line and its statement name, the most telling first."""
    report = assessment.report
    root = report.root
    if root is None:
        return ()
    settings = assessment.settings
    found = (
        *_tested(root, settings),
        *_paths(root, assessment),
        *_names(root, assessment),
        *_numbers(root, settings),
    )
    return tuple(islice(found, MOST_TRACES))


def _tested(root: Event, settings: tuple[Setting, ...]) -> Iterator[ValueTrace]:
    """Give the settings that the failing statement reads by name, where the job's own code tests them."""
    own = own_call(root.frames)
    if own is None or own is not root.frames[-1]:
        return
    for name in map(canonical, named_in(own.code)):
        named = (item for item in settings if last_level(item.key) == name)
        if held := [item for item in named if 0 < len(item.value) < LONGEST_VALUE]:
            # As the job's own files have it, else as the log showed it last.
            yield _of_setting("tested", next((item for item in held if not item.line), held[-1]))


def _numbers(root: Event, settings: tuple[Setting, ...]) -> Iterator[ValueTrace]:
    spoken = canonical(root.body)
    numbers = list(dict.fromkeys(int(text) for text in _NUMBER.findall(root.body)))
    for whole in numbers:
        pair = next((pair for pair in combinations(numbers, 2) if sum(pair) == whole and min(pair) > 1), None)
        if whole >= LEAST_SUM and pair is not None:
            values = {"whole": str(whole), "first": str(pair[0]), "second": str(pair[1])}
            yield ValueTrace("sum", values)
    for number in numbers:
        if number < DISTINCTIVE:
            continue
        # One letter names nothing to a reader.
        held = [item for item in settings if item.value.strip("'\"") == str(number) and len(item.key) > 1]
        # What the message names with its value is no news.
        owners = {canonical(item.key): item for item in held if last_level(item.key) not in spoken}
        owners = {key: item for key, item in owners.items() if _is_telling(number, root, key)}
        if 0 < len(owners) <= MOST_OWNERS:
            yield from (_of_setting("setting", item) for item in owners.values())


def _is_telling(number: int, root: Event, key: str) -> bool:
    """Tell whether a number is not met by chance.

    A power of two or a round one is, unless the message speaks of the setting that has it.
    """
    if number & (number - 1) and number % 100:
        return True
    spoken = set(re.findall(r"[a-z]{3,}", root.body.lower()))
    return bool(spoken & set(re.findall(r"[a-z]{3,}", last_level(key).lower())))


def _of_setting(kind: TraceKind, item: Setting) -> ValueTrace:
    values = {"key": item.key, "value": item.value.strip("'\"")}
    return ValueTrace(kind, values, item.line, item.key)


def _names(root: Event, assessment: Assessment) -> Iterator[ValueTrace]:
    """Give the name that the log or a setting has in nearly the spelling of one that the line names."""
    if not _OF_NAMES.search(f"{root.exception} {root.body}"):
        return
    named = dict.fromkeys(match["name"] for match in _QUOTED.finditer(root.body))
    words: dict[str, int] = {}
    for line, text in sorted(assessment.report.texts.items()):
        if not _CALL.search(text):
            words |= dict.fromkeys(_WORD.findall(text), line)
    words |= {item.key: item.line for item in assessment.settings}
    # The attribute itself, as the failing statement reads it, is no other spelling.
    others = (word for word in words if word not in named and word.rpartition(".")[2] not in named)
    plain = {canonical(word).lower(): word for word in others}
    for name in islice(named, MOST_TRACES):
        low = canonical(name).lower()
        near = next(iter(get_close_matches(low, plain, n=1, cutoff=ALIKE)), "")
        # By spelling alone: not by a number, nor by an ending such as of a plural.
        is_longer = low != near and (low.startswith(near) or near.startswith(low))
        if near and not is_longer and _DIGITS.findall(low) == _DIGITS.findall(near):
            yield ValueTrace("name", {"given": name, "other": plain[near]}, words[plain[near]])


def _paths(root: Event, assessment: Assessment) -> Iterator[ValueTrace]:
    """Give the last path of the log that differs in one part from the one that the message is about."""
    if not _OF_PATHS.search(root.body):
        return
    report = assessment.report
    for path in dict.fromkeys(_PATH.findall(root.body)):
        for line, other in _other_paths(report, assessment.settings):
            parts = _differing(path, other)
            if parts is not None:
                values = {"path": path, "other": other, "part": parts[0], "instead": parts[1]}
                yield ValueTrace("path", values, line)
                return


def _other_paths(report: CrashReport, settings: tuple[Setting, ...]) -> Iterator[tuple[int, str]]:
    """Give the paths before the failing line with their lines, the nearest first."""
    root_line = report.root.line if report.root else 0
    first = report.root.traceback if report.root and report.root.traceback else root_line
    rows = [(line, text) for line, text in report.texts.items() if line < first and not _CALL.search(text)]
    rows += [(item.line, item.value) for item in settings if item.line < first]
    for line, text in sorted(rows, key=lambda row: row[0], reverse=True):
        yield from ((line, path) for path in _PATH.findall(text))


def _differing(path: str, other: str) -> tuple[str, str] | None:
    """Give the one part in which two paths differ, where it is the same but for number or spelling."""
    parts, others = path.strip("/").split("/"), other.strip("/").split("/")
    common = min(len(parts), len(others))
    differing = [(a, b) for a, b in zip(parts, others, strict=False) if a != b]
    if common < 3 or len(differing) != 1:
        return None
    here, there = differing[0]
    is_numbered = _DIGITS.sub("#", here) == _DIGITS.sub("#", there) and not here.isdecimal()
    is_spelled = canonical(here).lower() == canonical(there).lower()
    return (here, there) if is_numbered or is_spelled else None
