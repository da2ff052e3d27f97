"""The value of a change: what a rule computes from the job's log, else the change's own where that helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from corpus.message import Message
from corpus.rules import ValueRule
from corpus.schema import Change, Language, Scalar, SettingSpec
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.feasibility import value_of
from service.remediation.rules.context import CannotHelp, ComputedValue, DependentSetting
from service.remediation.setting_values import misfit_reason
from service.remediation.values import (
    at_least_told,
    beyond_default,
    compute_value,
    leads_astray,
    printed_number,
    rule_context,
    rule_for,
)
from service.schemas.value_bounds import ValueBounds


class ValuedJob(Protocol):
    """What a value is computed from: the log, the settings of the job's files, and the answer's language."""

    @property
    def report(self) -> CrashReport:
        """What the log shows."""

    @property
    def settings(self) -> Sequence[Setting]:
        """The settings of the log and of the job's files."""

    @property
    def language(self) -> Language:
        """The language of the answer."""


@dataclass(frozen=True)
class ProposedValue:
    """The value to propose, in what words, and why it would not help after all."""

    to: Scalar
    because: str = ""
    also: tuple[DependentSetting, ...] = ()
    useless: str = ""
    proof: str | None = None
    bounds: ValueBounds | None = None
    present: str | None = None


def proposed_value(
    change: Change, spec: SettingSpec | None, now: str | None, cause: str, job: ValuedJob
) -> ProposedValue:
    """Compute the value where a rule does; else the case's own stands."""
    rule = rule_for(change, spec, cause) if spec is not None else None
    if spec is None or rule is None:
        return ProposedValue(change.to)
    # What failed is the log's value; the job's own file may hold another by now, such as this answer's.
    failed = value_of(change.key, job.report.settings) or now
    made = compute_value(rule, rule_context(change, spec, failed, cause, job.report, job.settings))
    if isinstance(made, CannotHelp):
        return ProposedValue(change.to, useless=made.because.to(job.language))
    if made is None or misfit_reason(made.value, spec) or leads_astray(rule, spec, now, made.value):
        if leads_astray(rule, spec, now, change.to):
            useless = Message("changes.job-further-direction", now=now)
            return ProposedValue(change.to, useless=useless)
        printed = printed_number(change.key, job.report.texts.values()) if now is None else None
        if leads_astray(rule, spec, printed, change.to):
            return _beside_printed(change, spec, rule, printed, cause, job)
        to = beyond_default(change, spec, now, rule, job.language)
        message = job.report.root.body if job.report.root is not None else ""
        return ProposedValue(at_least_told(rule, spec, to, message))
    because = made.because.to(job.language)
    present = None if made.present is None else str(made.present)
    proof, bounds = (because, made.bounds) if made.proves else (None, None)
    return ProposedValue(made.value, because, made.also, proof=proof, bounds=bounds, present=present)


def _beside_printed(
    change: Change, spec: SettingSpec, rule: ValueRule, printed: str | None, cause: str, job: ValuedJob
) -> ProposedValue:
    """Compute the value from what the log prints, from where the table's own moves the wrong way."""
    made = compute_value(rule, rule_context(change, spec, printed, cause, job.report, job.settings))
    if not isinstance(made, ComputedValue):
        return ProposedValue(change.to, useless=Message("changes.job-further-direction", now=printed))
    return ProposedValue(made.value, made.because.to(job.language), made.also, present=printed)
