"""Settings that name a file which is not there by a slip: one of nearly that name is, or a sign is excess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from corpus.keys import canonical
from corpus.message import in_both
from ingest.logs.configs.launch import Setting
from ingest.logs.report import CrashReport
from service.remediation.code_edits.names import near
from service.remediation.named_options import NamedOption
from service.remediation.own_edits import job_files

# The interpreter, and those who say it in words: Objects/exceptions.c, OSError_str.
_MISSING = re.compile(
    r"(?i)(?:No such file or directory|not found|does not exist|unable to find|couldn't find)"
    r"[^'\"\n]{0,60}['\"](?P<behind>[^'\"\n]{1,300})['\"]"
    r"|['\"](?P<before>[^'\"\n]{1,300})['\"][^'\"\n]{0,40}(?:not found|does not exist|No such file)"
)
# A sign that a command's words are set apart with elsewhere, at the end of a value.
_STRAY = re.compile(r"(?<=\w)(?P<sign>[,;])$")
_TYPED = frozenset({"flag", "hydra", "env", "directive"})
# How short a name is at least that another one begins with: `val` of `valid`.
_SHORTEST = 3


def missed_path(report: CrashReport) -> str | None:
    """Give the path of which the failing line says that it is not there; None where it says that of none."""
    match = _MISSING.search(report.root.body) if report.root is not None else None
    return (match["behind"] or match["before"]) if match is not None else None


def near_files(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the settings whose path is missed, with the job's file of that folder and kind that is near."""
    path = missed_path(report)
    if path is None:
        return []
    missed = PurePosixPath(path)
    names = [PurePosixPath(file.name) for file in job_files(report)]
    found: dict[str, NamedOption] = {}
    for setting in settings:
        text = setting.value.strip("'\"")
        given = PurePosixPath(text)
        if not text or not missed.suffix or not f"/{missed}".endswith(f"/{given}") or given in names:
            continue
        # The job's files of that folder and kind.
        folder = f"/{given.parent}".replace("/./", "/")
        alike = (name for name in names if name.suffix == given.suffix)
        beside = [name.stem for name in alike if f"/{name.parent}".endswith(folder)]
        stem = _near_stem(given.stem, beside)
        if stem:
            value = str(given.with_name(f"{stem}{given.suffix}"))
            why = in_both("changes.file-here", old=text, new=value)
            option = NamedOption(setting.key, setting.value, value=value, why=why, proves=True)
            found.setdefault(canonical(setting.key), option)
    return list(found.values())


def stray_signs(report: CrashReport, settings: Sequence[Setting]) -> list[NamedOption]:
    """Give the settings of a command whose value ends with a sign that the missed path has within it."""
    missed = missed_path(report)
    if missed is None:
        return []
    found: dict[str, NamedOption] = {}
    for setting in settings:
        value = setting.value.strip("'\"")
        slip = _STRAY.search(value) if setting.spelled in _TYPED else None
        if slip is None or f"/{PurePosixPath(value).name}/" not in f"/{missed}/":
            continue
        why = in_both("changes.stray-sign", sign=slip["sign"], path=missed)
        option = NamedOption(setting.key, setting.value, value=value[: slip.start()], why=why, proves=True)
        found.setdefault(canonical(setting.key), option)
    return list(found.values())


def _near_stem(stem: str, others: Sequence[str]) -> str | None:
    """Give the one name that is this one cut short or in full, else that it is plainly a slip of."""
    longer = [
        other
        for other in others
        if min(len(stem), len(other)) >= _SHORTEST and (other.startswith(stem) or stem.startswith(other))
    ]
    return longer[0] if len(longer) == 1 else near(stem, others)
