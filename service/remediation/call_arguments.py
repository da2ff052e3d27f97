"""Options of the job's own program that fill an argument which a class or a function of a package refuses.

The message names the argument (`num_workers`), and the job's own call says where its value is from:
`DataLoader(rows, num_workers=args.workers)`. What its user sets is that option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpus.keys import canonical, flag, last_level
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own, own_call
from ingest.logs.stacks.statements import keywords_in
from service.remediation.feasibility import value_of
from service.remediation.message_hints import MessageHint
from service.remediation.named_options import NamedOption

# What a program's options are read from, and what holds the keys of its files.
_PARSED = re.compile(
    r"^(?:self\.)?(?:(?:\w{1,20}_)?args|opts?|flags|FLAGS|hparams|hp)\.(?P<name>[a-z]\w{0,60})$"
)
_FILED = re.compile(
    r"^(?:self\.)?(?:cfg|config|conf)(?P<path>(?:\.[a-z]\w{0,60}|\[['\"]\w{1,60}['\"]\]){1,4})$"
)
_LEVEL = re.compile(r"\w+")


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
