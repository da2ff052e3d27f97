"""Settings whose value a program refuses where the job's own files write nearly that value elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corpus.keys import canonical, last_level
from corpus.message import in_both
from corpus.refusal_words import refusal
from ingest.configfiles.formats import CODE
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.code_edits.names import near
from service.remediation.named_options import NamedOption
from service.remediation.own_edits import job_files

# A name that is written out: no number, no path and no sentence.
_NAME = re.compile(r"[A-Za-z][\w-]*[A-Za-z0-9]")
_WRITTEN = re.compile(r"(?P<quote>['\"])(?P<name>[A-Za-z][\w-]{3,59})(?P=quote)")
# Settings that a person gives, which code does not fall back to.
_GIVEN = frozenset({"flag", "hydra", "env", "yaml", "json"})


def near_values(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the settings whose value the failing line refuses, with the one that the job's files have."""
    root = report.root
    if root is None or not refusal().search(f"{root.exception}: {root.body}"):
        return []
    written = set(_written(report))
    found: dict[str, NamedOption] = {}
    for setting in settings:
        value = setting.value.strip("'\"")
        is_told = _NAME.fullmatch(value) and re.search(
            rf"(?<![\w/.-]){re.escape(value)}(?![\w/-])", root.body
        )
        if setting.spelled not in _GIVEN or not is_told or value in written:
            continue
        leaf = last_level(setting.key).lower()
        others = [
            item.value.strip("'\"")
            for item in settings
            if last_level(item.key).lower() == leaf and item.value
        ]
        # What the same setting has elsewhere counts before any name of the code.
        other = near(value, [name for name in others if _NAME.fullmatch(name)]) or near(
            value, sorted(written)
        )
        if other is not None:
            why = in_both("changes.near-value", old=value, new=other)
            option = NamedOption(setting.key, setting.value, value=other, why=why)
            found.setdefault(canonical(setting.key), option)
    return list(found.values())


def _written(report: CrashReport) -> Iterator[str]:
    """Give the names that the job's own code writes out."""
    for file in job_files(report):
        if file.name.endswith(CODE):
            yield from (match["name"] for match in _WRITTEN.finditer(file.text))
