"""Settings that the failing message says to set, and to what, which no catalogue has.

What a program tells of its own option is proof enough that there is one: `Please set use_cache=False`, or
`use 'type: chat'` below the field that a validator names. What is catalogued has its way in
`hinted_settings`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, last_level
from corpus.library import Library
from corpus.message import in_both, words
from corpus.schema import Language
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import same
from service.remediation.framework_relations import settable_frameworks
from service.remediation.message_hints import NamedSetting, read_hints
from service.remediation.named_options import NamedOption, is_stray_command
from service.remediation.own_names import own_option
from service.remediation.stated_rows import StatedRow, stated_rows
from service.schemas.diagnosis import ProposedChange

# What takes a check away is the last thing to try, and what says where programs and packages come from is
# set on no message's word.
_NOT_FIRST = re.compile(
    r"(?i)ALLOW_|SKIP_|IGNORE_|OVERRIDE|UNSAFE|NO_CHECK|^PIP_|PROXY|PYTHONPATH|^PATH$|GIT_SSH|^LD_|"
    r"ENDPOINT|(?:^|[_.-])(?:URL|URI|HOST|ADDR|ADDRESS|SERVER|KEY|TOKEN|SECRET|PASSWORD)$|VERIFY|SSL|TLS|"
    r"TRUST|REMOTE|DELETE|REMOVE|PURGE|CLEAN|FORCE|OVERWRITE|EXEC|COMMAND|SHELL"
)
# An address, or a host's name: where a job talks to is set on no message's word.
_ADDRESS = re.compile(r"://|^(?:[\w-]+\.){1,8}[A-Za-z]{2,12}(?::\d+)?(?:/|$)|^\d{1,3}(?:\.\d{1,3}){3}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_OF_FILES = frozenset({"yaml", "json", "toml", "ini"})
# What is only for who wants something else than the job does.
_OPTIONAL = re.compile(r"(?i)\bif you (?:want|wish|prefer|would like)\b[^.]*\.?")
_SET = frozenset({"set", "on", "off"})
MOST = 2


def stated_settings(
    cause: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> list[NamedOption]:
    """Give the settings that a row of the failing message says to set to a value, the first ones of them."""
    found: dict[str, NamedOption] = {}
    for row in stated_rows(cause, report):
        for named in _set_in(_OPTIONAL.sub("", row.text)):
            for option in _options(named, row, report, settings):
                if not _is_catalogued(option.key, report, library):
                    found.setdefault(canonical(option.key), option)
    return list(found.values())[:MOST]


def _set_in(text: str) -> Iterator[NamedSetting]:
    """Give what a sentence says to set to a value, or to turn on or off."""
    for named in () if is_stray_command(text) else read_hints(text):
        if named.way in _SET and not (_NOT_FIRST.search(named.name) or _ADDRESS.search(named.value)):
            yield named


def _options(
    named: NamedSetting, row: StatedRow, report: CrashReport, settings: Sequence[Setting]
) -> Iterator[NamedOption]:
    """Give what a hint makes of a setting, under the job's own key for it where it has one."""
    is_switch = named.name.startswith("--") or own_option(named.name, report) == "switch"
    value = named.value or (str(named.way != "off") if is_switch or named.way in ("on", "off") else "")
    if not named.value and is_variable(named.name) and not _is_given(named.name, settings):
        if named.way != "on":
            # What the message misses, or has without the job's files showing it.
            yield NamedOption(named.name, required=named.way == "set", removed=named.way == "off")
        return
    if not value or not (named.value or is_switch or _is_given(named.name, settings)):
        return
    alike = {item.key: item for item in settings if last_level(item.key) == last_level(canonical(named.name))}
    within = {key: item for key, item in alike.items() if not row.field or row.field in key}
    own = next(iter(within.values())) if len(within) == 1 else None
    if own is not None and own.spelled == "dump" and named.name.startswith("--"):
        own = None  # the message wants the option, whatever code falls back to
    key = own.key if own is not None else f"{row.field}.{named.name}" if row.field else named.name
    if own is not None and same(own.value, value):
        return
    line = report.place(row.line).line
    yield NamedOption(
        key,
        own.value if own is not None else None,
        value=value,
        why=in_both("changes.stated", line=line),
        proves=True,
    )


def stated_already(
    cause: str, report: CrashReport, library: Library, settings: Sequence[Setting], language: Language
) -> tuple[str, ProposedChange] | None:
    """Give a setting that a file of the job has as the message asks for it, and a change that says so.

    Who set it otherwise for the run is to be sought, or the file was edited since.
    """
    for row in stated_rows(cause, report):
        for named in () if is_stray_command(row.text) else read_hints(row.text):
            level = last_level(canonical(named.name))
            alike = [item for item in settings if last_level(item.key) == level]
            is_asked = named.way in _SET and bool(named.value)
            if is_asked and alike and all(same(item.value, named.value) for item in alike):
                if not alike[0].file or alike[0].spelled not in _OF_FILES:
                    continue
                told = {"file": alike[0].file, "name": named.name, "value": named.value}
                mine = sorted(settable_frameworks(report))
                return level, ProposedChange(
                    framework=next((name for name in mine if library.setting(name, alike[0].key)), "python"),
                    kind="setting",
                    key=alike[0].key,
                    to=words("changes.stated-there", language, **told),
                    why=words("changes.stated", language, line=report.place(row.line).line),
                    status="unverified",
                )
    return None


def _is_given(name: str, settings: Sequence[Setting]) -> bool:
    return any(last_level(item.key) == last_level(canonical(name)) for item in settings)


def _is_catalogued(key: str, report: CrashReport, library: Library) -> bool:
    """Tell whether a framework of the job has the setting, or a key that ends in it."""
    owners = (*settable_frameworks(report), *known_frameworks().holding_variables)
    return any(library.setting(name, key) or library.keys_ending(name, key) for name in owners)


def is_variable(key: str) -> bool:
    """Tell whether a name is written as a variable of the environment."""
    return _VARIABLE.fullmatch(key) is not None
