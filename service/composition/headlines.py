"""What a headline says behind a title: the facts of the failing line, or what that line itself says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import Formatter

from corpus import driver_events
from corpus.frameworks import known_frameworks
from corpus.library import Library
from corpus.outcomes import told_signal
from corpus.schema import Language
from ingest.logs.events import Event
from ingest.logs.facts import Fact
from ingest.logs.lines import message_of, parse_line
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import own_call
from service.composition.evidence import ANNOUNCED, announced_rows
from service.composition.failure_text import ranks_in_words
from service.composition.message_forms import LONGEST, field_value, place_of
from service.composition.phrases import phrase

# What fills blanks besides a fact's own fields.
ADDED_BLANKS = frozenset({"silent", "signal_name", "meaning"})
# So many characters of a message a headline quotes; a longer one is cut behind a sentence or a part of one.
QUOTED = 140
# What is shorter says nothing of its own.
LEAST = 12

# What stands before a message and is none of it: a logger's level, an exception's type, a program's name
# before its error, the place in a source that a warning or an error came from, `what():` of C++, a place in
# brackets, a script of whose line a shell tells.
_BEFORE = re.compile(
    r"\S{1,400}:\d{1,9}: (?=\w{0,60}Warning: )|"
    r"\S{1,400}: (?=line \d{1,9}: )|"
    r"(?:[\w ]{1,40} )?(?:in|at):? \S{1,300}\.(?:c|cc|cpp|cu|cuh|h|hpp|py|rs):\d{1,9} ?[,:] +|"
    r"(?i:(?:[\w.-]{1,80}: )?(?:value )?(?:error|warning|fatal|critical|exception)[:,]\s+)|what\(\):\s*|"
    r"(?:(?:\w{1,60}\.)+_?[A-Z]\w{0,60}|\w{0,60}(?:Error|Exception|Warning|Interrupt|Exit|Fault)):\s+|"
    r"\[[^\[\]\n]{1,200}\][\s.:-]*"
)
# What a connection failed of: the innermost of the exceptions that urllib3 prints one in another.
_CAUSED_BY = re.compile(
    r"ConnectionPool\(host='(?P<host>[^'\n]{1,200})', port=(?P<port>\d{1,5})\)[^\n]{0,500}?"
    r"\(Caused by \w{1,60}\(['\"]?(?:<[^<>\n]{1,200}>|HTTPS?Connection\([^()\n]{1,200}\))(?:, ['\"]|: )"
    r"(?P<why>[^\"\n]{8,300}?)(?:['\"]\)|$)"
)
# What tells one job from another: numbers, paths, quoted texts, names in code.
_SPECIFIC = re.compile(r"\d|(?<!\w)['\"`]\w|\w/\w|[a-z]_[a-z]|[a-z][A-Z]|\w\.\w|::|--\w")
_SENTENCE = re.compile(r"[.!?](?=\s+[A-Z])|[。！？；]")
_PART = re.compile(r"[,;:](?=\s)|\s(?=[(\[{])|[，、：]")
_LONG_PATH = re.compile(r"(?<![\w.:/-])/[^\s'\"/]+(?:/[^\s'\"/]+){2,}/(?P<name>[^\s'\"/]+/[^\s'\"/]+)")
_END = " .。:,;"
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
# A heading that counts what the rows below it tell: "2 validation errors for TrainConfig".
_COUNTED = re.compile(r"\b\d{1,4} (?:[a-z]{1,30} )?errors? (?:for|in) [\w.]{1,100}$")
# What a checker tells of itself behind a reason: `[type=value_error, input_value=...]`.
_OF_THE_CHECK = re.compile(r"\s*\[type=\w{3,40}, input_value=.*$|\s*\(type=\w{3,40}_error[^)]*\)$")
_LAST_BRACKETS = re.compile(r"\s*[(（](?P<within>[^()（）]+)[)）]$")
_NO_NAME = re.compile(r"[^a-z0-9]+")
# A name, and what its framework does: "verl update".
_WORDS_OF_NAME = 2


def facts_in_words(report: CrashReport, events: Sequence[Event], library: Library, language: Language) -> str:
    """Say what the root or an event of the same failure states, by the most exact row of the table.

    Empty where no row of the table has its blanks filled.
    """
    stated = [
        (event, fact, dict(_values(fact, event, language)))
        for event in events
        for fact in report.facts
        if fact.line == event.line
    ]
    for row in library.fact_headlines:
        blanks = {name for _, name, _, _ in Formatter().parse(row.says.en) if name}
        for event, fact, values in stated:
            if row.kind == fact.kind and row.cue in event.text and blanks <= values.keys():
                return row.says.to(language).format(**values)
    return ""


def without_names(title: str) -> str:
    """Give a title without the words in brackets at its end that only tell whose it is."""
    found = _LAST_BRACKETS.search(title)
    words = found["within"].lower().split() if found is not None else []
    if found is None or len(words) > _WORDS_OF_NAME:
        return title
    names = (_NO_NAME.sub("", name) for name in known_frameworks().rows)
    is_name = _NO_NAME.sub("", words[0]).startswith(tuple(names))
    return title[: found.start()] if is_name else title


def _values(fact: Fact, event: Event, language: Language) -> Iterator[tuple[str, str]]:
    for name, value in fact.fields.items():
        told = field_value(name, value).replace("`", "'").strip()
        if told and len(told) <= LONGEST and told.isprintable():
            yield name, told
    if event.silent:
        yield "silent", ranks_in_words(event.silent)
    if killed_by := told_signal(fact.fields):
        yield "signal_name", killed_by
    if fact.kind in driver_events.KINDS and (
        known := driver_events.load().of(fact.kind, fact.fields.get("code"))
    ):
        yield "meaning", known.title.to(language)


def quoted(message: str, title: str, *, is_general: bool) -> str:
    """Give what a failing line says, short enough for a headline and without its exception's type.

    Empty where it says no more than the title. What names nothing of this job is quoted only behind a title
    that `is_general`. Cut behind a sentence or a part of one, so that no number and no name is cut.
    """
    said = message_of(message)
    if (caused := _CAUSED_BY.search(said)) is not None:
        at = "" if caused["host"] in caused["why"] else f"{caused['host']}:{caused['port']}: "
        said = at + caused["why"]
    while (before := _BEFORE.match(said)) is not None:
        said = said[before.end() :]
    said = " ".join(said.split())
    # Python prints what a `KeyError` was given with marks around it.
    if len(said) > 2 and said[0] in "'\"" and said.find(said[0], 1) == len(said) - 1:
        said = said[1:-1]
    said = _cut(said).replace("`", "'")
    is_telling = is_general or _SPECIFIC.search(said) is not None
    return said if is_telling and len(said) >= LEAST and said.lower() not in title.lower() else ""


def announced(root: Event, report: CrashReport) -> str:
    """Give the row below a failing line that ends in a colon or counts what is wrong; empty for none.

    Such a line names a class of trouble, and the rows below say what it is. The bullet of a row is left out.
    """
    said = root.body.rstrip()
    if _COUNTED.search(said):
        return _first_counted(root, report)
    return next(iter(announced_rows(root, report, 1)), "")


def _first_counted(root: Event, report: CrashReport) -> str:
    """Give the first reason below a heading that counts them, behind the field that stands above it."""
    rows = [
        parse_line(report.texts.get(root.line + below, "").encode(), root.line + below).body
        for below in (1, 2)
    ]
    field = ""
    if rows[0].strip() and not rows[0][0].isspace():
        field, rows = rows[0].strip(), rows[1:]
    found = ANNOUNCED.match(rows[0])
    if found is None:
        return ""
    reason = _OF_THE_CHECK.sub("", found["row"]).strip()
    return f"{field}: {reason}" if field else reason


def is_specific(headline: str) -> bool:
    """Tell whether a headline names something of this job: a number, a path, a name in code."""
    return _SPECIFIC.search(headline) is not None


def whereabouts(root: Event, language: Language) -> str:
    """Say which ranks, or which process, said the root's line and in which call of the job's it was raised.

    It stands behind a title whose message says nothing of its own; empty where neither is known.
    """
    frame = own_call(root.frames)
    ranks = root.ranks or ((int(root.rank),) if root.rank.isdecimal() else ())
    # A stream without a number, such as `raylet`, is every job's.
    is_own = _SPECIFIC.search(root.source) and root.source.isprintable() and len(root.source) <= LONGEST
    who = root.source.replace("`", "'") if is_own else ""
    parts = (
        phrase("headline-ranks", language, ranks=ranks_in_words(ranks)) if ranks else who,
        place_of(frame) if frame is not None else "",
    )
    return ("，" if language == "zh" else ", ").join(filter(None, parts))


def _cut(text: str) -> str:
    ends = (found.start() for found in _SENTENCE.finditer(text, 0, QUOTED + 1))
    # The first sentence says it; what follows advises.
    end = next((end for end in ends if end > LEAST), None)
    if end is not None:
        return text[:end]
    if len(text) > QUOTED:
        # Of a path that is longer than a headline its end tells which it is.
        text = _LONG_PATH.sub(r"…/\g<name>", text)
    if len(text) <= QUOTED:
        return text.rstrip(_END)
    # A part that ends amid brackets would cut a shape or a list.
    parts = [
        found.start()
        for found in _PART.finditer(text, QUOTED // 3, QUOTED)
        if all(
            text.count(begin, 0, found.start()) == text.count(end, 0, found.start()) for begin, end in _PAIRS
        )
    ]
    at = parts[-1] if parts else text.rfind(" ", 0, QUOTED)
    return f"{text[:at].rstrip(_END)}…" if at > 0 else ""
