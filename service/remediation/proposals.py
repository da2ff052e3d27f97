"""The changes that an answer proposes.

Of the cases that fit, the table of remedies, and the message itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from corpus.keys import canonical, last_level
from corpus.library import Library
from corpus.message import message_id
from corpus.schema import Case, Language, Remedy
from corpus.symbols import PYTHON
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.alternative_files import with_switches
from service.remediation.call_arguments import options_behind, told_arguments
from service.remediation.calls_in_code import in_own_calls
from service.remediation.card_lists import with_degrees
from service.remediation.changes import propose_changes
from service.remediation.data_flow.flow_changes import flow_changes, flow_options
from service.remediation.data_flow.own_switches import own_switches
from service.remediation.example_paths import with_example_paths
from service.remediation.exclusions import find_excluded
from service.remediation.feasibility import ALREADY, DEFAULT, runnable
from service.remediation.folded_options import with_folded
from service.remediation.given_since import given_since, gone_since, listed_already
from service.remediation.guard_values import guard_options
from service.remediation.guesses import with_guesses
from service.remediation.handed_options import handed_options, handed_renames
from service.remediation.hinted_settings import hinted_changes
from service.remediation.named_options import NamedOption, named_options
from service.remediation.near_files import near_files, stray_signs
from service.remediation.near_values import near_values
from service.remediation.needed_options import needed_options
from service.remediation.overwrites import tell_overwritten
from service.remediation.own_files import own_files
from service.remediation.own_values import advised_flags, divided_values, own_values
from service.remediation.packages.changes import fitting_changes
from service.remediation.packages.environments import inactive_environment
from service.remediation.packages.fit import fitting_installs
from service.remediation.packages.hand_edits import hand_edited
from service.remediation.packages.named import named_installs
from service.remediation.packages.raising import raising_package
from service.remediation.packages.reported import reported_versions
from service.remediation.passed_values import tell_passed
from service.remediation.ranking import ENOUGH_CHANGES, UNADVISED, shown, without_strangers
from service.remediation.refusals import missigned_options, valued_switches
from service.remediation.remedies import applicable
from service.remediation.renames import find_refused, find_renames, read_in_vain
from service.remediation.script_folders import script_folders
from service.remediation.set_places import tell_set_places
from service.remediation.setting_values import is_guidance
from service.remediation.stated_commands import stated_commands
from service.remediation.stated_settings import stated_already, stated_settings
from service.remediation.told_values import told_values
from service.remediation.unread_directives import asked_in_vain
from service.remediation.value_traces import trace_values
from service.schemas.diagnosis import Diagnosis, Dropped, ProposedChange, Standing
from service.scoring.assessment import Assessment

# The changes that a model may choose from, those of the first answer among them.
MAX_CHANGES = 6
# Cases beyond those that the first answer has drawn its changes from.
MORE_CASES = 6


@dataclass(frozen=True)
class Proposals:
    """Changes, the best first, and what was looked at and left out with the reason, in English."""

    changes: tuple[ProposedChange, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    @property
    def unhelpful(self) -> str:
        """Why what one would change cannot help, by the log's own numbers; empty where none were reckoned.

        Only a rule for values has such a reason, which is a sentence and no message of ours.
        """
        return next((item.why for item in self.dropped if not message_id(item.why)), "")


def propose(
    assessment: Assessment, cases: Sequence[Case], library: Library, language: Language, standing: Standing
) -> Proposals:
    """Propose changes against the first candidate, of whose cases `cases` are those that fit.

    What is a guess where the cause has this standing stands behind, and takes no other's place.
    """
    found = _from_cases(assessment, cases[:2], library, language)
    # What the job has already is no reason to look further: the next run of a patched job would grow a
    # new patch.
    settled = sum(message_id(item.why) in (ALREADY, DEFAULT) for item in found.dropped)
    if len(found.changes) + settled < ENOUGH_CHANGES:
        more = [*cases[:2], *_kindred_cases(assessment, cases, library)]
        found = _from_cases(assessment, more[:3], library, language)
    if not found.changes and "wrong-value" in library.causes[assessment.candidates[0].cause].messages_name:
        report, settings = assessment.report, assessment.settings
        named = told_arguments(report, settings)
        made, _ = propose_changes((), report, library, settings, language, refusals=named)
        found = Proposals(tuple(made), found.dropped)
    changes = _with_flow(found.changes, assessment, library, language)
    changes = with_switches(changes, assessment.report, assessment.settings, language)
    changes = _with_commands(changes, assessment, library, language)
    changes = _with_raising(changes, assessment, library, language)
    changes = given_since(changes, assessment.report, language)
    changes = fitting_installs(changes, assessment.report, language)
    changes = in_own_calls(changes, assessment.report, library, language)
    changes = gone_since(changes, assessment.report, assessment.settings, language)
    changes = listed_already(changes, assessment.settings, language)
    changes = with_example_paths(changes, assessment.report, assessment.settings, language)
    changes = asked_in_vain(without_strangers(changes), assessment.report, language)
    changes, lost = runnable(changes, assessment.report, assessment.settings)
    changes = with_guesses(changes, standing, library)
    told = tell_overwritten(shown(changes), assessment.report, language, assessment.settings)
    told = tell_passed(told, assessment.report, assessment.settings, language)
    told = tell_set_places(told, assessment.settings, language)
    return Proposals(tuple(with_degrees(told, assessment.settings, language)), (*found.dropped, *lost))


def _with_flow(
    changes: Sequence[ProposedChange], assessment: Assessment, library: Library, language: Language
) -> Sequence[ProposedChange]:
    """Add the options that the failing statement has its values from.

    What is proved, and what the message itself names, stays before them; what holds for the cause in general
    comes behind those that the message tells by their value.
    """
    cause = library.causes[assessment.candidates[0].cause]
    report, settings = assessment.report, assessment.settings
    offered = {canonical(last_level(change.key)) for change in changes}
    options = flow_options(report, settings, cause)
    options = [option for option in options if canonical(last_level(option.key)) not in offered]
    if not options:
        return changes
    is_firm = all(option.is_firm for option in options)
    made = list(flow_changes(options, report, library, language))
    firm = [change for change in changes if change.proof or (change.tier < UNADVISED and is_cure(change))]
    others = [change for change in changes if change not in firm]
    if is_firm:
        return [*firm, *made, *others]
    cures = [change for change in others if is_cure(change)]
    return [*firm, *cures, *made, *(change for change in others if not is_cure(change))]


def _with_commands(
    changes: Sequence[ProposedChange], assessment: Assessment, library: Library, language: Language
) -> Sequence[ProposedChange]:
    """Put the commands that the message itself says to run before all but what its numbers prove.

    So stands what it asks for and a file of the job has.
    """
    cause, report, settings = assessment.candidates[0].cause, assessment.report, assessment.settings
    commands = stated_commands(cause, report, language)
    is_proved = any(change.proof for change in changes)
    there = None if commands or is_proved else stated_already(cause, report, library, settings, language)
    if there is not None:
        name, told_there = there
        return [told_there, *(change for change in changes if last_level(change.key) != name)]
    told = {change.key for change in commands}
    others = [change for change in changes if change.key not in told]
    first = [change for change in others if change.proof]
    # Of a level above what is proved, `datasets` above `datasets.type`, nothing is to be said in general.
    above = {change.key.rpartition(".")[0] for change in first}
    others = [change for change in others if change.key not in above or not is_guidance(change.to)]
    others = [change for change in others if not change.proof]
    # A launcher's bare name says less than what is known of the cause.
    bare = [change for change in commands if " " not in change.key]
    return [*first, *(change for change in commands if change not in bare), *others, *bare]


def _with_raising(
    changes: Sequence[ProposedChange], assessment: Assessment, library: Library, language: Language
) -> Sequence[ProposedChange]:
    """Offer another release of the package that failed where nothing is known to cure."""
    if any(map(is_cure, changes)):
        return changes
    report, settings = assessment.report, assessment.settings
    packages = raising_package(assessment.candidates[0].cause, report, library)
    made, _ = propose_changes((), report, library, settings, language, packages=packages)
    return [*made, *changes]


def is_cure(change: ProposedChange) -> bool:
    """Tell whether a change is to mend the job, not to find out what ails it."""
    return change.purpose == "cure"


def _from_cases(
    assessment: Assessment, cases: Sequence[Case], library: Library, language: Language
) -> Proposals:
    report, settings = assessment.report, assessment.settings
    cause = assessment.candidates[0].cause
    remedies = applicable(cause, report, library, settings)
    # A bug that is known by its message has its own remedy: the names in the message are not at fault.
    is_known = any(case.signatures.quotes_message and case.cause == cause for case in cases[:1])
    named = () if is_known else library.causes[cause].messages_name
    renamed = find_renames(report, library, settings) if "unknown-setting" in named else []
    renamed = with_folded(renamed, report, library, settings) if "unknown-setting" in named else []
    if not renamed and not is_known:
        renamed = handed_renames(report, library, settings) or read_in_vain(report, settings)
    # A setting whose value the failing line tells comes first among what is offered for it anyway.
    offered = {canonical(change.key) for case in cases for change in case.changes}
    offered |= {canonical(remedy.key) for remedy in remedies}
    held = [trace.key for trace in trace_values(assessment) if canonical(trace.key) in offered]
    checked = tuple(dict.fromkeys((*held, *assessment.checked_names)))
    advice = [] if renamed or is_known else hinted_changes(cause, report, library, settings, checked)
    refusals = _refused(report, library, settings, is_blamed="wrong-value" in named) if not is_known else []
    passed = options_behind(advice, report, settings) if "wrong-value" in named else []
    advice = [item for item in advice if item.key not in {option.argument for option in passed}]
    refusals = [*passed, *(option for option in refusals if option.key not in {each.key for each in passed})]
    if not is_known and not renamed:
        told = _told(assessment, library, remedies, is_blamed="wrong-value" in named)
        keys = {canonical(option.key) for option in told}
        refusals = [*told, *(option for option in refusals if canonical(option.key) not in keys)]
    if "unknown-setting" in named:
        keys = {canonical(option.key) for option in refusals}
        written = [*missigned_options(report), *valued_switches(report, settings)]
        written += handed_options(report, settings, renamed)
        unknown = [*written, *find_refused(report, settings, renamed)]
        refusals += [option for option in unknown if canonical(option.key) not in keys]
    packages = mine = own_files(report, settings) if not is_known else []
    if not is_known:
        mine = mine or hand_edited(report)
        packages = (
            mine
            or reported_versions(report, library)
            or fitting_changes(cause, report, library, settings)
            or named_installs(cause, report, library)
        )
        packages = packages if mine else [*inactive_environment(report), *packages]
    if mine or any(option.change.framework == PYTHON for option in packages):
        # What Python itself brings, or the job's own files have, is no package of its name.
        own = {str(fact.fields.get("name")) for fact in report.facts if fact.kind == "package"}
        remedies = [remedy for remedy in remedies if remedy.key not in own]
    # A package that the message asks for is not asked for once more under another spelling.
    asked = {canonical(option.change.key) for option in packages}
    remedies = [row for row in remedies if row.kind != "package" or canonical(row.key) not in asked]
    made, dropped = propose_changes(
        cases, report, library, settings, language, remedies, renamed, advice, packages, refusals
    )
    refused = {canonical(option.key) for option in refusals if option.unknown}
    refused |= {canonical(key) for rename in renamed for key in (rename.old, rename.new)}
    return Proposals(tuple(change for change in made if _serves(change, refused)), tuple(dropped))


def _told(
    assessment: Assessment, library: Library, remedies: Sequence[Remedy], *, is_blamed: bool
) -> list[NamedOption]:
    """Give the options of the job's own of which the message tells a value, each once.

    Where a cause's messages blame no setting (`is_blamed`), none is missing beside another.
    """
    report, settings = assessment.report, assessment.settings
    cause = assessment.candidates[0].cause
    told = [
        *(needed_options(report, settings, library, remedies) if is_blamed else ()),
        *told_values(cause, report, settings, library),
    ]
    keys = {canonical(key) for option in told for key in (option.key, option.argument) if key}
    more = [
        *near_files(report, settings),
        *stray_signs(report, settings),
        *script_folders(report, settings),
        *near_values(report, settings),
        *stated_settings(cause, report, library, settings),
        *guard_options(report, settings),
        *own_switches(report, settings),
    ]
    return [*told, *(option for option in more if canonical(option.key) not in keys)]


def _refused(
    report: CrashReport, library: Library, settings: Sequence[Setting], *, is_blamed: bool
) -> list[NamedOption]:
    """Give the options whose value the program refuses, with what it takes instead.

    Where a cause's messages blame no setting (`is_blamed`), only a slip of a value that the message lists.
    """
    options = named_options(report, settings)
    if not is_blamed:
        slips = [option for option in options if option.choices and option.nearest]
        divided = divided_values(report, library, settings)
        return [*slips, *divided, *advised_flags(report, library, settings)]
    own = own_values(report, library, settings)
    # A key that another one refers to by a wrong name is not missing.
    referred = "\n".join(option.present or "" for option in own)
    options = [option for option in options if not (option.required and f"${{{option.key}}}" in referred)]
    return [*options, *own, *find_excluded(report, settings)]


def _serves(change: ProposedChange, refused: Collection[str]) -> bool:
    """Tell whether a change can serve a job whose program knows none of some keys.

    Another setting's value leaves them where they are; another version, or a command, may not.
    """
    is_setting = change.kind in ("setting", "flag", "env") and change.purpose == "cure"
    return not refused or not is_setting or canonical(change.key) in refused


def _kindred_cases(assessment: Assessment, cases: Sequence[Case], library: Library) -> list[Case]:
    """Give cases that fit the root too and whose cause lies behind the one that is named.

    What mends a consequence, such as a longer time-out where a card is broken, leaves the cause as it is.
    """
    named = assessment.candidates[0].cause
    near = {cause.id for cause in library.causes.values() if named in cause.explains}
    found = [
        match.case for match in assessment.retrieval.signatures if match.at_root and match.case.cause in near
    ]
    return [case for case in found if case not in cases]


def further_changes(
    assessment: Assessment, first: Diagnosis, library: Library, language: Language
) -> list[ProposedChange]:
    """Give checked changes of further cases of the answer's cause that fit the job."""
    if first.verdict != "diagnosed":
        return []
    matches = [match for match in assessment.retrieval.signatures if match.case.cause == first.cause]
    cases = [match.case for match in matches[:MORE_CASES]]
    made, _ = propose_changes(cases, assessment.report, library, assessment.settings, language)
    told = {(change.framework, change.key) for change in first.changes}
    more = [change for change in made if (change.framework, change.key) not in told]
    return more[: max(0, MAX_CHANGES - len(told))]
