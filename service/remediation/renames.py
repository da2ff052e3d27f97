"""Names that the job's framework does not know.

The setting that was meant, by its history or by its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from corpus.keys import canonical, pattern, signs, unsigned
from corpus.library import Library, fits
from corpus.schema import SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.remediation.feasibility import value_of
from service.remediation.framework_relations import settable_frameworks
from service.remediation.named_options import NamedOption, is_stray_command
from service.remediation.own_names import own_names, signed_names, stands_for, written_like

# Facts of a message that there is no such setting: they hold its key, or the words that they quote.
_FIELDS = ("key", "argument", "reason", "name")
_KINDS = frozenset({"config_key", "config_error", "validation", "call"})
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w.-]*")
_KEY = re.compile(r"[+~]{0,2}[A-Za-z_][\w.@/-]*")
# A name that shares less than this with another one may as well be meant for something else; the second
# where the name is one of some versions only, and which of them runs is not known.
NEAR, NEARER = 0.75, 0.9
MOST = 3


@dataclass(frozen=True)
class Rename:
    """A key that the job sets in vain, and the name that its version has for it."""

    framework: str
    old: str
    spec: SettingSpec
    new: str
    known: bool
    value: str | None


def find_renames(report: CrashReport, library: Library, settings: Sequence[Setting]) -> list[Rename]:
    """Give the right names of the keys that the log calls unknown, as far as the catalogue has any."""
    found: dict[tuple[str, str], Rename] = {}
    for old in dict.fromkeys(_unknown_keys(report)):
        rename = next(_candidates(old, report, library, settings), None)
        if rename is not None:
            found.setdefault((rename.framework, rename.new), rename)
    for new in [] if found else signed_names(report):
        spec = SettingSpec(framework=_owner(report), key=new, type="any", spelled="hydra")
        rename = Rename(spec.framework, unsigned(new), spec, new, False, value_of(unsigned(new), settings))
        found[rename.framework, new] = rename
    return list(found.values())[:MOST]


def find_refused(
    report: CrashReport, settings: Sequence[Setting], known: Sequence[Rename]
) -> list[NamedOption]:
    """Give the keys that the job sets and a failing line refuses by name, without those of `known`."""
    told = {canonical(rename.old) for rename in known}
    texts = [event.body for event in _refusing(report)]
    keys = dict.fromkeys(setting.key for setting in settings if canonical(setting.key) not in told)
    return [
        NamedOption(key, value_of(key, settings), unknown=True)
        for key in keys
        if any(re.search(rf"(?:['\"`]|--){pattern(key)}(?![\w.-])", text) for text in texts)
    ][:MOST]


def _refusing(report: CrashReport) -> list[Event]:
    """Give the failing lines that call a key of the job unknown."""
    return [
        event
        for event in report.standing
        if "unknown-setting" in event.tells and not is_stray_command(event.body)
    ]


def _unknown_keys(report: CrashReport) -> Iterator[str]:
    """Give the keys as the failing lines name them; a full key stands for its last part."""
    refused = any("refused-override" in event.tells for event in report.standing)
    # Code that reads a key which the configuration lacks: nobody set it by a wrong name.
    read = () if refused else ("ConfigAttributeError",)
    events = [event for event in _refusing(report) if not event.exception.endswith(read)]
    lines = {event.line for event in events}
    texts = [
        str(fact.fields[name])
        for fact in report.facts
        if fact.kind in _KINDS and fact.line in lines
        for name in _FIELDS
        if name in fact.fields
    ]
    texts += [str(event.facts[name]) for event in events for name in _FIELDS if name in event.facts]
    full = [
        str(fact.fields["key"]) for fact in report.facts if fact.kind == "config_key" and "key" in fact.fields
    ]
    for text in texts:
        for key in _FLAG.findall(text) or ([text] if _KEY.fullmatch(text) else []):
            yield next((longer for longer in full if longer.endswith(f".{key}")), key)


def _candidates(
    old: str, report: CrashReport, library: Library, settings: Sequence[Setting]
) -> Iterator[Rename]:
    """Give what may have been meant: the same setting under its present name, then the most alike."""
    value = next((setting.value for setting in settings if canonical(setting.key) == canonical(old)), None)
    bare = unsigned(old)
    mine = settable_frameworks(report)
    order = dict.fromkeys((*(found.name for found in report.frameworks if found.name in mine), *sorted(mine)))
    # Where the version has it, something else is wrong.
    lacking = [name for name in order if library.setting(name, bare, report.version(name)) is None]
    for framework in lacking:
        known = next(_by_history(framework, bare, report.version(framework), library), None)
        if known is not None:
            yield Rename(framework, bare, known[0], known[1], True, value)
    if own := _by_own_names(old, report, settings):
        spec = SettingSpec(
            framework=_owner(report), key=own, type="any", spelled="flag" if signs(own) else "hydra"
        )
        yield Rename(spec.framework, bare, spec, own, False, value)
    for framework in lacking:
        near = _by_spelling(framework, bare, report.version(framework), library)
        if near is not None:
            yield Rename(framework, bare, near[0], near[1], False, value)


def _owner(report: CrashReport) -> str:
    """Name the framework that the job's own options count for, the first one that it configures."""
    mine = settable_frameworks(report)
    return next((found.name for found in report.frameworks if found.name in mine), "python")


def _by_own_names(old: str, report: CrashReport, settings: Sequence[Setting]) -> str:
    """Give the one name of the job's own program that is most like the wrong one, or the empty string."""
    names = [name for name in own_names(report, settings) if canonical(name) != canonical(old)]
    ranked = sorted(names, key=lambda name: _likeness(old, name), reverse=True)
    near = [name for name in ranked[:1] if _likeness(old, name) >= NEAR]
    found = near or [name for name in names if stands_for(old, name)]
    return written_like(found[0], old) if len(found) == 1 else ""


def _by_history(
    framework: str, old: str, version: str | None, library: Library
) -> Iterator[tuple[SettingSpec, str]]:
    """Find what the version calls the setting that had this name in another one."""
    spec = library.setting(framework, old)
    if spec is not None:
        yield from (
            (spec, name)
            for name in library.names(framework, old, version)
            if canonical(name) != canonical(old)
        )


def _by_spelling(
    framework: str, old: str, version: str | None, library: Library
) -> tuple[SettingSpec, str] | None:
    """Find the valid name that is most like the wrong one."""
    named = (
        (spec, name, NEARER if versions and version is None else NEAR)
        for spec in library.specs.values()
        if spec.framework == framework
        for name, versions in (
            (spec.key, spec.versions),
            *((alias.key, alias.versions) for alias in spec.aliases),
        )
        if fits(version, versions)
    )
    alike = ((_likeness(old, name), spec, name, least) for spec, name, least in named)
    near = [(likeness, spec, name) for likeness, spec, name, least in alike if likeness >= least]
    best = max(near, key=lambda row: (row[0], row[1].explained, row[2]), default=None)
    return best[1:] if best is not None else None


def _likeness(old: str, new: str) -> float:
    """Compare the last parts under the same parent, or the parents of the same last part: 0 to 1."""
    (parent, leaf), (other, last) = _parted(old), _parted(new)
    if parent == other:
        return _ratio(leaf, last)
    return _ratio(parent, other) if leaf == last and parent and other else 0.0


def _parted(name: str) -> tuple[str, str]:
    parent, _, leaf = canonical(name).rpartition(".")
    return parent, leaf


def _ratio(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= NEAR and matcher.quick_ratio() >= NEAR else 0.0
