"""Changes that a model proposes of its own, checked like those of the corpus.

What the catalogue or the job's own files know is `verified`. What is only plausible is `unverified`: it is
told and
never written to a file. What the version does not have, what is out of range and what changes nothing is
dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from corpus.frameworks import known_frameworks
from corpus.keys import last_level, unsigned
from corpus.library import Library
from corpus.message import Message
from corpus.schema import Change, ChangeKind, Language, Scalar, SettingSpec, Text
from service.remediation.changes import check_change
from service.remediation.feasibility import same, value_of
from service.remediation.framework_relations import settable_frameworks, shown_frameworks
from service.remediation.setting_values import is_guidance, typed_value
from service.schemas.diagnosis import ProposedChange
from service.scoring.assessment import Assessment

KINDS: tuple[ChangeKind, ...] = ("setting", "flag", "env", "package", "command")
# A framework with so many settings in the catalogue has hardly one that is not there.
MANY = 60
# A name as settings, variables and packages have: no blank, no quote, nothing that a shell reads.
_KEY = re.compile(r"(?:[+~]{0,2}|-{1,2})[A-Za-z_][\w.@/-]{0,119}(?:\[[\w.-]{1,40}\])?")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}(?:\[[A-Za-z0-9,._-]{1,40}\])?")
# A value that is too common in logs to have come from one.
_COMMON = re.compile(r"(?i)true|false|none|null|auto|\d{1,2}|")


@dataclass(frozen=True, slots=True)
class FreeProposal:
    """A change as a model words it; every field is untrusted text of bounded length."""

    framework: str
    kind: str
    key: str
    to: str
    why: str


def check_proposal(
    proposal: FreeProposal, cause: str, assessment: Assessment, library: Library, language: Language
) -> ProposedChange | str:
    """Check one proposal: gives the change, or why there is none."""
    if not proposal.key or not proposal.to:
        return Message("model.names-no-value")
    if proposal.kind == "package":
        return _package(proposal, assessment, library)
    if proposal.kind == "command" or not _KEY.fullmatch(proposal.key):
        return Message("model.no-setting")
    found = next(_specs(proposal, assessment, library), None)
    if found is None:
        return _unknown(proposal, assessment, library)
    change = _change(proposal, found)
    made, why = check_change(change, cause, assessment.report, library, assessment.settings, language)
    if made is None:
        return why
    if _is_of_log(proposal, assessment):
        return made.model_copy(update={"status": "unverified"})
    return made


def _specs(proposal: FreeProposal, assessment: Assessment, library: Library) -> Iterator[SettingSpec]:
    """Yield what the catalogue knows under the key: of the named framework, then of the job's."""
    report, known = assessment.report, known_frameworks()
    named = proposal.framework.lower().strip()
    mine = sorted(settable_frameworks(report)) + sorted(shown_frameworks(report))
    for framework in dict.fromkeys([named, *mine, *sorted(known.everywhere)]):
        for key in dict.fromkeys((proposal.key, unsigned(proposal.key))):
            if spec := library.setting(framework, key, report.version(framework)):
                yield spec


def _change(proposal: FreeProposal, spec: SettingSpec) -> Change:
    value = typed_value(proposal.to)
    to: Scalar = value if value is not None else proposal.to
    if spec.type == "float" and isinstance(to, str):
        with_point = re.fullmatch(r"-?\d{0,12}\.\d{1,12}", to)
        to = float(to) if with_point else to
    kind: ChangeKind = spec.spelled if spec.spelled in ("flag", "env", "package") else "setting"
    return Change(
        framework=spec.framework, kind=kind, key=spec.key, to=to, why=Text(en=proposal.why, zh=proposal.why)
    )


def _unknown(proposal: FreeProposal, assessment: Assessment, library: Library) -> ProposedChange | str:
    """Judge a key that the catalogue does not hold: the job's own files may prove that there is one."""
    report, known = assessment.report, known_frameworks()
    now = value_of(proposal.key, assessment.settings)
    if now is not None and same(now, proposal.to):
        return Message("changes.job-value")
    framework = proposal.framework.lower().strip()
    if now is None and sum(name == framework for name, _ in library.specs) >= MANY:
        return Message("model.not-catalogue-version", framework=framework)
    # Settings of the job's own files stand on no line of the log.
    own = value_of(proposal.key, [item for item in assessment.settings if item.line == 0])
    alike = type(typed_value(own)) is type(typed_value(proposal.to))
    proved = own is not None and alike and not is_guidance(proposal.to)
    return ProposedChange(
        framework=framework if framework in known.rows else min(settable_frameworks(report), default=""),
        kind=next((kind for kind in KINDS if kind == proposal.kind), "setting"),
        key=proposal.key,
        from_=now,
        to=proposal.to,
        why=proposal.why,
        status="verified" if proved and not _is_of_log(proposal, assessment) else "unverified",
    )


def _package(proposal: FreeProposal, assessment: Assessment, library: Library) -> ProposedChange | str:
    """Take a version of a package that the log or the catalogue names; it is told and not written."""
    name = proposal.key.strip()
    if not _PACKAGE.fullmatch(name) or not _is_version(proposal.to):
        return Message("model.no-package-version")
    bare = _normal(name.partition("[")[0])
    words = {_normal(word) for word in _shown_words(assessment)}
    known = {_normal(key) for _, key in library.specs} | {_normal(row) for row in known_frameworks().rows}
    if bare not in words and bare not in known:
        return Message("model.no-known-package")
    seen = assessment.report.version(bare)
    if seen and proposal.to.strip("= v") == seen:
        return Message("changes.job-value")
    return ProposedChange(
        framework=bare if bare in known_frameworks().rows else "python",
        kind="package",
        key=name,
        from_=seen,
        to=proposal.to,
        why=proposal.why,
        status="unverified",
        in_words=True,
    )


def _is_version(text: str) -> bool:
    plain = text.strip()
    try:
        if plain[:1] in "=<>!~":
            return bool(str(SpecifierSet(plain)))
        return bool(str(Version(plain)))
    except (InvalidSpecifier, InvalidVersion):
        return False


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _shown_words(assessment: Assessment) -> set[str]:
    report = assessment.report
    texts = [*report.texts.values(), *report.launches, *(item.name for item in report.frameworks)]
    return {word for text in texts for word in re.findall(r"[A-Za-z][\w.-]{1,60}", text)}


def _is_of_log(proposal: FreeProposal, assessment: Assessment) -> bool:
    """Tell whether a line of the log names both key and value, so that its writer may be who proposes it."""
    value = proposal.to.strip()
    if _COMMON.fullmatch(value):
        value = ""
    key = last_level(proposal.key).replace("_", "[-_]")
    said = re.compile(
        rf"(?i){key}.{{0,80}}{re.escape(value)}" if value else rf"(?i){key}\W{{0,4}}(?:to|as|=)\W"
    )
    now = value_of(proposal.key, assessment.settings)
    lines = [text for text in assessment.report.texts.values() if said.search(text)]
    # A job prints its own settings: a line with the present value is of that kind.
    return any(now is None or now not in text for text in lines)
