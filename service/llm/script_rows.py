"""A row of a launch script as a model would have it: which option or variable of it is another."""

from __future__ import annotations

import re
from typing import NamedTuple

from ingest.logs.report import CrashReport

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch", ".sub", ".pbs")
_DIRECTIVE = re.compile(r"#[A-Z]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")


class ChangedOption(NamedTuple):
    """The kind of what a row sets, as a proposal has it, its name and the value that it is to have."""

    kind: str
    key: str
    to: str


def changed_option(place: str, before: str, after: str, report: CrashReport) -> ChangedOption | None:
    """Give the one option or variable that two forms of a row differ in; None where they do in more.

    The row has to stand in one of the job's scripts, as `place` says.
    """
    file = re.sub(r":\d+$", "", place.strip()).replace("\\", "/").rpartition("/")[2]
    rows = (
        row.strip()
        for text in report.launches
        if text.rpartition("\n")[2].rpartition("/")[2] == file and file.lower().endswith(SCRIPTS)
        for row in text.split("\n")
    )
    if "\n" in before.strip() or "\n" in after.strip() or before.strip() not in rows:
        return None
    old, new = ([word for word in text.split() if word != "\\"] for text in (before, after))
    lead = f"{old[0]} " if old and _DIRECTIVE.fullmatch(old[0]) else ""
    found = _replaced(old, new) if len(old) == len(new) else _added(old, new)
    if found is None:
        return None
    key, value = found
    if _OPTION.fullmatch(key):
        return ChangedOption("setting" if lead else "flag", f"{lead}{key}", value)
    return ChangedOption("env" if key.isupper() else "setting", key, value) if _NAME.fullmatch(key) else None


def _replaced(old: list[str], new: list[str]) -> tuple[str, str] | None:
    places = [place for place, (was, to) in enumerate(zip(old, new, strict=True)) if was != to]
    if len(places) != 1:
        return None
    was, to = old[places[0]], new[places[0]]
    key, sign, value = to.partition("=")
    if sign and was.startswith(f"{key}="):
        return key, value.strip("'\"")
    above = old[places[0] - 1] if places[0] else ""
    return (above, to.strip("'\"")) if _OPTION.fullmatch(above) and not to.startswith("-") else None


def _added(old: list[str], new: list[str]) -> tuple[str, str] | None:
    count = len(new) - len(old)
    if count not in (1, 2):
        return None
    at = next((place for place, word in enumerate(old) if word != new[place]), len(old))
    more = new[at : at + count]
    if new[at + count :] != old[at:]:
        return None
    key, sign, value = more[0].partition("=")
    if count == 1:
        return (key, value.strip("'\"") if sign else "true") if _OPTION.fullmatch(key) else None
    return (more[0], more[1].strip("'\"")) if _OPTION.fullmatch(more[0]) and more[1][:1] != "-" else None
