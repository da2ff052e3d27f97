"""Arguments that a class or a function of a package refuses, and the job's own options that fill them.

The message names the argument (`num_workers`), and the job's own call says where its value is from:
`DataLoader(rows, num_workers=args.workers)`. What its user sets is that option. Where no catalogue knows what
a message names, the message itself tells that there is such an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from corpus.keys import canonical, flag, last_level
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own, own_call
from ingest.logs.stacks.statements import keywords_in
from service.remediation.feasibility import value_of
from service.remediation.hinted_settings import MessageHint
from service.remediation.named_options import NamedOption

# What a program's options are read from, and what holds the keys of its files.
_PARSED = re.compile(
    r"^(?:self\.)?(?:(?:\w{1,20}_)?args|opts?|flags|FLAGS|hparams|hp)\.(?P<name>[a-z]\w{0,60})$"
)
_FILED = re.compile(
    r"^(?:self\.)?(?:cfg|config|conf)(?P<path>(?:\.[a-z]\w{0,60}|\[['\"]\w{1,60}['\"]\]){1,4})$"
)
_LEVEL = re.compile(r"\w+")
# A name that a message marks as one, and what stands around it where it is an argument's.
_MARKED = re.compile(
    r"`(?P<code>(?:--)?[a-z]\w{1,60})(?: ?= ?[\w.'\"]{1,40})?`"
    r"|(?P<quote>['\"])(?P<quoted>(?:--)?[a-z]\w{1,60})(?P=quote)"
    r"|(?<![\w./-])(?P<bare>[a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?![\w./(]|\[)"
)
_BEFORE = re.compile(
    r"(?i)\b(?:arguments?|options?|parameters?|keywords?|settings?|set|pass|provide|specify|requires?|needs?"
    r"|either|both)(?: (?:a|an|the|both|either))?[ :]+$"
)
_BEHIND = re.compile(
    r"(?i),? (?:arguments?|options?|parameters?|keywords?|flags?|must|should|shall|has to|have to|needs? to"
    r"|cannot|can't|can only|could only|may only|is required|to be (?:set|given))\b"
)
# The same of what no quotes show to be a value.
_UNSET = re.compile(r"(?i) is not (?:set|specified|given|supported)\b")
_JOINED = re.compile(r"^,? (?:and|or|nor)(?: (?:a|an|the))? [`'\"]?$")
_LACKING = re.compile(
    r"(?i)\b(?:required?|requires|provide|specify|pass|missing|must be (?:set|given)|not (?:set|given))\b"
)
# Of more names nobody can say which is meant.
MOST_NAMES = 2


@dataclass(frozen=True)
class PassedOption:
    """An option by which the job fills an argument, with the value that the job is seen to give it."""

    key: str
    value: str | None


def passed_options(report: CrashReport, settings: Sequence[Setting]) -> Mapping[str, PassedOption]:
    """Give the option behind each argument of the job's own call that failed in an installed package."""
    root = report.root
    call = own_call(root.frames) if root is not None else None
    if root is None or call is None or is_own(root.frames[-1]):
        return {}
    found = {name: _option(source, settings) for name, source in keywords_in(call.code).items()}
    return {name: option for name, option in found.items() if option is not None}


def _option(source: str, settings: Sequence[Setting]) -> PassedOption | None:
    if match := _PARSED.match(source):
        key = match["name"]
    elif match := _FILED.match(source):
        key = ".".join(_LEVEL.findall(match["path"]))
    else:
        return None
    given = next((item.key for item in settings if canonical(item.key) == key), None)
    # Of a path below the file's top the job's files may show the end alone, or more than the code asks for.
    ends = {item.key for item in settings if last_level(item.key) == last_level(key)}
    if given is None and len(ends) == 1:
        given = ends.pop()
    named = given or (flag(key) if _PARSED.match(source) else key)
    return PassedOption(named, value_of(named, settings))


def options_behind(
    advice: Sequence[MessageHint], report: CrashReport, settings: Sequence[Setting]
) -> list[NamedOption]:
    """Give the job's own options for the arguments that the message names, with what they are to become."""
    passed = passed_options(report, settings)
    found = {}
    for item in advice if passed else ():
        name = canonical(last_level(item.key))
        option = passed.get(name)
        if option is not None and "." in item.key:
            bound = item.bound(option.value)
            found[option.key] = NamedOption(
                option.key,
                option.value,
                value=item.value or (None if bound is None else str(bound)),
                way=item.way if item.way in ("up", "down", "on", "off", "set") else "",
                argument=item.key,
            )
    return list(found.values())


def told_arguments(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the arguments that the root's message refuses by name; the job's own option where one fills it.

    The source that raised it is a witness that there is such an argument, so that no catalogue need know it.
    """
    root = report.root
    if root is None or not root.frames:
        return []
    called = {frame.function for frame in root.frames}
    names = [name for name in dict.fromkeys(_names_told(root.body)) if name not in called]
    passed = passed_options(report, settings)
    is_lacking = bool(_LACKING.search(root.body))
    return [
        NamedOption(passed[name].key, passed[name].value, required=is_lacking)
        if name in passed
        else NamedOption(name, value_of(name, settings), required=is_lacking)
        for name in (names if len(names) <= MOST_NAMES else [])
    ]


def _names_told(message: str) -> Iterator[str]:
    """Read the names of arguments: what stands around one says so, or that it goes with one."""
    marks = list(_MARKED.finditer(message))
    told = [
        bool(
            _BEFORE.search(message, 0, at.start())
            or _BEHIND.match(message, at.end())
            or (not at["quoted"] and _UNSET.match(message, at.end()))
        )
        for at in marks
    ]
    joined = [bool(_JOINED.match(message[one.end() : other.start()])) for one, other in pairwise(marks)]
    for place, is_joined in enumerate(joined):
        told[place + 1] |= told[place] and is_joined
    for place in reversed(range(len(joined))):
        told[place] |= told[place + 1] and joined[place]
    for match, is_told in zip(marks, told, strict=True):
        if is_told:
            yield match["code"] or match["quoted"] or match["bare"]
