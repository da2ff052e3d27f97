"""Settings that a question names: what each does, its default and range, and what the job has it at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpus.frameworks import known_frameworks
from corpus.keys import canonical, last_level
from corpus.library import Library
from corpus.message import words
from corpus.schema import Language, SettingSpec
from ingest.logs.report import CrashReport

# A word that is written as settings are: with an underline, dots or dashes, or in capitals.
_KEY = re.compile(
    r"(?<![\w./-])-{0,2}([A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+|[A-Z][A-Z0-9]{3,}_[A-Z0-9_]+)(?![\w/])"
)
MOST = 3


def named_settings(text: str, library: Library, report: CrashReport) -> list[SettingSpec]:
    """Give the settings that a text names, of the frameworks that the job runs; the job's own first."""
    frameworks = [
        *dict.fromkeys([*(found.name for found in report.frameworks), *known_frameworks().holding_variables])
    ]
    found: dict[tuple[str, str], SettingSpec] = {}
    for match in _KEY.finditer(text):
        spec = next(_specs(match[1].rstrip("."), frameworks, library, report), None)
        if spec is not None:
            found.setdefault((spec.framework, spec.key), spec)
    return list(found.values())[:MOST]


def _specs(
    key: str, frameworks: Sequence[str], library: Library, report: CrashReport
) -> Iterator[SettingSpec]:
    for framework in frameworks:
        if spec := library.setting(framework, key, report.version(framework)):
            yield spec
    # People name the last part of a long key.
    tail = canonical(key)
    ours = [
        spec
        for spec in library.specs.values()
        if spec.framework in frameworks and last_level(spec.key) == tail
    ]
    yield from sorted(ours, key=lambda spec: (not spec.explained, frameworks.index(spec.framework)))


def describe_setting(spec: SettingSpec, report: CrashReport, language: Language) -> str:
    """Say what is known of a setting in one paragraph."""
    facts = [f"{spec.framework}, {spec.type}", *_facts(spec, language)]
    here = _value_here(spec, report)
    if here is not None:
        facts.append(f"{_label('here', language)} `{here}`")
    effect = spec.effect.to(language) if spec.explained else ""
    costs = f" {_label('costs', language).capitalize()}: {spec.costs.to(language)}" if spec.costs else ""
    return f"`{spec.key}` ({'; '.join(facts)}). {effect}{costs}".strip()


def at_this_job(spec: SettingSpec, report: CrashReport, library: Library, language: Language) -> str:
    """Say which versions have a setting, how it is spelled at the job's, and what of it is not known."""
    owner = spec.read_by or spec.framework
    version = report.version(owner)
    names = library.names(spec.framework, spec.key, version)
    parts = (
        [words("tools.setting-exists", language, owner=owner, versions=spec.versions)]
        if spec.versions
        else []
    )
    if version:
        told = "tools.setting-spelled" if names else "tools.setting-not-there"
        spelled = ", ".join(names[:4])
        parts.append(words(told, language, owner=owner, version=version, names=spelled))
    if _value_here(spec, report) is None:
        parts.append(words("tools.setting-no-value", language))
    unknown = {
        "effect": not spec.explained,
        "default": spec.default is None,
        "range": spec.type in ("int", "float", "size") and spec.min is None and spec.max is None,
        "costs": spec.costs is None,
    }
    if missing := [
        words(f"tools.unknown-{what}", language) for what, is_missing in unknown.items() if is_missing
    ]:
        what = words("tools.then", language).join(missing)
        parts.append(words("tools.setting-unknown", language, what=what))
    return " ".join(parts)


def _value_here(spec: SettingSpec, report: CrashReport) -> str | None:
    tail = last_level(spec.key)
    values = (item.value for item in report.settings if item.key == spec.key or last_level(item.key) == tail)
    return next(values, None)


def _facts(spec: SettingSpec, language: Language) -> Iterator[str]:
    if spec.default is not None:
        yield f"{_label('default', language)} `{spec.default}`"
    if spec.choices:
        yield f"{_label('choices', language)} {', '.join(f'`{choice}`' for choice in spec.choices[:12])}"
    if spec.min is not None or spec.max is not None:
        low, high = ("…" if bound is None else f"{bound:g}" for bound in (spec.min, spec.max))
        yield _label("range", language, low=low, high=high)
    if spec.unit:
        yield f"{_label('unit', language)} {spec.unit}"


def _label(name: str, language: Language, **values: object) -> str:
    return words(f"replies.setting-{name}", language, **values)
