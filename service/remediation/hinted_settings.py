"""The job's own settings that a failing message advises to change, or names as those at fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from corpus.frameworks import known_frameworks
from corpus.keys import canonical
from corpus.library import Library
from corpus.schema import SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import value_of
from service.remediation.framework_relations import fits_place, giving_setting, settable_frameworks
from service.remediation.message_hints import NamedSetting, Way, read_hints, read_phrases, read_words
from service.remediation.named_options import is_stray_command
from service.remediation.setting_values import number_of
from service.remediation.stated_rows import stated_rows

# A switch that only takes the check away is the last thing to try.
_OVERRIDE = re.compile(r"(?i)ALLOW_|SKIP_|IGNORE_|OVERRIDE|UNSAFE|NO_CHECK|DISABLE_\w*CHECK")
# A name of several words.
_JOINED = re.compile(r"[A-Za-z][_-][A-Za-z]")
# So many are given, and so far below the root may stand what it announces.
_MOST, _BELOW = 4, 3

_NONE_FITS = re.compile(r"(?i)\b(?:valid|allowed|supported|possible)\b[\w ]{1,60}(?:are|is)?: ?\[\]")


@dataclass(frozen=True)
class MessageHint:
    """A setting of the job that the failing message names, under the name that its version has for it.

    `is_checked` tells that the source names it where it tells of the failure; where the message says nothing
    of it, that is its `way`. `in_words` tells that no sign shows the words to be a name.
    """

    framework: str
    key: str
    spec: SettingSpec
    cause: str
    way: Way
    value: str = ""
    low: int | None = None
    high: int | None = None
    is_checked: bool = False
    in_words: bool = False

    @property
    def is_last_resort(self) -> bool:
        """Tell whether others should be tried first.

        What is only named, without bounds, what is named in words alone, and what takes a check away.
        """
        is_named = self.way in ("named", "checked")
        return (
            self.in_words or (is_named and self.low is self.high is None) or bool(_OVERRIDE.search(self.key))
        )

    @property
    def says_value(self) -> bool:
        """Tell whether the message itself names the value, or says that there should be none."""
        # Of `turn it off (x = False)` nobody can tell which of the two it means.
        return bool(self.value) is not (self.way == "off") and not self.is_last_resort

    def bound(self, now: str | None) -> int | None:
        """Give the bound that the job's value, or else the default, lies beyond; None where it is within."""
        known = now if now is not None else self.spec.default
        present = number_of(known, "float") if isinstance(known, (int, float, str)) else None
        if present is None:
            return None
        if self.high is not None and present > self.high:
            return self.high
        return self.low if self.low is not None and present < self.low else None


def hinted_changes(
    cause: str,
    report: CrashReport,
    library: Library,
    settings: Sequence[Setting] = (),
    checked: Sequence[str] = (),
) -> list[MessageHint]:
    """Give the settings that the messages of this cause advise, or name as those at fault, in their order.

    `checked` are names that the source reads where it tells of the root; of these, only what the job sets.
    """
    found: dict[tuple[str, str], MessageHint] = {}
    for row in stated_rows(cause, report):
        at_root = report.root is not None and 0 <= row.line - report.root.line <= _BELOW
        for advice in _worded(row.text, cause, report, library, settings):
            found.setdefault((advice.framework, advice.key), advice)
        is_blamed = at_root and "wrong-value" in library.causes[cause].messages_name
        for named in () if is_stray_command(row.text) else read_hints(row.text):
            for advice in _meant(named, cause, report, library, settings):
                if advice.way != "named" or is_blamed or _is_beyond(advice, settings):
                    _join(found, advice)
    # Of what a message speaks of in words it may list the values that fit: none.
    is_open = report.root is None or _NONE_FITS.search(report.root.body) is None
    for advice in _in_words(cause, report, library, settings) if is_open else ():
        found.setdefault((advice.framework, advice.key), advice)
    read = (advice for name in checked for advice in _checked(name, cause, report, library, settings))
    for advice in read:
        known = found.get((advice.framework, advice.key), advice)
        found[advice.framework, advice.key] = replace(known, is_checked=True)
    return sorted(found.values(), key=lambda advice: advice.is_last_resort)[:_MOST]


def _join(found: dict[tuple[str, str], MessageHint], advice: MessageHint) -> None:
    """Add what a sentence says of a setting to what those before it said."""
    before = found.get((advice.framework, advice.key))
    # What one sentence only names, a further one may say what to do with. A bound says it too.
    is_bare = before is not None and before.way == "named" and before.low is before.high is None
    if before is None or (is_bare and advice.way != "named"):
        found[advice.framework, advice.key] = advice
    elif before.way == advice.way and before.low is before.high is None:
        found[advice.framework, advice.key] = replace(before, low=advice.low, high=advice.high)


def _worded(
    message: str, cause: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[MessageHint]:
    """Give the settings that a message names in words alone."""
    for phrase in () if is_stray_command(message) else read_phrases(message):
        meant = (advice for named in phrase for advice in _meant(named, cause, report, library, settings))
        yield from islice(meant, 1)


def _in_words(
    cause: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[MessageHint]:
    """Give the settings that the root names in words, where a message of its cause blames what it names."""
    root = report.root
    if root is not None and "wrong-value" in library.causes[cause].messages_name:
        for phrase in read_words(root.body, library.is_setting):
            meant = (advice for named in phrase for advice in _meant(named, cause, report, library, settings))
            yield from (replace(advice, in_words=True) for advice in islice(meant, 1))


def _is_beyond(advice: MessageHint, settings: Sequence[Setting]) -> bool:
    """Tell whether the job's value lies beyond the bounds that a message gives."""
    values = [value_of(key, settings) for key in (advice.key, advice.key.rpartition(".")[2])]
    known = next((value for value in values if value is not None), advice.spec.default)
    now = number_of(known, "float") if isinstance(known, (str, int, float)) else None
    return now is not None and (
        (advice.low is not None and now < advice.low) or (advice.high is not None and now > advice.high)
    )


def _checked(
    name: str, cause: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[MessageHint]:
    """Give the setting that the job sets and that a name of the source means: all of it, or its end."""
    levels = name.split(".")
    # A plain word is as likely a variable as the setting of that name.
    endings = [".".join(levels[place:]) for place in range(len(levels))] if _JOINED.search(levels[-1]) else []
    for ending in endings:
        found = [
            advice
            for advice in _meant(NamedSetting(ending, "checked"), cause, report, library, settings)
            if value_of(advice.key, settings) is not None
        ]
        if found:
            yield from found
            return


def _meant(
    named: NamedSetting, cause: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[MessageHint]:
    """Give the job's own setting of that name."""
    mine = settable_frameworks(report)
    order = dict.fromkeys(
        (
            *(found.name for found in report.frameworks if found.name in mine),
            *sorted(mine),
            *known_frameworks().holding_variables,
        )
    )
    for framework in order:
        key = _key(framework, named.name, report, library, settings)
        spec = library.setting(framework, key, report.version(framework)) if key else None
        if spec is not None and fits_place(framework, key, report):
            given = giving_setting(spec.key, report, library)
            framework, key, spec = (given.framework, given.key, given) if given else (framework, key, spec)
            is_left_out = spec.type == "bool" or spec.default in (None, "")
            way = named.way if named.way != "denied" else "off" if is_left_out else "named"
            yield MessageHint(framework, key, spec, cause, way, named.value, named.low, named.high)
            return


def _key(
    framework: str, name: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> str:
    """Give the framework's key for a name.

    Its own, or the one key of a trainer that ends in the name of an engine's.
    """
    version = report.version(framework)
    spec = library.setting(framework, name, version)
    if spec is not None:
        return next(
            (
                key
                for key in (spec.key, *(alias.key for alias in spec.aliases))
                if canonical(key) == canonical(name)
            ),
            spec.key,
        )
    longer = set(library.keys_ending(framework, name))
    given = {canonical(setting.key) for setting in settings}
    used = {key for key in longer if canonical(key) in given}
    return next(iter(used or longer)) if len(used or longer) == 1 else ""
