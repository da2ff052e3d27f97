"""Settings that do not go together, or must agree: by what a failing message says, or by the catalogue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from corpus.keys import canonical, last_level, pattern
from corpus.message import in_both
from corpus.schema import Change, Remedy, Scalar, SettingSpec
from ingest.logs.conditions import applies
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import Grounds, same
from service.remediation.framework_relations import settable_frameworks
from service.remediation.named_options import NamedOption
from service.remediation.ranking import ChangeGroup, is_situated
from service.remediation.rules.context import DependentSetting
from service.schemas.diagnosis import ProposedChange

_EXCLUSIVE = re.compile(
    r"(?i)mutually exclusive|\bbut not both|\bat most one of|\bonly one of|\bcannot both|\bnot allowed with"
    r"|\b(?:can(?:not|'t)|(?:must|should|do) not|don't) (?:be )?(?:used?|set|enabled?|combined?|"
    r"specif(?:y|ied)|given)\b.{0,60}\b(?:with|together|both|simultaneously|at the same time|at once)\b"
    r"|\b(?:not compatible|incompatible|conflicts?|not supported (?:together )?) with\b"
)
# What turns a switch off, or stands for nothing: such a setting excludes no other one.
_OFF = frozenset({"false", "0", "no", "none", "null", "off", ""})
# What a file of DeepSpeed says where the program that reads it fills in the value.
_BY_PROGRAM = "auto"
# Of three or more that a message names, it is not told which two do not go together.
PAIR = 2


def find_excluded(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the one of two settings that the root says do not go together which it names first.

    Both must be the job's own, and on: what the program adds by itself is nothing that the job can leave out.
    """
    root = report.root
    if root is None or not _EXCLUSIVE.search(root.body):
        return []
    named: dict[str, tuple[int, Setting]] = {}
    for setting in settings:
        if setting.value.strip("'\"").lower() in _OFF:
            continue
        found = re.search(rf"(?<![\w.]){pattern(last_level(setting.key))}(?![\w-])", root.body)
        if found is not None:
            named.setdefault(canonical(last_level(setting.key)), (found.start(), setting))
    both = [setting for _, setting in sorted(named.values(), key=lambda place: place[0])]
    return [NamedOption(both[0].key, both[0].value, excludes=both[1].key)] if len(both) == PAIR else []


def excluded(change: ProposedChange, spec: SettingSpec | None, grounds: Grounds) -> list[DependentSetting]:
    """Give what the job must turn off with a change that turns on what does not go with it."""
    if spec is None or not same("true", change.to):
        return []
    on = [key for key in spec.excludes if same("true", grounds.value(change.framework, key) or "")]
    return [DependentSetting(key, False, in_both("changes.one-of-two")) for key in on]


def with_matched(
    change: ProposedChange, also: Sequence[DependentSetting], grounds: Grounds
) -> list[DependentSetting]:
    """Give what follows a change, with what another framework's file must say as well, if it says anything.

    `also` follows the change in its own framework, and is matched too. What is left to the program there
    (`auto`) agrees by itself.
    """
    moved = [(change.framework, change.key, change.to)]
    moved += [(item.framework or change.framework, item.key, item.value) for item in also]
    wanted: dict[str, list[tuple[str, Scalar]]] = {}
    for framework, key, to in moved:
        spec = grounds.library.setting(framework, key, grounds.report.version(framework))
        for other in spec.matches if spec is not None else ():
            owner, _, name = other.partition(":")
            wanted.setdefault(owner, []).append((name, to))
    found, mine = list(also), settable_frameworks(grounds.report) if wanted else frozenset[str]()
    for owner, pairs in ((owner, pairs) for owner, pairs in wanted.items() if owner in mine):
        values = {name: grounds.value(owner, name) for name, _ in pairs}
        given = [value for value in values.values() if value is not None]
        if not given or any(value.strip("'\"").lower() == _BY_PROGRAM for value in given):
            continue
        text = in_both("changes.same-elsewhere")
        # What is not there is off.
        found += [
            DependentSetting(name, to, text, owner)
            for name, to in pairs
            if not same(values[name] or "false", to)
        ]
    return found


def speak_for_matched(change: Change, groups: Sequence[ChangeGroup], grounds: Grounds) -> None:
    """Let what the table says of a setting count for the group of another framework that it follows in."""
    if not isinstance(change, Remedy) or not applies(change.when, change.unless, grounds.view):
        return
    key = (change.framework, change.key)
    for group in groups:
        first, *others = group.changes
        if first.framework != change.framework and key in {(item.framework, item.key) for item in others}:
            group.situated |= is_situated(change.when)
            group.measure = group.measure or change.why.en
