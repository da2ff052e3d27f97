"""Values of the job program's own settings that follow from the numbers of a failing message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, last_level
from corpus.library import Library
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.divisions import divisor_below, multiple_below, shared_divisor
from service.remediation.feasibility import value_of
from service.remediation.framework_relations import settable_frameworks
from service.remediation.message_hints import NamedSetting, read_hints
from service.remediation.named_options import NamedOption, closest
from service.remediation.ranking import ChangeGroup
from service.remediation.setting_values import is_guidance

# A division that a check finds to leave a rest: both numbers stand behind their names, or the first one at
# the end, behind what says that it was given.
_DIVIDED = re.compile(
    r"(?i)(?P<whole>[\w .`'\"-]{2,80}?)[ (=:]*(?P<number>\d{1,9})?\)? "
    r"(?:must be|should be|has to be|needs to be|is not|not) (?:evenly |exactly )?"
    r"(?:divisible by|an? (?:\w{1,12} )?multiple of) "
    r"(?P<part>[\w .`'\"-]{0,60}?)[ (=:]*(?P<by>\d{1,9})\b\)?(?P<rest>.{0,80})"
)
# What the second number is multiplied by: `micro batch size (4) times data parallel size (2)`.
_TIMES = re.compile(
    r"\s*(?:times|multiplied by|[*x×])\s*(?P<part>[\w .`'\"-]{0,60}?)[ (=:]*(?P<by>\d{1,9})\b\)?"
)
_GIVEN = re.compile(r"(?i)\b(?:got|found|given|was|is|=):? ?(?P<number>\d{1,9})\b")
# What a model's own configuration or the launcher fixes is nothing to set, nor is an object's attribute.
_FIXED = re.compile(
    r"(?i)max_position|model_max_len|vocab_?size|hidden_?size|head_dim|world_size|^is_|\."
    r"|(?:^|_)(?:n|num)_\w*(?:heads?|layers?|experts?|groups?)$"
)
_LAST_NAME = re.compile(r"(?P<name>--[A-Za-z][\w-]{1,60}|[A-Za-z][A-Za-z0-9]*_\w{1,60})[`'\"]?\W*$")
_SIZE_IN_WORDS = re.compile(
    r"(?i)\b(?P<name>(?:(?:tensor|pipeline|sequence|context|expert|data|model|parallel|ulysses|micro|mini"
    r"|batch|group|[tpsce]p)[ -]){1,4}size)\W*$"
)
_WORDS = re.compile(r"[\s`'\"-]+")
# A reference that leads nowhere: omegaconf/base.py, Container._resolve_node_interpolation.
_DANGLING = re.compile(r"\bInterpolation key '(?P<missing>[\w.]{1,160})' not found")


def own_values(report: CrashReport, library: Library, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the program's own settings that the root refuses by number, with the value that it asks for.

    What a framework of the job has is left to its rules.
    """
    root, mine = report.root, settable_frameworks(report)
    own = [setting for setting in settings if not any(library.setting(name, setting.key) for name in mine)]
    if root is None:
        return []
    hints = read_hints(root.body)
    bounds = (_within(named, own) for named in hints) if own else ()
    found = [
        *_referring(root.body, settings),
        *_divided(root.body, own),
        *(option for option in bounds if option),
    ]
    if not found and not mine & library.keys.keys() - known_frameworks().common:
        found += [*_divisors(root.body, settings), *_told(hints, settings)]
    return list({canonical(option.key): option for option in reversed(found)}.values())[::-1]


def divided_values(report: CrashReport, library: Library, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the program's own settings by whose very numbers a division leaves a rest, as the root tells."""
    mine = settable_frameworks(report)
    own = [setting for setting in settings if not any(library.setting(name, setting.key) for name in mine)]
    return list(_divided(report.root.body, own)) if report.root is not None else []


def with_divisors(groups: list[ChangeGroup], report: CrashReport) -> list[ChangeGroup]:
    """Give the changes of settings that must divide a number of the message with the largest that does."""
    message = report.root.body if report.root is not None else ""
    for match in _DIVIDED.finditer(message):
        number, by, name = _count(match["number"]), int(match["by"]), _option_at_end(match["part"])
        for group in groups if number and name and by and number % by else ():
            change = group.changes[0]
            if canonical(last_level(change.key)) == name and is_guidance(change.to):
                update = {"to": shared_divisor(number or 0, by), "status": "verified"}
                group.changes[0] = change.model_copy(update=update)
    return groups


def advised_flags(report: CrashReport, library: Library, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the flags that the root's message says to use, where no framework's program can be meant."""
    mine = settable_frameworks(report)
    if report.root is None or mine & library.keys.keys() - known_frameworks().common:
        return []
    hints = [named for named in read_hints(report.root.body) if named.name.startswith("--")]
    return list(_told(hints, settings))


def _referring(message: str, settings: Sequence[Setting]) -> Iterator[NamedOption]:
    """Give the settings whose value refers to a key that the configuration has under another name."""
    for match in _DANGLING.finditer(message):
        missing = match["missing"]
        near = closest(missing, [setting.key for setting in settings if setting.spelled == "yaml"])
        for setting in settings if near else ():
            if f"${{{missing}}}" in setting.value:
                value = setting.value.replace(f"${{{missing}}}", f"${{{near}}}")
                yield NamedOption(setting.key, setting.value, value=value)


def _divisors(message: str, settings: Sequence[Setting]) -> Iterator[NamedOption]:
    """Give what divides where the message alone names both numbers.

    Of a model's heads only the divisor is free.
    """
    for match in _DIVIDED.finditer(message):
        whole, part = _option_at_end(match["whole"]), _option_at_end(match["part"])
        number, by = _count(match["number"]), int(match["by"])
        # Of the job's own settings with that name, other values speak of another thing.
        is_own = any(name and value_of(name, settings) is not None for name in (whole, part))
        if is_own or number is None or by < 1 or number < 1 or number % by == 0:
            continue
        if whole:
            yield NamedOption(whole, str(number), value=str(multiple_below(number, by)))
        if part:
            # What divides the present one too comes first, as the cards were chosen for it.
            yield NamedOption(part, str(by), value=str(shared_divisor(number, by)))


def _option_at_end(words: str) -> str:
    """Give the option that a part of a sentence ends with, also where it is a size told in words."""
    if found := _LAST_NAME.search(words):
        name = found["name"]
    else:
        spelled = _SIZE_IN_WORDS.search(words)
        name = _WORDS.sub("_", spelled["name"].lower()) if spelled else ""
    return "" if _FIXED.search(name) else name


def _told(hints: Sequence[NamedSetting], settings: Sequence[Setting]) -> Iterator[NamedOption]:
    """Give the options that a message of a program says to move, where no line shows whose program it is."""
    for named in hints:
        limit = named.low if named.way == "up" else named.high if named.way == "down" else None
        if named.way in ("up", "down", "on", "off", "set") and not _FIXED.search(named.name):
            value = named.value or ("" if limit is None else str(limit))
            yield NamedOption(named.name, value_of(named.name, settings), value=value or None, way=named.way)


def _divided(message: str, own: Sequence[Setting]) -> Iterator[NamedOption]:
    """Give the multiple below what must be divided, and the divisor below each number that must divide it."""
    for match in _DIVIDED.finditer(message):
        given = match["number"] or ((got := _GIVEN.search(match["rest"])) and got["number"])
        whole, factors = _named(match["whole"], own), list(_factors(match))
        number = _count(given or (whole.value if whole else None))
        by = prod(int(factor["by"]) for factor in factors)
        if number is None or by < 1 or number % by == 0:
            continue
        if whole is not None and _count(whole.value) == number:
            yield NamedOption(whole.key, whole.value, value=str(multiple_below(number, by)))
        for factor in factors:
            part, now = _named(factor["part"], own), int(factor["by"])
            rest, left = divmod(number, by // now)
            if part is not None and _count(part.value) == now and rest > 0 and not left:
                yield NamedOption(part.key, part.value, value=str(divisor_below(rest, now)))


def _factors(divided: re.Match[str]) -> Iterator[re.Match[str]]:
    """Give the number that must divide, and those that it is multiplied by, each behind its name."""
    yield divided
    begin = divided.start("rest")
    while (further := _TIMES.match(divided.string, begin)) is not None:
        yield further
        begin = further.end()


def _within(named: NamedSetting, own: Sequence[Setting]) -> NamedOption | None:
    """Give the bound of a message that the job's own value lies beyond."""
    setting = _named(named.name, own)
    now = _count(setting.value) if setting else None
    if setting is None or now is None:
        return None
    if named.low is not None and now < named.low:
        return NamedOption(setting.key, setting.value, value=str(named.low))
    if named.high is not None and now > named.high:
        return NamedOption(setting.key, setting.value, value=str(named.high))
    return None


def _named(words: str, own: Sequence[Setting]) -> Setting | None:
    """Give the one setting whose name ends a part of a sentence: `the batch size`, `cfg.batch_size`."""
    text = f"_{canonical(_WORDS.sub('_', words.strip().lower())).strip('_').replace('.', '_')}"
    found = {
        canonical(setting.key): setting
        for setting in own
        if text.endswith(f"_{last_level(setting.key).lower()}")
    }
    longest = max((len(last_level(key)) for key in found), default=0)
    best = [setting for key, setting in found.items() if len(last_level(key)) == longest]
    return best[0] if len(best) == 1 else None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,9}", text) else None
