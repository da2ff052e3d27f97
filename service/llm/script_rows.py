"""A row of a launch script as a model would have it: which option or variable of it is another."""

from __future__ import annotations

import re
from typing import NamedTuple

from corpus.keys import canonical
from corpus.library import Library
from corpus.paths import base_name
from ingest.configfiles.formats import CODE
from ingest.configfiles.shell.spelling import is_switch
from ingest.logs.report import CrashReport

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch", ".sub", ".pbs")
_DIRECTIVE = re.compile(r"#[A-Z]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
# By which a shell begins another command, or writes to a file.
_SHELL = re.compile(r"[;|&`<>\n]|\$\(")
# By which an interpreter or a launcher is told what to run.
_RUNS = frozenset({"-c", "-m"})


class ChangedOption(NamedTuple):
    """The kind of what a row sets, as a proposal has it, its name and the value that it is to have."""

    kind: str
    key: str
    to: str


class _Replaced(NamedTuple):
    """What a row has in place of `was`; `is_joined` where its name stands in the same word."""

    key: str
    to: str
    was: str = ""
    is_joined: bool = True


def changed_option(
    place: str, before: str, after: str, report: CrashReport, library: Library
) -> ChangedOption | None:
    """Give the one option or variable that two forms of a row differ in; None where they do in more.

    The row has to stand in one of the job's scripts, as `place` says. A word behind an option is its value
    only where the option is known to take one: it may be the script that is run, or the model that is served.
    """
    file = base_name(re.sub(r":\d+$", "", place.strip()))
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
    if (
        found is None
        or found.key in _RUNS
        or _SHELL.search(found.to)
        or found.to.lower().endswith((*SCRIPTS, *CODE))
    ):
        return None
    if not found.is_joined and not _takes_value(found, report, library):
        return None
    key = found.key
    if _OPTION.fullmatch(key):
        return ChangedOption("setting" if lead else "flag", f"{lead}{key}", found.to)
    is_name = _NAME.fullmatch(key) is not None
    return ChangedOption("env" if key.isupper() else "setting", key, found.to) if is_name else None


def _replaced(old: list[str], new: list[str]) -> _Replaced | None:
    places = [place for place, (was, to) in enumerate(zip(old, new, strict=True)) if was != to]
    if len(places) != 1:
        return None
    was, to = old[places[0]], new[places[0]]
    key, sign, value = to.partition("=")
    if sign and was.startswith(f"{key}="):
        return _Replaced(key, value.strip("'\""))
    above = old[places[0] - 1] if places[0] else ""
    if not _OPTION.fullmatch(above) or to.startswith("-"):
        return None
    return _Replaced(above, to.strip("'\""), was.strip("'\""), is_joined=False)


def _takes_value(found: _Replaced, report: CrashReport, library: Library) -> bool:
    """Tell whether an option has the word behind it as its value, by the library or by the settings read.

    The library goes first: a script's reader takes the word behind an unknown switch for its value.
    """
    if is_switch(found.was) and is_switch(found.to):
        return True
    own = {framework.name for framework in report.frameworks}
    specs = [spec for name in library.keys if (spec := library.setting(name, found.key)) is not None]
    known = [spec for spec in specs if spec.framework in own]
    if any(spec.type == "bool" for spec in known or specs):
        return False
    return bool(known) or any(
        setting.file and setting.value == found.was and canonical(setting.key) == canonical(found.key)
        for setting in report.settings
    )


def _added(old: list[str], new: list[str]) -> _Replaced | None:
    count = len(new) - len(old)
    if count not in (1, 2):
        return None
    at = next((place for place, word in enumerate(old) if word != new[place]), len(old))
    more = new[at : at + count]
    if new[at + count :] != old[at:]:
        return None
    key, sign, value = more[0].partition("=")
    if not _OPTION.fullmatch(key if count == 1 else more[0]):
        return None
    if count == 1:
        return _Replaced(key, value.strip("'\"") if sign else "true")
    return _Replaced(more[0], more[1].strip("'\"")) if more[1][:1] != "-" else None
