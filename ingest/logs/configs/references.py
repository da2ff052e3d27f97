"""What settings of a job's own files come to where they name variables: as the log shows, or by default."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from corpus.keys import canonical
from ingest.configfiles.settings import Setting

# `$NAME`, `${NAME}`, and with what stands for it where it is not given: `${NAME:-8}`, `${1:-8}`.
_REFERENCE = re.compile(
    r"\$(?:(?P<bare>[A-Za-z_]\w*)"
    r"|\{(?P<name>[A-Za-z_]\w*|\d+)(?::?[-=]\"?(?P<default>[\w./:@%+,=-]+)\"?)?\})",
    re.ASCII,
)
# A variable may be made of further ones; one that repeats itself is not followed.
_DEPTH = 5


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
