"""Packages that a launch script installs: `pip install`, `python -m pip install`, `uv pip install`."""

from __future__ import annotations

import re
import shlex

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.installs import InstallPlace, installs
from ingest.configfiles.shell.launches import launches, stages
from ingest.configfiles.shell.syntax import Script, ShellCommand
from ingest.configfiles.shell.variables import changeable
from ingest.configfiles.shell.words import WordEdit
from service.patching.requirements import wanted
from service.patching.target import PatchTarget

# A program by its plain name, and the tools that prepare a job rather than being it.
_OWN_PROGRAM = re.compile(r"[A-Za-z][\w-]*")
_TOOL = re.compile(
    r"mkdir|rm|cp|mv|ln|ls|tar|unzip|zip|sed|awk|grep|find|tee|cat|head|tail|sort|date|hostname|which"
    r"|command|touch|chmod|rsync|scp|ssh|git|wget|curl|apt(?:-get)?|yum|brew|sudo|module|conda|mamba"
    r"|micromamba|pip\d?|uv|poetry|nvidia-smi|echo|printf|set|export|source|cd|test|read|local|declare"
    r"|trap|wait|kill|pkill|ps|sleep|eval|exit|squeue|scontrol|sinfo|sacct|scancel|docker|podman|aws"
    r"|gsutil|gcloud|hf|huggingface-cli|wandb|python[\d.]*"
)


def places(script: Script, target: PatchTarget) -> list[InstallPlace]:
    """Find where the script asks for the package."""
    package = canonicalize_name(wanted(target)[0].name)
    return [place for place in installs(script) if canonicalize_name(place.asked.name) == package]


def edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that make the script install the version; none where it does."""
    found, (package, specifier) = places(script, target), wanted(target)
    if not found:
        return [_added(script, f"{package}{specifier}")]
    if hold(script, target):
        return []
    if len({str(place.asked) for place in found}) > 1:
        lines = ", ".join(str(place.word.line) for place in found)
        raise NotPatchableError(Message("patch.installed-more-once-lines", name=package.name, lines=lines))
    return [_changed(script, place, specifier) for place in found]


def _changed(script: Script, place: InstallPlace, specifier: SpecifierSet) -> WordEdit:
    if place.asked.url is not None or place.asked.marker is not None:
        raise NotPatchableError(Message("patch.line-installs-address-condition", line=place.word.line))
    extras = f"[{','.join(sorted(place.asked.extras))}]" if place.asked.extras else ""
    word, new = changeable(script, place.word), f"{place.asked.name}{extras}{specifier}"
    # Without quotes, bash would take > and < for a redirection.
    if not any(unit.quote for unit in word.units) and not word.splits:
        return WordEdit(word.start, word.end, shlex.quote(new))
    return word.replaced(new)


def _added(script: Script, requirement: str) -> WordEdit:
    """Install it before the job starts; where that happens elsewhere, the container's image is the place."""
    if any(stage.inside for stage in stages(script)):
        raise NotPatchableError(Message("patch.job-runs-container-cluster"))
    started = [*launches(script), *_programs(script)]
    if not started:
        raise NotPatchableError(Message("patch.no-command-script-starts"))
    # Directly before the launch: an environment is activated, and other packages are installed, further up.
    at = script.text.rfind("\n", 0, min(command.statement for command in started)) + 1
    indent = re.match(r"[ \t]*", script.text[at:])
    return WordEdit(
        at, at, f"{indent[0] if indent else ''}python3 -m pip install {shlex.quote(requirement)}\n"
    )


def _programs(script: Script) -> list[ShellCommand]:
    """Give the commands with long options that are no tool of the system: a package's own programs."""
    return [
        command
        for command in script.commands
        if command.words
        and _OWN_PROGRAM.fullmatch(command.words[0].text)
        and not _TOOL.fullmatch(command.words[0].text)
        and any(word.text.startswith("--") for word in command.words[1:])
    ]


def hold(script: Script, target: PatchTarget) -> bool:
    """Tell whether the script asks for the package as the target says.

    In any version, where it names none.
    """
    found, specifier = places(script, target), wanted(target)[1]
    return bool(found) and all(not str(specifier) or place.asked.specifier == specifier for place in found)
