"""Parts of the environment that a job is submitted to a cluster with, in the JSON text of its command."""

from __future__ import annotations

import json
import re

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.environment import runtime_env
from ingest.configfiles.shell.launches import stages
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.words import Word, WordEdit
from service.patching.target import PatchTarget

# A list of texts behind its key.
_LIST = r'{0}\s{{0,20}}:\s{{0,20}}(\[(?:\s|,|"[^"\]]*"){{0,400}}\])'
# The level of the catalogue's keys that stand for parts of it.
LEVEL = "runtime_env."


def is_part(target: PatchTarget) -> bool:
    """Tell whether a setting is a part of the environment of a submitted job."""
    return target.kind == "setting" and not target.removes and target.names[0].startswith(LEVEL)


def places(script: Script, target: PatchTarget) -> list[Word]:
    """Give the texts of a script that say the part."""
    return [text for text in _texts(script) if _key(target) in (_held(text) or {})]


def hold(script: Script, target: PatchTarget) -> bool:
    """Tell whether each job is submitted with the part as it is to be."""
    found = [(_held(text) or {}).get(_key(target)) for text in _texts(script)]
    return bool(found) and all(_extended(value, target) == value for value in found)


def edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Add the part to the environment that the one submitted job has; a list there keeps what it holds."""
    if hold(script, target):
        return []
    texts = _texts(script)
    if len(texts) != 1:
        raise NotPatchableError(Message("patch.part-configuration-file-script"))
    text, held = texts[0], _held(texts[0])
    if places(script, target):
        listed = re.search(_LIST.format(re.escape(json.dumps(_key(target)))), text.text)
        if listed is None or not isinstance(_meant(target), list):
            raise NotPatchableError(Message("patch.part-configuration-file-script"))
        row = json.dumps(_extended((held or {})[_key(target)], target))
        return [text.span_replaced(listed.start(1), listed.end(1), row)]
    at = next((number for number, unit in enumerate(text.units) if unit.text == "{"), None)
    if not held or at is None:
        raise NotPatchableError(Message("patch.line-runtime-environment-computed", line=text.line))
    blank = re.match(r"\s*", text.text[at + 1 :])
    row = f"{blank[0] if blank else ''}{json.dumps(_key(target))}: {json.dumps(_meant(target))},"
    return [text.span_replaced(at + 1, at + 1, row)]


def _texts(script: Script) -> list[Word]:
    found = (runtime_env(stage) for stage in stages(script) if stage.inside == "cluster")
    return [text for text in found if text is not None]


def _key(target: PatchTarget) -> str:
    return target.names[0].removeprefix(LEVEL)


def _extended(held: object, target: PatchTarget) -> object:
    """Give a list with what the target's holds besides; any other value as the target's."""
    meant = _meant(target)
    if not isinstance(held, list) or not isinstance(meant, list):
        return meant
    return [*held, *(item for item in meant if item not in held)]


def _meant(target: PatchTarget) -> object:
    """Read a value that is written as JSON; any other text is a string."""
    if not isinstance(target.to, str):
        return target.to
    try:
        return json.loads(target.to)
    except ValueError:
        return target.to


def _held(text: Word) -> dict[str, object] | None:
    """Read the text, in which an expression of the shell may stand within a string."""
    try:
        value = json.loads(text.text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
