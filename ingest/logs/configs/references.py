"""What settings of a job's own files come to where they name variables: as the log shows, or by default."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from corpus.keys import canonical
from ingest.configfiles.settings import Setting

# `$NAME`, `${NAME}`, and with what stands for it where it is not given: `${NAME:-8}`, `${1:-8}`.
_REFERENCE = re.compile(
    r"\$(?:(?P<bare>[A-Za-z_]\w*)"
    r"|\{(?P<name>[A-Za-z_]\w*|\d+)(?::?[-=]\"?(?P<default>[\w./:@%+,=-]+)\"?)?\})",
    re.ASCII,
)
# Settings of one file that are others than the run's: with as many, another file ran.
OTHERS = 2
# What starts a run, or lists what it needs, is printed by no program.
_KEPT = frozenset({"directive", "package", "env"})
# A variable may be made of further ones; one that repeats itself is not followed.
_DEPTH = 5


def as_run(own: Sequence[Setting], shown: Sequence[Setting], last: int = 0) -> tuple[Setting, ...]:
    """Give the files' settings as the run had them, where its output prints other numbers or switches.

    A file may be of another run, or edited since. One of settings that the output contradicts in more keys
    than it confirms is another run's: what it alone has is left out. What a command gives beside a file
    contradicts nothing. `last` is the failing line: of several prints the last one before it counts.
    """
    told: dict[str, list[Setting]] = {}
    for setting in sorted(shown, key=lambda item: item.line):
        if 0 < setting.line <= (last or setting.line):
            told.setdefault(canonical(setting.key), []).append(setting)
    held: dict[tuple[str, str], bool] = {}
    for setting in own:
        if (same := _is_held(setting, told)) is not None:
            # A script may start several programs, one of which is the run.
            place = setting.file, canonical(setting.key)
            held[place] = held.get(place, False) or same
    foreign = _foreign(held, told)
    return tuple(
        replace(setting, value=told[canonical(setting.key)][-1].value)
        if _names_other_file(setting, told)
        else setting
        if held.get((setting.file, key := canonical(setting.key)), True) or setting.spelled in _KEPT
        else replace(setting, value=told[key][-1].value)
        for setting in own
        if setting.file not in foreign
        or setting.spelled in _KEPT
        or (setting.file, canonical(setting.key)) in held
    )


def _names_other_file(setting: Setting, told: Mapping[str, Sequence[Setting]]) -> bool:
    """Tell whether the run printed another file or folder under a configuration's whole key."""
    last = next(iter(told.get(canonical(setting.key), ())[-1:]), None)
    if setting.spelled != "yaml" or "." not in setting.key or last is None or last.spelled != "dump":
        return False
    here, there = (PurePosixPath(text.strip("'\"")) for text in (setting.value, last.value))
    are_paths = all("/" in str(path) and "$" not in str(path) for path in (here, there))
    # A home folder that is written out, or a link that is followed, is the same file.
    return are_paths and here.name != there.name


def _foreign(held: Mapping[tuple[str, str], bool], told: Mapping[str, Sequence[Setting]]) -> frozenset[str]:
    """Name the files of settings that the output contradicts in more keys than it confirms."""
    counts: dict[str, list[int]] = {}
    for (file, key), same in held.items():
        given = any(setting.spelled != "dump" for setting in told[key])
        if not file.endswith(".py") and (same or not given):
            counts.setdefault(file, [0, 0])[same] += 1
    return frozenset(file for file, (other, same) in counts.items() if other >= OTHERS and other > same)


def _is_held(setting: Setting, told: Mapping[str, Sequence[Setting]]) -> bool | None:
    """Tell whether the run had a file's value; None where its output does not tell, or not as plainly."""
    here = _plain(setting.value)
    there = [_plain(item.value) for item in told.get(canonical(setting.key), ())]
    if setting.spelled in _KEPT or here is None or not there or None in there:
        return None
    return here == there[-1]


def _plain(value: str) -> float | bool | None:
    """Read a number over zero or a truth value; None for what a program may have worked out or completed."""
    text = value.strip("'\"").lower()
    if text in ("true", "false"):
        return text == "true"
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number > 0 else None


def resolved(own: Sequence[Setting], shown: Sequence[Setting]) -> tuple[Setting, ...]:
    """Give the files' settings with the values that the run had.

    What the log `shows` counts first, since arguments and the environment win over a script's own defaults;
    a value that stays open is left as it is written.
    """
    logged: dict[str, str] = {}
    for setting in shown:
        if "$" not in setting.value:
            logged.setdefault(canonical(setting.key), setting.value)
    variables = {setting.key: setting.value for setting in own if setting.spelled == "env"}
    return tuple(
        replace(setting, value=logged.get(canonical(setting.key)) or _filled(setting.value, variables))
        if "$" in setting.value
        else setting
        for setting in own
    )


def _filled(value: str, variables: Mapping[str, str]) -> str:
    """Give a value with what its references stand for; as it is written where nothing tells one of them."""

    def told(found: re.Match[str]) -> str:
        held = variables.get(found["bare"] or found["name"])
        # `X=${X:-8}` names itself: only its default is left.
        if held is not None and held != found[0]:
            return held
        return found["default"] or found[0]

    made = value
    for _ in range(_DEPTH):
        made = _REFERENCE.sub(told, made)
    return value if "$" in made else made
