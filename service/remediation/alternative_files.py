"""Configurations that stand beside the one that the launch line chooses, and that the run has not read.

`zero3_offload.json` beside `--deepspeed zero3.json` has settings that are none of this run; where a remedy
asks for one that it has, the other file is the change that the job's own people have made ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from corpus.keys import canonical
from corpus.message import joined, words
from corpus.schema import Language
from ingest.configfiles import reader
from ingest.configfiles.remarks import without_remarks
from ingest.configfiles.settings import Setting
from ingest.logs.report import CrashReport
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.feasibility import same
from service.remediation.own_edits import job_files
from service.schemas.diagnosis import ProposedChange

_DATA = frozenset({".json", ".yaml", ".yml", ".toml"})
_SCRIPT = re.compile(r"\.(?:sh|bash|slurm|sbatch)$|(?:^|/)Makefile$")
# Of the keys that the chosen file has, so many at least an alternative has too.
SHARED = 0.6


def unchosen(files: Sequence[JobFile], report: CrashReport) -> Mapping[str, str]:
    """Give the files that the launch line could have chosen and did not, each with the one that it did."""
    data = [file for file in files if PurePosixPath(_plain(file.name)).suffix in _DATA]
    if len(data) < 2:
        return {}
    command = report.command[1]
    scripts = [without_remarks(f"{file.text}\n{file.name}") for file in files if _SCRIPT.search(file.name)]
    named = {file.name for file in data if _is_named(file.name, (command,))}
    told = {file.name for file in data if _is_named(file.name, scripts)}
    # Where the command is not seen, a script that names one of them tells which it chooses.
    chosen, others = (named, data) if named else (told, [file for file in data if file.name not in told])
    found: dict[str, str] = {}
    for other in others:
        keys = _keys(other)
        alike = [
            file
            for file in data
            if file.name in chosen and other.name not in chosen and _shares(_keys(file), keys, file, other)
        ]
        if len(alike) == 1:
            found[other.name] = alike[0].name
    return found


def with_switches(
    changes: Sequence[ProposedChange], report: CrashReport, settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Offer the other file in place of a change that it has, by the option that chooses between them."""
    files = job_files(report)
    others = unchosen(files, report) if changes else {}
    made: list[ProposedChange] = []
    for change in changes:
        holder = next((name for name in others if _has(name, change, files)), None)
        option = _option(others[holder], settings) if holder is not None else None
        if holder is None or option is None or change.kind == "code":
            made.append(change)
            continue
        path, name = PurePosixPath(_plain(option.value)), PurePosixPath(_plain(holder)).name
        why = words("changes.other-file", language, file=name, key=change.key, value=change.to)
        switch = change.model_copy(
            update={
                "framework": "python",
                "kind": "flag",
                "key": f"--{option.key.lstrip('-')}",
                "from_": option.value,
                "to": option.value.replace(path.name, name),
                "why": joined(change.why, why, language),
                "status": "verified",
            }
        )
        if all(switch.key != each.key for each in made):
            made.append(switch)
    switches = [change for change in made if change not in changes]
    rest = [change for change in made if change in changes]
    proved = [change for change in rest if change.proof and change.from_ is not None]
    return [*proved, *switches, *(change for change in rest if change not in proved)]


def _has(name: str, change: ProposedChange, files: Iterable[JobFile]) -> bool:
    """Tell whether a file has a change's setting with its value."""
    text = next(file.text for file in files if file.name == name)
    given = [item.value for item in reader.read(text, name) if canonical(item.key) == canonical(change.key)]
    return bool(given) and all(same(value, change.to) for value in given)


def _option(chosen: str, settings: Sequence[Setting]) -> Setting | None:
    """Give the option of the launch line whose value is the chosen file."""
    name = PurePosixPath(_plain(chosen)).name
    found = {
        canonical(item.key): item
        for item in settings
        if item.spelled == "flag" and PurePosixPath(_plain(item.value.strip("'\""))).name == name
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _is_named(name: str, texts: Iterable[str]) -> bool:
    """Tell whether a command hands a file to an option; what code or another file names chooses nothing."""
    leaf = re.escape(PurePosixPath(_plain(name)).name)
    return any(
        re.search(rf"(?<!\S)--?[\w.-]+[ =]+['\"]?(?:[^\s'\"]*/)?{leaf}(?![\w-])", text) for text in texts
    )


def _keys(file: JobFile) -> frozenset[str]:
    return frozenset(canonical(item.key) for item in reader.read(file.text, file.name))


def _shares(chosen: frozenset[str], other: frozenset[str], file: JobFile, alternative: JobFile) -> bool:
    is_kind = PurePosixPath(file.name).suffix == PurePosixPath(alternative.name).suffix
    return is_kind and bool(chosen) and len(chosen & other) >= SHARED * len(chosen)


def _plain(path: str) -> str:
    return path.replace("\\", "/")
