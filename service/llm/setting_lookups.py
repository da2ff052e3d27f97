"""Settings that a question names: what each does, its default and range, and what the job has it at."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpus.library import Library
from corpus.schema import Language, SettingSpec
from ingest.logs.report import CrashReport

# A word that is written as settings are: with an underline, dots or dashes, or in capitals.
_KEY = re.compile(r"(?<![\w./-])-{0,2}([A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+|[A-Z][A-Z0-9]{3,}_[A-Z0-9_]+)(?![\w/])")
MOST = 3
_LABELS = {
    "default": ("default", "默认"), "choices": ("one of", "可选"), "range": ("from {low} to {high}", "范围 {low} 到 {high}"),
    "here": ("this job has", "此作业为"), "costs": ("costs", "代价"), "unit": ("in", "单位"),
}


def named_settings(text: str, library: Library, report: CrashReport) -> list[SettingSpec]:
    """Give the settings that a text names, of the frameworks that the job runs; the job's own first."""
    frameworks = [*dict.fromkeys([*(found.name for found in report.frameworks), "env"])]
    found: dict[tuple[str, str], SettingSpec] = {}
    for match in _KEY.finditer(text):
        knob = next(_knobs(match[1].rstrip("."), frameworks, library, report), None)
        if knob is not None:
            found.setdefault((knob.framework, knob.key), knob)
    return list(found.values())[:MOST]


def _knobs(key: str, frameworks: Sequence[str], library: Library, report: CrashReport) -> Iterator[SettingSpec]:
    for framework in frameworks:
        if knob := library.setting(framework, key, report.version(framework)):
            yield knob
    # People name the last part of a long key.
    tail = key.replace("-", "_")
    ours = [knob for knob in library.knobs.values() if knob.framework in frameworks and _last(knob.key) == tail]
    yield from sorted(ours, key=lambda knob: (not knob.explained, frameworks.index(knob.framework)))


def _last(key: str) -> str:
    return key.lstrip("-").rpartition(".")[2].replace("-", "_")


def describe_setting(knob: SettingSpec, report: CrashReport, language: Language) -> str:
    """Say what is known of a setting in one paragraph."""
    facts = [f"{knob.framework}, {knob.type}", *_facts(knob, language)]
    tail = _last(knob.key)
    here = next((item.value for item in report.settings if item.key == knob.key or _last(item.key) == tail), None)
    if here is not None:
        facts.append(f"{_label('here', language)} `{here}`")
    effect = knob.effect.to(language) if knob.explained else ""
    costs = f" {_label('costs', language).capitalize()}: {knob.costs.to(language)}" if knob.costs else ""
    return f"`{knob.key}` ({'; '.join(facts)}). {effect}{costs}".strip()


def _facts(knob: SettingSpec, language: Language) -> Iterator[str]:
    if knob.default is not None:
        yield f"{_label('default', language)} `{knob.default}`"
    if knob.choices:
        yield f"{_label('choices', language)} {', '.join(f'`{choice}`' for choice in knob.choices[:12])}"
    if knob.min is not None or knob.max is not None:
        low, high = ("…" if bound is None else f"{bound:g}" for bound in (knob.min, knob.max))
        yield _label("range", language).format(low=low, high=high)
    if knob.unit:
        yield f"{_label('unit', language)} {knob.unit}"


def _label(name: str, language: Language) -> str:
    return _LABELS[name][language == "zh"]
