"""Proposed changes: a case's settings, checked against the catalogue and the job's own configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from corpus.library import Library, fits
from corpus.predicates import compare
from corpus.schema import Case, Change, Knob, Language, Scalar
from ingest.logs.conditions import all_hold
from ingest.logs.launch import Setting
from ingest.logs.report import CrashReport
from service.diagnosis import Dropped, ProposedChange

# Kinds of change that belong to no framework of the job, so that the log need not show it.
_EVERYWHERE = frozenset({"env", "pip", "docker", "host", "linux", "slurm", "kubernetes", "nccl", "ray", "pytorch", "python"})


def propose(
    cases: Sequence[Case], report: CrashReport, library: Library, settings: Sequence[Setting], language: Language
) -> tuple[list[ProposedChange], list[Dropped]]:
    """Give the changes of the cases that apply to this job, and those that were dropped with the reason."""
    kept: dict[tuple[str, str], ProposedChange] = {}
    dropped: list[Dropped] = []
    for case in cases:
        for change in case.changes:
            if _is_told(change, kept, settings) or not all_hold(change.when, report.view()):
                continue
            made = _checked(change, case, report, library, settings, language)
            if isinstance(made, ProposedChange):
                kept[(change.framework, change.key)] = made
            elif made is not None:
                dropped.append(made)
    return list(kept.values()), dropped


def _is_told(change: Change, kept: Mapping[tuple[str, str], ProposedChange], settings: Sequence[Setting]) -> bool:
    """Tell whether the setting is among the kept ones, under this or another version's name."""
    if (change.framework, change.key) in kept:
        return True
    last = _spelling(change.key).split(".")[-1]
    same = [key for framework, key in kept if framework == change.framework and _spelling(key).split(".")[-1] == last]
    # Renamed settings end alike (`adam_offload`, `ds.adam_offload`); keys of two roles do too, but share a depth.
    renamed = [key for key in same if key.count(".") != change.key.count(".")]
    return bool(renamed) and value_of(change.key, settings) is None


def _checked(
    change: Change, case: Case, report: CrashReport, library: Library, settings: Sequence[Setting], language: Language
) -> ProposedChange | Dropped | None:
    seen = {found.name for found in report.frameworks}
    version = report.version(change.framework)
    if change.framework not in seen and change.framework not in _EVERYWHERE and seen & set(case.frameworks):
        return None  # the case serves several frameworks, and this change is for another one
    if not fits(version, change.versions):
        return Dropped(what=f"{change.framework}: {change.key}", why=f"not for version {version} ({change.versions})")
    knob = library.knob(change.framework, change.key, version)
    if knob is None and change.kind in ("setting", "flag", "env"):
        return Dropped(what=f"{change.framework}: {change.key}", why=f"not in the catalogue for version {version or 'unknown'}")
    if knob is not None and (reason := misfit(change.to, knob)):
        return Dropped(what=f"{change.framework}: {change.key}={change.to}", why=reason)
    now = value_of(change.key, settings)
    if now is not None and _same(now, change.to):
        return Dropped(what=f"{change.framework}: {change.key}={change.to}", why="the job has this value already")
    known = knob is not None and not is_guidance(change.to) and (change.framework in seen or change.framework in _EVERYWHERE)
    return ProposedChange(
        framework=change.framework, kind=change.kind, key=change.key, from_=now, to=change.to,
        why=change.why.to(language), costs=change.costs.to(language) if change.costs else "", from_case=case.id,
        status="verified" if known else "unverified",
    )


def misfit(value: Scalar, knob: Knob) -> str:
    """Say why a value is none for a setting, or give the empty string."""
    if is_guidance(value) or value in knob.choices or value == knob.default:
        return ""
    if knob.type == "bool":
        return "" if str(value).lower() in ("true", "false", "0", "1") else f"{value!r} is no bool"
    if knob.type in ("int", "float"):
        number = _number(value, knob.type)
        if number is None:
            return f"{value!r} is no {knob.type}"
        return _outside(number, knob)
    return f"{value!r} is none of {', '.join(map(str, knob.choices))}" if knob.choices else ""


def _number(value: Scalar, kind: str) -> float | None:
    try:
        number = float(value) if not isinstance(value, bool) else None
    except ValueError:
        return None
    return None if number is None or not math.isfinite(number) or (kind == "int" and number != int(number)) else number


def _outside(number: float, knob: Knob) -> str:
    if knob.min is not None and number < knob.min:
        return f"{number:g} is under the least value {knob.min:g}"
    if knob.max is not None and number > knob.max:
        return f"{number:g} is over the greatest value {knob.max:g}"
    return ""


def is_guidance(value: object) -> bool:
    """Tell whether a change says in words how to choose the value; it is shown, and never written to a file."""
    return isinstance(value, str) and " " in value.strip()


def value_of(key: str, settings: Sequence[Setting]) -> str | None:
    """Give the job's own value of a setting, however it is spelled; None where it is not shown."""
    wanted = _spelling(key)
    for setting in settings:
        if _spelling(setting.key) == wanted:
            return setting.value
    return None


def _spelling(key: str) -> str:
    return key.lstrip("+~-").replace("-", "_")


def _same(now: str, to: object) -> bool:
    return compare(now.strip("'\""), "==", str(to))
