"""Change one of a job's own files, whatever its format, and give the difference as git applies it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath

from corpus.keys import canonical
from corpus.message import Message
from ingest.configfiles import formats, json_document, reader, yaml_document
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.formats import Format
from ingest.configfiles.shell import syntax
from service.patching import env_file, json_file, pyproject, renaming, requirements, shell, yaml_file
from service.patching.target import PatchTarget
from service.schemas.diagnosis import Dropped

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Patch:
    """What became of one file: its new text, the old one where nothing could be changed.

    `diff` is the unified diff between them; `left_out` says what could not be written, with why.
    """

    diff: str
    left_out: tuple[Dropped, ...]
    text: str


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A kind of file: how a target is written into it, read back, and whether the file still parses.

    The functions take text, target and the file's name; `parse` raises NotPatchableError.
    """

    name: str
    changed: Callable[[str, PatchTarget, str], str]
    holds: Callable[[str, PatchTarget, str], bool]
    carries: Callable[[str, PatchTarget, str], bool]
    parse: Callable[[str], object]


def patch(name: str, text: str, targets: Sequence[PatchTarget]) -> Patch:
    """Write the targets into a file's text, each checked by reading the new text anew."""
    try:
        form = format_of(name, text)
    except NotPatchableError as error:
        return Patch("", (Dropped(what=Message("dropped.patch", name=name), why=str(error)),), text)
    new, left_out, done = text, list[Dropped](), list[PatchTarget]()
    for target in targets:
        try:
            new = _changed(form, new, target, name)
            done.append(target)
        except NotPatchableError as error:
            left_out.append(Dropped(what=str(target), why=str(error)))
    undone = [target for target in done if not form.holds(new, target, name)]
    left_out.extend(
        Dropped(what=str(target), why=Message("patch.another-change-file-sets")) for target in undone
    )
    return Patch(difference(name, text, new), tuple(left_out), new)


def carries(name: str, text: str, target: PatchTarget) -> bool:
    """Tell whether a file sets the target's key already, to whatever value."""
    asked = [target, renaming.former_names(target)] if target.replaces is not None else [target]
    try:
        return any(format_of(name, text).carries(text, each, name) for each in asked)
    except NotPatchableError:
        return False


def format_named(name: str, text: str) -> str:
    """Name a file's format; empty for one that is never changed."""
    try:
        return format_of(name, text).name
    except NotPatchableError:
        return ""


def lists_packages(name: str, text: str) -> bool:
    """Tell whether a file is a list of the packages that the job needs."""
    return format_named(name, text) in _PINNED


def is_met(name: str, text: str, target: PatchTarget) -> bool:
    """Tell whether a list of packages pins the target's package to a release that is wanted."""
    asks = _PINNED.get(format_named(name, text))
    return asks is not None and asks(text, target)


def accepts(name: str, text: str, target: PatchTarget) -> bool:
    """Tell whether the target's value can be written into a file, changed or added."""
    try:
        _changed(format_of(name, text), text, target, name)
    except NotPatchableError:
        return False
    return True


def difference(name: str, before: str, after: str, context: int = 3) -> str:
    """Give the unified diff of one file with so many rows around each change.

    A name that leads out of the folder is cut to its last part.
    """
    path = PurePosixPath(name)
    within = path.name if path.is_absolute() or ".." in path.parts else path.as_posix()
    old, new = _header(f"a/{within}"), _header(f"b/{within}")
    # Lines end at a newline alone: a form feed in a comment starts none for git or bash.
    rows = list(difflib.unified_diff(_LINE.findall(before), _LINE.findall(after), old, new, n=context))
    if rows and "/" in within:
        # By this row git counts the path from the repository's root, from whichever folder it is run in:
        # https://git-scm.com/docs/git-apply
        rows.insert(0, f"diff --git {old} {new}\n")
    return "".join(row if row.endswith("\n") else row + "\n\\ No newline at end of file\n" for row in rows)


def _header(path: str) -> str:
    """Write a file's name as git reads it: quoted where it holds signs of the quoting itself."""
    if path.isprintable() and not set(path) & set('"\\'):
        return path
    return json.dumps(path, ensure_ascii=False)


def _changed(form: FileFormat, text: str, target: PatchTarget, name: str) -> str:
    new = form.changed(text, target, name)
    if new != text and _parses(form, text) and not _parses(form, new):
        raise NotPatchableError(Message("patch.changed-file-not-read"))
    if not form.holds(new, target, name):
        raise NotPatchableError(Message("patch.value-not-found-again"))
    return new


def _parses(form: FileFormat, text: str) -> bool:
    try:
        form.parse(text)
    except NotPatchableError:
        return False
    return True


def _sets(text: str, target: PatchTarget, name: str) -> bool:
    """Tell whether a script sets the target's key."""
    if target.kind == "package":
        return shell.carries(text, target)
    wanted = {canonical(key) for key in target.names}
    return any(canonical(setting.key) in wanted for setting in reader.read(text, name))


def _anything(text: str) -> None:
    del text


YAML = FileFormat(
    "yaml",
    yaml_file.apply,
    yaml_file.holds,
    yaml_file.carries,
    lambda text: yaml_document.loaded(yaml_document.read(text)),
)
CONDA = FileFormat(
    "conda", requirements.apply_to_conda, requirements.conda_holds, requirements.conda_carries, YAML.parse
)
JSON = FileFormat("json", json_file.apply, json_file.holds, json_file.carries, json_document.read)
REQUIREMENTS = FileFormat(
    "requirements", requirements.apply, requirements.holds, requirements.carries, _anything
)
PYPROJECT = FileFormat("pyproject", pyproject.apply, pyproject.holds, pyproject.carries, pyproject.parse)
DOTENV = FileFormat("dotenv", env_file.apply, env_file.holds, env_file.carries, _anything)
DOCKERFILE = FileFormat(
    "dockerfile",
    env_file.apply_to_dockerfile,
    env_file.dockerfile_holds,
    env_file.dockerfile_carries,
    _anything,
)
SHELL = FileFormat(
    "shell",
    lambda text, target, _: shell.apply(text, target),
    lambda text, target, _: shell.holds(text, target),
    _sets,
    lambda text: syntax.parse(text.replace("\r\n", "\n")),
)

# How the lists of packages tell that the release is pinned already.
_PINNED: dict[str, Callable[[str, PatchTarget], bool]] = {
    CONDA.name: requirements.conda_is_met,
    REQUIREMENTS.name: requirements.is_met,
    PYPROJECT.name: pyproject.is_met,
}
_FORMATS: dict[Format, FileFormat] = {
    "yaml": YAML, "conda": CONDA, "json": JSON, "requirements": REQUIREMENTS, "dotenv": DOTENV,
    "dockerfile": DOCKERFILE, "shell": SHELL,
}  # fmt: skip
# Files that are not changed, and what to say.
_RESOLVED = re.compile(r"setup\.(?:py|cfg)|.*\.lock|poetry\.toml|pipfile")
_PROJECT = "pyproject.toml"
_PYTHON = re.compile(r".*\.ipynb")


def format_of(name: str, text: str) -> FileFormat:
    """Tell how a file is changed; raises NotPatchableError for those that never are."""
    path = PurePath(name).name.lower()
    if path == _PROJECT:
        return PYPROJECT
    if _RESOLVED.fullmatch(path):
        raise NotPatchableError(Message("patch.dependencies-resolved-tool-change"))
    form = formats.format_of(name, text)
    if form == "python" or _PYTHON.fullmatch(path):
        raise NotPatchableError(Message("patch.python-code-change-hand"))
    if form not in _FORMATS:
        raise NotPatchableError(Message("patch.format-not-patched"))
    return _FORMATS[form]
