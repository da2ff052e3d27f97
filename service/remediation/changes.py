"""Proposed changes: a case's settings, checked against the catalogue and the job's own configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from corpus.frameworks import known_frameworks
from corpus.keys import canonical
from corpus.library import Library, fits
from corpus.message import Message, in_both, joined, message_id, words
from corpus.schema import Case, Change, Language, Remedy, SettingSpec
from corpus.version_ranges import overlap
from ingest.logs.conditions import applies
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.exclusions import excluded, speak_for_matched, with_matched
from service.remediation.feasibility import ALREADY, DEFAULT, Grounds, is_of_failed, refused, same, value_of
from service.remediation.framework_relations import fits_place, settable_frameworks, shown_frameworks
from service.remediation.hinted_settings import MessageHint
from service.remediation.moved_keys import Rename
from service.remediation.named_changes import (
    advised_value,
    as_own,
    is_about,
    kind_of,
    renamed_change,
    tells_value,
    with_refusals,
)
from service.remediation.named_options import NamedOption
from service.remediation.own_values import with_divisors
from service.remediation.packages.changes import PackageChange
from service.remediation.proposed_values import proposed_value
from service.remediation.ranking import (
    BEFORE_ADVICE,
    BEFORE_OTHERS,
    ENOUGH_CHANGES,
    ChangeGroup,
    argument_of,
    asks_words,
    compares_settings,
    is_situated,
    ranked,
    without_repeats,
    without_unset,
)
from service.remediation.rules.context import DependentSetting
from service.remediation.setting_values import is_guidance, is_least, misfit_reason, number_of
from service.remediation.values import rule_for
from service.schemas.diagnosis import Dropped, ProposedChange

_SAID = {"named": "changes.named", "checked": "changes.checked"}


@dataclass(frozen=True)
class _JobContext:
    """What every change is checked against."""

    report: CrashReport
    library: Library
    settings: Sequence[Setting]
    language: Language
    advice: Sequence[MessageHint] = ()

    @cached_property
    def grounds(self) -> Grounds:
        """What every candidate is checked against before it is ranked."""
        return Grounds(self.report, self.library, self.settings)

    @cached_property
    def configurable(self) -> frozenset[str]:
        """The frameworks that have settings at all."""
        return frozenset(self.library.keys)


# What the knowledge says where a setting is to go.
_LEFT_OUT = words("changes.to-nothing", "en")


@dataclass(frozen=True)
class _CandidateChange:
    """A change with what proposes it: a case, or the table of remedies (then `case` is None).

    `serves` names the frameworks of the case: a change for another one of them is not this job's.
    """

    change: Change
    cause: str
    case: str | None = None
    serves: Collection[str] = ()


def propose_changes(
    cases: Sequence[Case],
    report: CrashReport,
    library: Library,
    settings: Sequence[Setting],
    language: Language,
    remedies: Sequence[Remedy] = (),
    renamed: Sequence[Rename] = (),
    advice: Sequence[MessageHint] = (),
    packages: Sequence[PackageChange] = (),
    refusals: Sequence[NamedOption] = (),
) -> tuple[list[ProposedChange], list[Dropped]]:
    """Give the changes of cases and remedies that apply to this job, and those dropped with the reason.

    The right name of a key that the log calls unknown comes first, or that it is to go, and the versions of
    packages that fit one another, then the options that the program refuses (`refusals`) and what the message
    advises; what a case says of a setting outranks the remedies, and both what the message says of its value.
    """
    job = _JobContext(report, library, settings, language, advice)
    dropped: list[Dropped] = []
    groups = _before_advice(renamed, packages, job, dropped)
    kept = {(item.framework, item.key): item for group in groups for item in group.changes}
    settled: set[tuple[str, str]] = set()
    for wanted in _candidates(cases, remedies):
        key = (wanted.change.framework, wanted.change.key)
        if isinstance(wanted.change, Remedy) and wanted.change.holds:
            # What a case says of the setting whose value the failing line tells comes before its others.
            for group in groups:
                group.situated |= key in {(item.framework, item.key) for item in group.changes[:1]}
        speak_for_matched(wanted.change, groups, job.grounds)
        if (
            _is_settled(wanted, settled)
            or _is_told(wanted, kept, job)
            or not applies(wanted.change.when, wanted.change.unless, job.grounds.view)
        ):
            continue
        made, lost = _checked(wanted, job)
        made = _feasible(made, kept, job, lost, wanted.change)
        if any(message_id(item.why) in (ALREADY, DEFAULT) for item in lost):
            settled.add(key)  # a case's value is there: the table would only lead away from it
        dropped.extend(item for item in lost if item not in dropped)
        if new := [item for item in made.changes if (item.framework, item.key) not in kept]:
            kept.update({(item.framework, item.key): item for item in new})
            groups.append(replace(made, changes=new, worded=_is_worded(wanted, job)))
    refused_keys = {canonical(key) for option in refusals for key in (option.key, option.argument) if key}
    groups = [group for group in groups if canonical(group.changes[0].key) not in refused_keys]
    groups = with_refusals(groups, refusals, report, library, settings, language)
    advice = [item for item in advice if not refused_keys & {canonical(item.key), argument_of(item.key)}]
    groups = without_unset(without_repeats(groups, _own_numbers(remedies, settings)))
    _follow(advice, groups, settled, job, dropped)
    as_own(with_divisors(groups, report), report, settings)
    for group in groups:
        # The setting whose value failed is read for sure; another that the message knows of need not be.
        if group.held and not is_guidance(group.changes[0].to):
            group.advised = BEFORE_OTHERS
    return [
        _worded(item, job).model_copy(update={"tier": group.tier, "is_bare": group.is_bare})
        for group in ranked(groups)
        for item in group.changes
    ], dropped


def _candidates(cases: Sequence[Case], remedies: Sequence[Remedy]) -> Iterator[_CandidateChange]:
    for case in cases:
        for change in case.changes:
            yield _CandidateChange(change, case.cause, case.id, case.frameworks)
    yield from (_CandidateChange(remedy, remedy.cause) for remedy in remedies)


def _own_numbers(remedies: Sequence[Remedy], settings: Sequence[Setting]) -> list[tuple[str, str]]:
    """Give the settings of the job's own program that remedies are for and whose number is known."""
    found = ((row, value_of(row.key, settings)) for row in remedies if row.own)
    return [
        (row.own, row.key) for row, now in found if now is not None and number_of(now, "float") is not None
    ]


def _before_advice(
    renamed: Sequence[Rename], packages: Sequence[PackageChange], job: _JobContext, dropped: list[Dropped]
) -> list[ChangeGroup]:
    """Give what comes before all advice: the right names of keys, and versions that fit one another."""
    names = (
        ChangeGroup([renamed_change(rename, job.language)], True, True, BEFORE_ADVICE) for rename in renamed
    )
    feasible = (_feasible(group, {}, job, dropped) for group in names)
    return [group for group in feasible if group.changes] + [
        ChangeGroup([made.model_copy(update={"from_": item.present})], True, True, BEFORE_ADVICE)
        for item in packages
        for made in _checked(_CandidateChange(item.change, ""), job)[0].changes
    ]


def check_change(
    change: Change,
    cause: str,
    report: CrashReport,
    library: Library,
    settings: Sequence[Setting],
    language: Language,
) -> tuple[list[ProposedChange], str]:
    """Check one change as those of cases are: gives it with what must follow it, or why there is none."""
    job = _JobContext(report, library, settings, language)
    made, lost = _checked(_CandidateChange(change, cause), job)
    made = _feasible(made, {}, job, lost)
    if made.changes:
        return made.changes, ""
    return [], lost[0].why if lost else Message("changes.job-not-run", framework=change.framework)


def _is_settled(wanted: _CandidateChange, settled: Collection[tuple[str, str]]) -> bool:
    """Tell whether the job has the value.

    Of the table, which says it for each of the frameworks that share a name, under any of them.
    """
    change = wanted.change
    return (change.framework, change.key) in settled or (
        wanted.case is None and any(canonical(key) == canonical(change.key) for _, key in settled)
    )


def _feasible(
    group: ChangeGroup,
    kept: Mapping[tuple[str, str], ProposedChange],
    job: _JobContext,
    dropped: list[Dropped],
    wanted: Change | None = None,
) -> ChangeGroup:
    """Leave out of a group what cannot be a change of this job, and note why.

    Without its first change it is empty.
    """
    fitting = []
    for change in group.changes:
        # What the failing message itself blames has another value than the one that it advises.
        blamed = (
            (wanted is not None and wanted.set_otherwise)
            or any(is_about(item, change) for item in job.advice)
            or (change.from_ is not None and not same(change.from_, change.to))
        )
        has_sign = wanted is not None and bool(wanted.when)
        reason = refused(change, job.grounds, kept.values(), blamed, has_sign)
        if not reason:
            fitting.append(change)
            continue
        what = f"{change.framework}: {change.key}={job.library.settings_named(change.to, job.language)}"
        dropped.extend([lost] if (lost := Dropped(what=what, why=reason)) not in dropped else [])
        if change is group.changes[0]:
            break
    return replace(group, changes=fitting)


def _follow(
    advice: Sequence[MessageHint],
    groups: list[ChangeGroup],
    settled: Collection[tuple[str, str]],
    job: _JobContext,
    dropped: list[Dropped],
) -> None:
    """Put first what the message advises, and add what nobody else proposes.

    A last resort stays behind all that others do.
    """
    said = job.report.root.body if job.report.root is not None else ""
    for place, item in enumerate(advice):
        if item.way == "checked" and f"{item.key}={value_of(item.key, job.settings)}" in said:
            continue  # the very value that the message tells
        known = next(
            (group for group in groups if any(is_about(item, change) for change in group.changes)), None
        )
        if item.is_checked and known:
            known.situated = known.situated or not known.from_case
        if item.way == "checked" and (settled or len(groups) >= ENOUGH_CHANGES):
            continue  # which way to move it is not said: it only orders what others propose
        if known is not None and item.says_value and not known.changes[0].proof:
            told = _feasible(_advised(item, job), {}, job, dropped)
            if told.changes and not same(str(told.changes[0].to), known.changes[0].to):
                known.changes[:] = told.changes
        if known is None and (item.framework, item.key) not in settled:
            kept = {(change.framework, change.key): change for group in groups for change in group.changes}
            known = _feasible(_advised(item, job), kept, job, dropped)
            known = known if known.changes else None
            groups.extend([known] if known else [])
        is_told = tells_value(item.key, job.grounds.value(item.framework, item.key), said)
        if known and known.advised is None and (is_told or not item.is_last_resort):
            known.advised, known.told = place, is_told


def _advised(item: MessageHint, job: _JobContext) -> ChangeGroup:
    """Make a change of what the message advises; an empty group where the setting takes no such value."""
    now, because = value_of(item.key, job.settings), in_both(_SAID.get(item.way, "changes.advised"))
    change = Change(
        framework=item.framework,
        kind=kind_of(item.spec),
        key=item.key,
        to=advised_value(item, now, job.language),
        why=because,
    )
    return _checked(_CandidateChange(change, item.cause), job)[0]


def _is_told(
    wanted: _CandidateChange, kept: Mapping[tuple[str, str], ProposedChange], job: _JobContext
) -> bool:
    """Tell whether the setting is among the kept ones, under this or another version's name."""
    change = wanted.change
    if (change.framework, change.key) in kept:
        return True
    spec = job.library.setting(change.framework, change.key)
    if spec is not None and any(
        spec is job.library.setting(framework, key)
        for framework, key in kept
        if framework == change.framework
    ):
        return True
    last = canonical(change.key).split(".")[-1]
    # Trainers share the names of what they are built on, so the table would say the same once more for the
    # lower one.
    if wanted.case is None and any(canonical(key) == canonical(change.key) for _, key in kept):
        return True
    same = [
        key
        for framework, key in kept
        if framework == change.framework and canonical(key).split(".")[-1] == last
    ]
    # Renamed settings end alike (`adam_offload`, `ds.adam_offload`); keys of two roles do too, but share a
    # depth.
    renamed = [key for key in same if key.count(".") != change.key.count(".")]
    return bool(renamed) and value_of(change.key, job.settings) is None


def _checked(wanted: _CandidateChange, job: _JobContext) -> tuple[ChangeGroup, list[Dropped]]:
    """Give the change and what must follow it, or why it is dropped.

    Nothing where it is for another framework.
    """
    change, nothing = wanted.change, ChangeGroup([])
    seen, version = shown_frameworks(job.report), job.report.version(change.framework)
    if wanted.case is not None and not _is_for(change, wanted.serves, seen, job):
        return nothing, []
    own = isinstance(change, Remedy) and bool(change.own)
    is_held = isinstance(change, Remedy) and bool(change.holds)
    # Of a setting of the job's own program, no more is known than that it is one.
    of_own = SettingSpec(framework=change.framework, key=change.key, type="any", spelled="flag")
    spec = of_own if own else job.library.setting(change.framework, change.key, version)
    if reason := _unknown(change, spec, version, job.report):
        return nothing, [Dropped(what=f"{change.framework}: {change.key}", why=reason)]
    now = job.grounds.value(change.framework, change.key)
    value = proposed_value(change, spec, now, wanted.cause, job)
    is_told = bool(value.because) or is_guidance(value.to) or isinstance(value.to, bool)
    if own and not is_told and not (isinstance(change, Remedy) and change.beside):
        return nothing, []
    if isinstance(change, Remedy) and change.lowers and is_least(now, spec):
        value = replace(value, useless=Message("changes.least-already", now=now))
    if reason := (misfit_reason(value.to, spec) if spec is not None else "") or value.useless:
        what = f"{change.framework}: {change.key}={job.library.settings_named(value.to, job.language)}"
        return nothing, [Dropped(what=what, why=reason)]
    reachable = own or change.framework in seen or change.framework in known_frameworks().everywhere
    main = ProposedChange(
        framework=change.framework,
        kind=change.kind,
        key=change.key,
        from_=value.present if now is None else now,
        to=value.to,
        why=joined(change.why.to(job.language), value.because, job.language),
        costs=change.costs.to(job.language) if change.costs else "",
        from_case=wanted.case,
        status="verified" if spec is not None and reachable and not is_guidance(value.to) else "unverified",
        proof=value.proof,
        bounds=value.bounds,
        purpose=change.purpose or (spec.purpose if spec is not None else "cure"),
        removes=now is not None and change.kind in ("setting", "flag") and value.to == _LEFT_OUT,
    )
    also = with_matched(main, (*value.also, *excluded(main, spec, job.grounds)), job.grounds)
    following = [made for each in also if (made := _following(each, main, job)) is not None]
    return ChangeGroup(
        [main, *following],
        computed=bool(value.because),
        from_case=wanted.case is not None,
        situated=own or is_held or _is_called_for(wanted, job),
        last_resort=change.last_resort or (spec is not None and spec.last_resort),
        measure=None if wanted.case is not None else change.why.en,
        own=change.own if isinstance(change, Remedy) else "",
        held=is_held,
        of_failed=is_of_failed(main, job.grounds),
        yields=isinstance(change, Remedy) and change.yields,
        together=isinstance(change, Remedy) and change.together,
        rule=rule.id if spec is not None and (rule := rule_for(change, spec, wanted.cause)) else "",
    ), []


def _is_called_for(wanted: _CandidateChange, job: _JobContext) -> bool:
    """Tell whether this job's settings call for a change, which a case may name for any job."""
    if wanted.case is None:
        return is_situated(wanted.change.when)
    named = (wanted.change.framework, wanted.change.key)
    return any(
        (row.framework, row.key) == named
        and compares_settings(row.when)
        and applies(row.when, row.unless, job.grounds.view)
        for row in job.library.remedies.get(wanted.cause, ())
    )


def _is_worded(wanted: _CandidateChange, job: _JobContext) -> bool:
    """Tell whether words of the log call for a change: by its own row, the table's, or as a known bug's."""
    case, change = job.library.cases.get(wanted.case or ""), wanted.change
    rows = [row for row in job.library.remedies.get(wanted.cause, ()) if row.key == change.key]
    return (case is not None and case.signatures.quotes_message) or any(
        asks_words(row.when) and applies(row.when, row.unless, job.grounds.view) for row in (change, *rows)
    )


def _worded(change: ProposedChange, job: _JobContext) -> ProposedChange:
    """Tell guidance in the answer's language, and a command that is itself told in words.

    All checks are done by then.
    """
    to = job.library.settings_named(change.to, job.language)
    to = job.grounds.view.in_its_words(to) if isinstance(to, str) and is_guidance(change.to) else to
    key = job.library.settings_named(change.key, job.language) if change.kind == "command" else change.key
    return (
        change if (to, key) == (change.to, change.key) else change.model_copy(update={"to": to, "key": key})
    )


def _is_for(change: Change, serves: Collection[str], seen: Collection[str], job: _JobContext) -> bool:
    """Tell whether a case's change is one for this job.

    Not for another framework, nor for one that another drives.
    """
    framework, mine = change.framework, settable_frameworks(job.report)
    everywhere = known_frameworks().everywhere
    trainers = known_frameworks().of_layer("trainer") - known_frameworks().driven
    if change.kind == "package" and change.key in trainers - mine and trainers & mine:
        # A trainer's release mends nothing for another one that was made from the same code.
        return False
    if framework in everywhere or framework in mine:
        return fits_place(framework, change.key, job.report)
    if framework in seen:
        return False
    return not mine & job.configurable - everywhere and not set(seen) & set(serves)


def _unknown(change: Change, spec: SettingSpec | None, version: str | None, report: CrashReport) -> str:
    """Say why the job's version cannot take the change, or give the empty string."""
    reader = spec.read_by or change.framework if spec is not None else change.framework
    known, dated = report.version(reader), report.dated(reader)
    if not fits(known, change.versions) or not overlap(change.versions, dated):
        return Message("changes.not-version", version=known or dated, versions=change.versions)
    if spec is None and change.kind in ("setting", "flag", "env"):
        if version is None:
            return Message("changes.not-catalogue-version-unknown")
        return Message("changes.not-catalogue-version", version=version)
    return ""


def _following(also: DependentSetting, main: ProposedChange, job: _JobContext) -> ProposedChange | None:
    """Make the change that must follow another one.

    None where the version has no such setting or the job the value.
    """
    framework = also.framework or main.framework
    spec = job.library.setting(framework, also.key, job.report.version(framework))
    now = job.grounds.value(framework, also.key)
    if spec is None or misfit_reason(also.value, spec) or (now is not None and same(now, also.value)):
        return None
    why = also.because.to(job.language)
    return main.model_copy(
        update={
            "framework": framework,
            "kind": main.kind if framework == main.framework else kind_of(spec),
            "key": also.key,
            "from_": now,
            "to": also.value,
            "why": why,
            "costs": "",
            "goes_with": main.key,
            "proof": None,
            "bounds": None,
        }
    )
