"""The JSON text that `ray job submit --runtime-env-json` takes: the environment of a job on a cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.launches import ProgramWords
from ingest.configfiles.shell.words import Word, WordEdit

_VARIABLES = re.compile(r'"env_vars"\s*:\s*\{')
_STRING = r'"(?:[^"\\]|\\.)*"'


def held_json(text: Word) -> dict[str, str] | None:
    """Give the variables that the text sets; None where it is computed or no JSON."""
    if not text.plain:
        return None
    try:
        value = json.loads(text.text)
    except (ValueError, RecursionError):
        return None
    held = value.get("env_vars", {}) if isinstance(value, dict) else None
    return held if isinstance(held, dict) else None


def has_variables(stage: ProgramWords) -> bool:
    """Tell whether the job's environment is given in another way, such as a YAML file."""
    return any(word.text.startswith(("--runtime-env", "--working-dir=@")) for word in stage.words)


def with_variable(text: Word, name: str, value: str) -> Iterator[WordEdit]:
    """Set a variable in the JSON text, everything else as it is written."""
    held = held_json(text)
    if held is None:
        raise NotPatchableError(Message("patch.line-runtime-environment-computed", line=text.line))
    start, end, new = _place(text.text, name, json.dumps(value))
    wanted = json.loads(text.text)
    wanted["env_vars"] = {**held, name: value}
    if json.loads(text.text[:start] + new + text.text[end:]) != wanted:
        raise NotPatchableError(Message("patch.line-runtime-environment-cannot", line=text.line))
    yield text.span_replaced(start, end, new)


def _place(text: str, name: str, value: str) -> tuple[int, int, str]:
    """Give the span to replace and what comes there."""
    begin = _VARIABLES.search(text)
    if begin is None:
        at = text.rindex("}")
        full = re.search(r"\S\s*$", text[:at])
        return (
            at,
            at,
            f'{"" if full and full[0][0] == "{" else ", "}"env_vars": {{{json.dumps(name)}: {value}}}',
        )
    if found := re.compile(rf"{re.escape(json.dumps(name))}\s*:\s*({_STRING}|[^,}}\s]+)").search(
        text, begin.end()
    ):
        return found.start(1), found.end(1), value
    comma = "" if text[begin.end() :].lstrip().startswith("}") else ", "
    return begin.end(), begin.end(), f"{json.dumps(name)}: {value}{comma}"
