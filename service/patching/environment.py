"""Environment variables of the job: export, prefix, env, docker -e, and Ray's runtime environment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from corpus.frameworks import known_frameworks
from corpus.keys import unsigned
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.environment import VariablePlace, runtime_env, variables
from ingest.configfiles.shell.insertion import behind_name
from ingest.configfiles.shell.launches import ProgramWords, launches, stages
from ingest.configfiles.shell.runtime_env import has_variables, held_json, with_variable
from ingest.configfiles.shell.spelling import is_unset, same, spelled
from ingest.configfiles.shell.syntax import Script, ShellCommand, is_export
from ingest.configfiles.shell.variables import changeable, literal
from ingest.configfiles.shell.words import WordEdit
from service.patching.mentions import refuse_if_mentioned
from service.patching.target import PatchTarget

# Commands whose program does not get the script's variables, unless an option says so.
_CLOSED = re.compile(
    r"(?:\S*/)?(?:(?:ssh|pdsh|clush) |env (?:-i|-|--ignore-environment) |sudo (?!(?:\S+ "
    r")*?(?:-E|--preserve-env)\b))"
)

# Folders that are put before what a variable has.
_FOLDERS = re.compile(r"(?:[\w./@+-]{1,300}:){1,8}", re.ASCII)


def extends_itself(target: PatchTarget) -> bool:
    """Tell whether a variable's value is made of the one that it has: `/job/lib:$PYTHONPATH`."""
    name = target.names[0]
    own = rf"\$(?:\{{{re.escape(name)}\}}|{re.escape(name)}(?!\w))"
    return target.kind == "env" and len(re.findall(r"\$", str(target.to))) == len(
        re.findall(own, str(target.to))
    )


def places(script: Script, target: PatchTarget) -> list[VariablePlace]:
    """Find where the variable is set, in order."""
    return [place for place in variables(script) if place.name in target.names]


def edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that set the variable for the job; none where it is set already."""
    found = places(script, target)
    gone = [(start, statement) for name, start, statement in script.unset if name in target.names]
    if is_unset(target.to):
        return _unset(script, target, found)
    if gone and found and max(start for start, _ in gone) > found[0].start:
        raise NotPatchableError(Message("patch.line-script-unsets", line=script.line(gone[-1][0])))
    if "$" in str(target.to):
        return _extended(script, target, found)
    if not found:
        return _added(script, target)
    if all(_holds(script, place, target) for place in found):
        return []
    if all(place.carrier in ("prefix", "env") for place in found) and len(launches(script)) > len(found):
        # One command gets the variable, and others that start a job do not.
        lines = ", ".join(str(script.line(place.start)) for place in found)
        raise NotPatchableError(Message("patch.several-commands-gets-line", lines=lines))
    return [
        edit
        for place in _chosen(script, found)
        if not _holds(script, place, target)
        for edit in _changed(script, place, target)
    ]


def _extended(script: Script, target: PatchTarget, found: list[VariablePlace]) -> list[WordEdit]:
    """Put folders before what the last row that sets a variable makes it of."""
    place, to = found[-1] if found else None, str(target.to)
    if place is None or place.carrier != "export" or place.branch or not place.value.units:
        raise NotPatchableError(Message("patch.value-depends-machine-write", to=to))
    if _holds(script, place, target):
        return []
    before = to.removesuffix(place.value.text)
    if before == to or not _FOLDERS.fullmatch(before):
        raise NotPatchableError(Message("patch.value-depends-machine-write", to=to))
    start = place.value.units[0].start
    return [WordEdit(start, start, before)]


def hold(script: Script, target: PatchTarget) -> bool:
    """Tell whether the job gets the variable with the value."""
    found = places(script, target)
    gone = [start for name, start, _ in script.unset if name in target.names]
    if is_unset(target.to):
        return bool(gone) and all(place.start < gone[-1] for place in found)
    if not found or (gone and gone[-1] > found[-1].start):
        return False
    last = {place.carrier: place for place in found}
    return all(_holds(script, place, target) for place in last.values())


def _chosen(script: Script, found: list[VariablePlace]) -> list[VariablePlace]:
    """Of several exports take the last, or all that say the same; other mixtures are left alone."""
    lines = ", ".join(str(script.line(place.start)) for place in found)
    if len(found) > 1 and any(place.branch for place in found):
        raise NotPatchableError(Message("patch.set-more-once-not", lines=lines))
    if len({place.value.text for place in found}) == 1:
        return found
    if {place.carrier for place in found} - {"export"}:
        raise NotPatchableError(Message("patch.set-several-ways-lines", lines=lines))
    return found[-1:]


def _holds(script: Script, place: VariablePlace, target: PatchTarget) -> bool:
    if place.carrier == "shell":
        return False
    if "$" in str(target.to):
        return place.carrier == "export" and place.value.text == target.to
    if place.carrier == "job":
        return same(str((held_json(place.value) or {})[place.name]), target.to)
    try:
        return same(literal(script, place.value).text, target.to)
    except NotPatchableError:
        return False


def _changed(script: Script, place: VariablePlace, target: PatchTarget) -> Iterator[WordEdit]:
    if place.carrier == "job":
        held = held_json(place.value) or {}
        now = str(held[place.name])
        yield from with_variable(place.value, place.name, spelled(target.to, now, ("1", "0")))
        return
    if place.carrier == "shell":
        if place.declared:
            raise NotPatchableError(
                Message(
                    "patch.line-sets-script-alone", line=script.line(place.start), declared=place.declared
                )
            )
        # Whether an assignment follows another one of the same statement (`A=1 B=2`).
        before = script.text[script.text.rfind("\n", 0, place.start) + 1 : place.start].rstrip()
        is_later = bool(before) and before[-1] not in ";&|{("
        if is_later:
            raise NotPatchableError(Message("patch.line-set-script-alone", line=script.line(place.start)))
        yield WordEdit(place.start, place.start, "export ")
    held_word = changeable(script, place.value)
    if not same(held_word.text, target.to):
        yield held_word.replaced(spelled(target.to, held_word.text, ("1", "0")))


def _unset(script: Script, target: PatchTarget, found: list[VariablePlace]) -> list[WordEdit]:
    if hold(script, target):
        return []
    for place in found:
        if place.carrier not in ("export", "shell"):
            raise NotPatchableError(Message("patch.line-command-gets-take", line=script.line(place.start)))
    return [_line(script, f"unset {target.names[0]}", launches(script))]


def _added(script: Script, target: PatchTarget) -> list[WordEdit]:
    refuse_if_mentioned(script, replace(target, names=tuple(unsigned(name) for name in target.names)), ())
    name, value = target.names[0], spelled(target.to, "", ("1", "0"))
    started = launches(script)
    inside = [stage for stage in stages(script) if stage.inside]
    if len(inside) > 1:
        raise NotPatchableError(
            Message(
                "patch.several-commands-take-lines",
                inside=", ".join(str(each.words[0].line) for each in inside),
            )
        )
    clusters = known_frameworks().clusters
    if inside and not (
        target.framework in clusters and any(stage.owner in clusters for stage in stages(script))
    ):
        return _added_inside(script, inside[0], name, value, target)
    closed = [
        word for command in started for word in command.words if re.match(r"--export=(?!ALL\b)", word.text)
    ]
    if closed:
        raise NotPatchableError(
            Message("patch.line-keeps-script-variables", line=closed[0].line, text=closed[0].text)
        )
    if apart := [
        command.words[0]
        for command in started
        if _CLOSED.match(" ".join(word.text for word in command.words))
    ]:
        raise NotPatchableError(
            Message("patch.line-keeps-script-variables", line=apart[0].line, text=apart[0].text)
        )
    return [_line(script, f"export {name}={shlex.quote(value)}", started)]


def _added_inside(
    script: Script, stage: ProgramWords, name: str, value: str, target: PatchTarget
) -> list[WordEdit]:
    """Set the variable where the job runs: in the container, or on the cluster that gets it."""
    if stage.inside == "container":
        return [behind_name(script, stage, ["-e", f"{name}={value}"])]
    if target.framework in known_frameworks().clusters:
        raise NotPatchableError(Message("patch.ray-own-processes-read"))
    text = runtime_env(stage)
    if text is not None:
        return list(with_variable(text, name, value))
    if has_variables(stage):
        raise NotPatchableError(Message("patch.line-job-environment-stands", line=stage.words[0].line))
    return [behind_name(script, stage, [f'--runtime-env-json={{"env_vars": {{"{name}": "{value}"}}}}'])]


def _line(script: Script, row: str, started: list[ShellCommand]) -> WordEdit:
    """Add a line of its own before the first launch, behind the exports that stand there."""
    if not started:
        raise NotPatchableError(Message("patch.no-command-script-starts"))
    first = min(command.statement for command in started)
    behind = [
        each.start
        for each in script.assignments
        if is_export(each.declared) and not each.branch and each.start < first
    ]
    behind += [statement for _, _, statement in script.unset if statement < first]
    lines = [start for start in behind if not ("\n" not in script.text[start:first])]
    at = script.text.rfind("\n", 0, max(lines, default=first)) + 1
    indent = re.match(r"[ \t]*", script.text[at:])
    lead = indent[0] if indent else ""
    if not lines:
        return WordEdit(at, at, f"{lead}{row}\n")
    end = _statement_end(script, max(lines))
    return WordEdit(end, end, f"\n{lead}{row}")


def _statement_end(script: Script, start: int) -> int:
    """Give the end of the last line of an export, which may be continued."""
    held = max(
        (word.end for each in script.assignments if each.start == start for word in each.words), default=start
    )
    end = script.text.find("\n", held)
    while end > 0 and script.text[end - 1] == "\\":
        end = script.text.find("\n", end + 1)
    return len(script.text) if end < 0 else end
