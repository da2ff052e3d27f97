"""Whether a change can be one of this very job.

The simplest checks, run for every candidate before any is ranked.

A setting must exist for the program that ran, at a version that the job's other settings allow, and its value
must be another than the present one, or than the default where the job sets none. What a rule computes from
the log's numbers is checked by `rules/`; what a person or a scheduler forbids stands as conditions in the
corpus.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from corpus.condition_nodes import compare
from corpus.expressions import compiled
from corpus.frameworks import JobComponent, cued_frameworks, known_frameworks
from corpus.keys import canonical, is_distinctive, last_level, unsigned
from corpus.library import Library, fits
from corpus.message import Message
from corpus.schema import Program, SettingSpec
from corpus.version_ranges import overlap
from ingest.configfiles.remarks import without_remarks
from ingest.logs.conditions import ReportView, holds
from ingest.logs.configs.handed_keys import argument_levels
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from service.remediation.anchors import names_package, rank_starters
from service.remediation.framework_relations import runs, shown_frameworks
from service.remediation.reach import lacks_call
from service.schemas.diagnosis import Dropped, ProposedChange

ALREADY = "changes.job-value"
DEFAULT = "changes.default"


_OTHERWISE = re.compile(r"\$\{\w+:?-(?P<value>[^{}]*)\}")
# How a program names the switch of a framework that it may run with, and the values by which it is off.
_SWITCHES = ("{}", "use_{}", "enable_{}", "with_{}")
_OFF = frozenset({"false", "none", "null", "0", "", "[]", "no", "off"})
# Of so many names that a framework has, a print shows them all.
WHOLE_LIST = 80
_PRINTABLE = frozenset({"flag", "hydra", "yaml"})
# What a flag is called by that turns another name off or on.
_SWITCHING = re.compile(r"^(?:no|disable|enable|use)_")


@dataclass(frozen=True)
class Grounds:
    """What is known of the job that a change is for: its output, its files, and the values that it sets."""

    report: CrashReport
    library: Library
    settings: Sequence[Setting]

    @cached_property
    def commands(self) -> dict[str, frozenset[str]]:
        """The programs that the job shows, by framework.

        A framework that only its launch names has no command.
        """
        found: dict[str, set[str]] = {}
        for program, command in self._ran:
            found.setdefault(program.framework, set()).update({command} - {""})
        # What extends a framework runs it by programs of its own.
        known, seen = known_frameworks(), shown_frameworks(self.report)
        extended = {other for name in seen for other in known.row(name).extends}
        return {name: frozenset() if name in extended else frozenset(ran) for name, ran in found.items()}

    def lacking(self, framework: str, key: str) -> str:
        """Name the programs of the job that read a framework's settings, where none of them reads this one.

        What extends a framework reads its settings by programs of its own.
        """
        known = known_frameworks()
        extending = {name for name in self.frameworks if framework in known.row(name).extends}
        readers = [(program, command) for program, command in self._ran if program.framework in extending]
        readers = readers or [each for each in self._ran if each[0].framework == framework]
        if any(not program.takes or compiled(program.takes).search(unsigned(key)) for program, _ in readers):
            return ""
        return ", ".join(sorted({command for _, command in readers}))

    @cached_property
    def _ran(self) -> tuple[tuple[Program, str], ...]:
        keys = "\n".join(setting.key for setting in self.settings)
        return tuple(_programs((*_texts(self.report), keys)))

    @cached_property
    def root_calls(self) -> tuple[str, ...]:
        """The failing line and its calls."""
        root = self.report.root
        return () if root is None else (root.text, *map(str, root.frames))

    @cached_property
    def frameworks(self) -> frozenset[str]:
        """The frameworks that the job runs, as its log, its command and its files show them."""
        return shown_frameworks(self.report) | self.commands.keys()

    def hands_on(self, key: str, to: object) -> bool:
        """Tell whether a file of the job's has a value by the name of a library's argument.

        Its code hands the argument on from there; a switch by a plain name may be of another thing.
        """
        if isinstance(to, bool) or same("true", to) or same("false", to):
            return False
        alike = (item for item in self.settings if last_level(item.key) == last_level(key))
        return any(same(item.value, to) for item in alike)

    def takes(self, framework: str, key: str) -> bool:
        """Tell whether the job reads a setting of a framework, which may show by the failure alone."""
        if self.is_off(framework):
            return False
        spec = self.library.setting(framework, key, self.report.version(framework))
        if runs(framework, key, spec.read_by if spec else "", self.frameworks):
            return True
        # Of what starts a job it uses one: beside another one that shows, none is guessed.
        is_open = self.frameworks.isdisjoint(known_frameworks().places)
        return (
            is_open and spec is not None and any(holds(condition, self.view) for condition in spec.implied_by)
        )

    def is_off(self, framework: str) -> bool:
        """Tell whether the run printed that it goes without a framework: `use_deepspeed=False`.

        Its code names the framework all the same. Of several runs in one output the last one counts.
        """
        names = {switch.format(canonical(framework)) for switch in _SWITCHES}
        told = [
            setting.value.strip("'\"").lower()
            for setting in self.report.settings
            if setting.line and setting.spelled == "dump" and last_level(setting.key) in names
        ]
        is_called = any(framework in cued_frameworks(call) for call in self.root_calls)
        return bool(told) and told[-1] in _OFF and not is_called

    def prints_without(self, spec: SettingSpec) -> bool:
        """Tell whether the run printed all of a framework's settings, and this one is none of them."""
        if spec.spelled not in _PRINTABLE:
            return False
        printed = self._printed.get(spec.framework, frozenset())
        names = (spec.key, *(alias.key for alias in spec.aliases))
        leaves = {last_level(unsigned(name)) for name in names}
        leaves |= {_SWITCHING.sub("", leaf) for leaf in leaves} | set(spec.called)
        return len(printed) >= WHOLE_LIST and leaves.isdisjoint(printed)

    @cached_property
    def _printed(self) -> dict[str, frozenset[str]]:
        """The names of the last level that the run printed, by the framework that reads settings so."""
        names = {
            last_level(unsigned(setting.key))
            for setting in self.report.settings
            if setting.line and setting.spelled == "dump"
        }
        found = {}
        for name in self.frameworks if len(names) >= WHOLE_LIST else ():
            known = self.library.keys.get(name, ())
            own = {last_level(unsigned(key)) for key in known if known_frameworks().row(name).prints_all}
            found[name] = frozenset(names) if len(names & own) >= WHOLE_LIST else frozenset()
        return found

    @cached_property
    def view(self) -> ReportView:
        """What conditions are held against, the settings of the job's files among it."""
        return self.report.view_with(self.settings)

    @cached_property
    def rank_starters(self) -> frozenset[str]:
        """The programs that may have started the job's ranks."""
        return rank_starters(self.commands.keys(), self.report)

    def told_versions(self, framework: str) -> Iterator[tuple[str, str]]:
        """Give the job's settings of the framework, with the versions that know them by that name."""
        others = self.library.keys.keys() - {framework}
        for name in self._names:
            spec = self.library.setting(framework, name)
            known = versions_of(name, spec) if spec is not None else ""
            # A name that others have too, such as `config`, may be theirs.
            if known and not any(self.library.setting(other, name) for other in others):
                yield name, known

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(unsigned(setting.key) for setting in self.settings))

    def value(self, framework: str, key: str) -> str | None:
        """Give the job's own value of a setting under any of its names; None where it is not shown."""
        spec = self.library.setting(framework, key)
        names = (key, spec.key, *(alias.key for alias in spec.aliases)) if spec is not None else (key,)
        found = next((found for name in names if (found := value_of(name, self.settings)) is not None), None)
        if found is None and spec is not None:
            in_code = spec.spelled == "python"
            found = self._given_in_code(key) if in_code else self._in_own_section(framework, key)
        return found

    def _given_in_code(self, key: str) -> str | None:
        """Give the value of a call's argument (`DataLoader.num_workers`) where all such calls agree.

        A file that names the class hands its arguments on too.
        """
        call, _, leaf = canonical(key).rpartition(".")
        levels = set(argument_levels(unsigned(key).rpartition(".")[0], self.settings)) if call else set()
        given = {
            setting.value
            for setting in self.settings
            if call and setting.file and canonical(last_level(setting.key)) == leaf
            if (
                canonical(setting.key) == leaf and setting.scope.rpartition(".")[2] == call.rpartition(".")[2]
            )
            or setting.key.rpartition(".")[0] in levels
        }
        return given.pop() if len(given) == 1 else None

    def _in_own_section(self, framework: str, key: str) -> str | None:
        """Give the value that a file of the job's own has in a section of its own: `training_args.optim`.

        A short name that others have too counts where the framework's settings stand around it.
        """
        name, marks = canonical(key), known_frameworks().row(framework).config.marks
        given = [item for item in self.settings if item.file and item.spelled == "yaml"]
        sections = Counter(item.key.rpartition(".")[0] for item in given if last_level(item.key) in marks)
        values = {
            item.value
            for item in given
            if last_level(item.key) == name
            and (is_distinctive(name) or ("." in item.key and sections[item.key.rpartition(".")[0]] > 1))
        }
        return values.pop() if len(values) == 1 else None


def refused(
    change: ProposedChange,
    grounds: Grounds,
    beside: Iterable[ProposedChange] = (),
    set_otherwise: bool = False,
    has_sign: bool = False,
) -> str:
    """Say why a change cannot be one of this job, or give the empty string.

    `beside` are those that are kept already; `set_otherwise` tells that the failure proves the job's value to
    be another one than the default, although the job is not seen to set it; `has_sign` that conditions of the
    change's own hold of this log, which need not name a package to be about it.
    """
    spec = grounds.library.setting(change.framework, change.key, grounds.report.version(change.framework))
    if not grounds.takes(change.framework, change.key):
        return Message("changes.job-not-run", framework=change.framework)
    if reason := _unanchored(change, grounds, has_sign):
        return reason
    if spec is None or change.kind in ("package", "command"):
        return ""
    # Two changes that rename keys, and one that takes the place of a wrong key, are right whatever the value
    # is. Say that the program which ran does not take the setting.
    ran = grounds.commands.get(change.framework, frozenset())
    lacking = (
        ", ".join(sorted(ran))
        if spec.commands and ran and not ran & set(spec.commands)
        else grounds.lacking(change.framework, change.key)
    )
    missing = Message("changes.no-option", ran=lacking) if lacking else ""
    if not missing and not change.replaces and change.from_ is None and grounds.prints_without(spec):
        missing = Message("changes.not-printed")
    if spec.spelled == "python" and not change.replaces and lacks_call(change.key, grounds.report):
        missing = Message("changes.no-call", call=change.key.rpartition(".")[0])
    is_idle = any(holds(condition, grounds.view) for condition in spec.idle_when)
    reasons = (
        missing,
        Message("changes.no-effect") if is_idle else "",
        _elsewhere(change, grounds),
        _unlikely(spec, change, grounds, beside),
        "" if change.replaces else _idle(spec, change, grounds, set_otherwise),
    )
    return next(filter(None, reasons), "")


def runnable(
    changes: Sequence[ProposedChange], report: CrashReport, settings: Sequence[Setting]
) -> tuple[list[ProposedChange], list[Dropped]]:
    """Leave out what a job of this kind has no use for, whoever proposes it, and what goes with that.

    A change of the job's own code may speak of anything.
    """
    view = report.view_with(settings)
    lost = [
        change
        for change in changes
        if change.kind != "code" and not view.can_run(f"{change.key} {change.to}")
    ]
    gone = {change.key for change in lost}
    kept = [change for change in changes if not gone & {change.key, change.goes_with}]
    why = Message("changes.not-on-machine")
    return kept, [Dropped(what=f"{change.framework}: {change.key}={change.to}", why=why) for change in lost]


def _unanchored(change: ProposedChange, grounds: Grounds, has_sign: bool) -> str:
    """Say that the job shows nothing of the package, of the machine, or of what would start its ranks."""
    row = known_frameworks().row(change.framework)
    is_installed = change.kind == "package" and row.installs and not has_sign
    if is_installed and not names_package(change.key, grounds.report):
        return Message("changes.package-not-shown", package=change.key)
    if not grounds.view.can_run(f"{change.key} {change.to}"):
        return Message("changes.not-on-machine")
    is_rank_option = row.starts_ranks and change.key.startswith("--")
    if is_rank_option and change.framework not in grounds.rank_starters:
        return Message("changes.not-launched", framework=change.framework)
    return ""


def _elsewhere(change: ProposedChange, grounds: Grounds) -> str:
    """Say that the setting is one of another part of the job than the one that failed."""
    parts = known_frameworks().row(change.framework).components
    failed = _failed_part(change.framework, grounds)
    key = unsigned(change.key)
    if failed is None or compiled(failed.keys).search(key):
        return ""
    owner = next((part.name for part in parts if compiled(part.keys).search(key)), "")
    return Message("changes.other-part", owner=owner, failed=failed.name) if owner else ""


def is_of_failed(change: ProposedChange, grounds: Grounds) -> bool:
    """Tell whether a setting is one of the part in which the job failed and which has rows of its own."""
    failed = _failed_part(change.framework, grounds)
    key = unsigned(change.key)
    return failed is not None and failed.apart and compiled(failed.keys).search(key) is not None


def _failed_part(framework: str, grounds: Grounds) -> JobComponent | None:
    parts, calls = known_frameworks().row(framework).components, grounds.root_calls
    return next((part for part in parts if any(compiled(part.calls).search(call) for call in calls)), None)


def _unlikely(
    spec: SettingSpec, change: ProposedChange, grounds: Grounds, beside: Iterable[ProposedChange]
) -> str:
    """Say that no version knows the setting and another one that the job makes."""
    own = versions_of(change.key, spec)
    if not own or change.replaces:
        return ""
    dated = grounds.report.dated(spec.read_by or change.framework)
    if not overlap(own, dated):
        return Message("changes.not-version", version=dated, versions=own)
    for name, known in grounds.told_versions(change.framework):
        if not overlap(own, known):
            return Message("changes.no-version-both-job", name=name)
    for other in beside:
        there = (
            grounds.library.setting(other.framework, other.key)
            if other.framework == change.framework
            else None
        )
        if there is not None and not overlap(own, versions_of(other.key, there)):
            return Message("changes.no-version-both-proposed", key=other.key)
    return ""


def _idle(spec: SettingSpec, change: ProposedChange, grounds: Grounds, set_otherwise: bool) -> str:
    """Say that the change would change nothing."""
    if any(holds(condition, grounds.view) for condition in spec.on_when):
        return Message(ALREADY) if same("true", change.to) else ""
    now = grounds.value(change.framework, change.key)
    if now is not None:
        return Message(ALREADY) if same(now, change.to) else ""
    if spec.spelled == "python" and grounds.hands_on(change.key, change.to):
        return Message(ALREADY)
    # An argument of the job's own code is set there, where nobody sees it.
    in_code = spec.spelled == "python" and not isinstance(spec.default, bool)
    if set_otherwise or in_code or spec.default is None or isinstance(spec.default, list):
        return ""
    # Under its old name the program refuses it, whatever its value.
    if change.replaces is not None or _is_told(change.key, grounds.report.root):
        return ""
    return Message(DEFAULT) if same(str(spec.default), change.to) else ""


def _is_told(key: str, root: Event | None) -> bool:
    """Tell whether the failing message names a setting: it is about the value that the setting has.

    `gradient_checkpointing` is named by "does not support gradient checkpointing" too; a single word may mean
    anything.
    """
    parts = re.split(r"[_-]", last_level(unsigned(key)))
    if root is None or len(parts) < 2:
        return False
    return (
        compiled(rf"(?i)(?<![\w-]){'[ _-]'.join(map(re.escape, parts))}(?![\w-])").search(root.body)
        is not None
    )


def versions_of(name: str, spec: SettingSpec) -> str:
    """Give the versions that know a setting by this name; the empty string where all do."""
    wanted = canonical(name)
    own = [spec.versions] if canonical(spec.key) == wanted else []
    found = own + [alias.versions for alias in spec.aliases if canonical(alias.key) == wanted]
    return found[0] if len(found) == 1 else ""


def key_at(version: str | None, spec: SettingSpec, settings: Sequence[Setting]) -> str:
    """Name a setting as the job does, else as its version does."""
    names = ((spec.key, spec.versions), *((alias.key, alias.versions) for alias in spec.aliases))
    valid = [key for key, versions in names if fits(version, versions)]
    used = [key for key in valid if value_of(key, settings) is not None]
    return (used or valid or [spec.key])[0]


def value_of(key: str, settings: Sequence[Setting]) -> str | None:
    """Give the job's own value of a setting, however it is spelled; None where it is not shown."""
    wanted = canonical(key)
    for setting in settings:
        if canonical(setting.key) == wanted:
            return setting.value
    return None


def same(now: str, to: object) -> bool:
    """Tell whether the job's value is the proposed one.

    A type is printed with its module (`torch.bfloat16`); a script's `${NAME:-value}` is that value, unless
    who starts it says otherwise.
    """
    text = now.strip("'\"")
    if otherwise := _OTHERWISE.fullmatch(text):
        text = otherwise["value"]
    return compare(text.removeprefix("torch."), "==", str(to).removeprefix("torch."))


def _texts(report: CrashReport) -> Iterator[str]:
    """Give what can show a program: the job's files, its command, and the failing lines with their frames."""
    yield from map(without_remarks, report.launches)
    yield report.command[1]
    for event in report.events:
        yield event.text
        yield from map(str, event.frames)


def _programs(texts: Iterable[str]) -> Iterator[tuple[Program, str]]:
    """Give each program that a text shows, with the name of its command."""
    known = known_frameworks()
    for number, command in sorted(
        (shown for text in dict.fromkeys(texts) for shown in known.programs_in(text)), key=itemgetter(0)
    ):
        yield known.programs[number], command
