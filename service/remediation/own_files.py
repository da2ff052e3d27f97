"""What the job's own files have, where a message misses a module, a script or an application of theirs.

A command that names what is not there is mended by the nearest that is: a file of the job's, or a name that
its module defines. A module that lies in a folder of the job's own is found once that folder is on Python's
path; no package of its name is to be installed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.utils import canonicalize_name

from corpus.frameworks import known_frameworks
from corpus.message import in_both
from corpus.package_classes import everybodys_modules
from corpus.releases import known_packages
from corpus.schema import Change, Text
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.syntax import parse
from ingest.logs.configs.launch import Setting
from ingest.logs.events import Event
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import STANDARD, is_own
from ingest.logs.stacks.stack import Frame
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.code_edits.names import near
from service.remediation.own_edits import job_files
from service.remediation.packages.changes import PackageChange

PATH = "PYTHONPATH"
_ITSELF, _VARIABLES = f"${PATH}", re.compile(r"[$`]")
# A path that stands in a command: a log may hold any.
_PLAIN_PATH = re.compile(r"(?!.*\.\.)/?[\w./@+-]{1,300}")
_INSTALLED = re.compile(rf"{STANDARD.pattern}|(?:site|dist)-packages/")
_MODULE = re.compile(r"\bNo module named '?(?P<name>[A-Za-z_][\w.]*)'?")
# What servers say of an application that a module has not: uvicorn/importer.py, gunicorn/util.py.
_APPLICATION = tuple(
    re.compile(expression)
    for expression in (
        r"Attribute \"(?P<name>[A-Za-z_]\w*)\" not found in module \"(?P<module>[\w.]+)\"",
        r"Failed to find attribute '(?P<name>[A-Za-z_]\w*)' in '(?P<module>[\w.]+)'",
    )
)
# The interpreter and the shell, of a script that is not there: Modules/main.c, pymain_run_file_obj; bash.
_SCRIPT = tuple(
    re.compile(expression)
    for expression in (
        r"can't open file '(?P<path>[^'\n]{1,300})': \[Errno 2\]",
        r"^(?:\S+: line \d+: )?(?P<path>[\w./-]{1,200}\.\w{1,5}): No such file or directory",
        r"Error while finding module specification for '(?P<module>[\w.]{1,200})'",
        r"\bCould not import module \"(?P<module>[\w.]{1,200})\"",
    )
)


# What is said of a module of Python's own, or of a package, in whose place another one was imported.
_SHADOWED = re.compile(
    r"\b(?:module '(?P<module>[A-Za-z_]\w*)' (?:from '[^']*' )?has no attribute '\w+'"
    r"|cannot import name '\w+' from (?:partially initialized module )?'(?P<package>[A-Za-z_]\w*)')"
)


@dataclass(frozen=True)
class _Word:
    """A word of a command, and the command's own name."""

    program: str
    text: str


def own_files(report: CrashReport, settings: Sequence[Setting]) -> list[PackageChange]:
    """Give the change of the job's command, or of Python's path, by which what is missed is found."""
    root = report.root
    if root is None:
        return []
    files = job_files(report)
    found = (
        *_found_by_path(f"{root.exception}: {root.body}", files, settings, root.frames),
        *_found_by_calls(f"{root.exception}: {root.body}", settings, root.frames),
        *_shadowing(root, files),
        *_applications(root.body, files),
        *_scripts(root.body, files),
    )
    return list(found)[:1]


def _found_by_path(
    message: str, files: Sequence[JobFile], settings: Sequence[Setting], frames: Sequence[Frame]
) -> Iterator[PackageChange]:
    """Give Python's path with the folder in which the missing module lies.

    The folder of the script that is run is looked into anyway: a module that lies there is to be copied to
    the machine.
    """
    match = _MODULE.search(message)
    top = match["name"].partition(".")[0] if match else ""
    folders = set()
    for file in files if top else ():
        parts = PurePosixPath(file.name).parts
        place = parts.index(top) if top in parts[:-1] else -1
        if parts[-1] == f"{top}.py":
            place = len(parts) - 1
        if place >= 0 and file.name.endswith(".py") and ".." not in parts[: place + 1]:
            folders.add("/".join(parts[:place]) or ".")
    if len(folders) != 1:
        return
    folder, paths = folders.pop(), _paths(settings)
    if f"{top}.py" in {PurePosixPath(file.name).name for file in files} and _runs_from(folder, files, frames):
        script = PurePosixPath(frames[0].file)
        told = in_both("changes.module-not-copied", name=top, script=script.name)
        copied = Change(
            framework="host", kind="command", key=f"cp {top}.py", to=f"{script.parent}/", why=told
        )
        yield PackageChange(copied, None)
        return
    yield from _on_path(folder, paths, in_both("changes.module-here", name=top, folder=folder))


def _found_by_calls(
    message: str, settings: Sequence[Setting], frames: Sequence[Frame]
) -> Iterator[PackageChange]:
    """Give Python's path with the folder in which, by the files that are running, the missing module lies.

    A call in a file below a folder of the module's name shows where that is: `/job/src/train.py` misses
    `src`. A module that is named as the one that imports it lies beside that, as a rule. A package's name
    shows it in the layout of a checkout alone: `verl/scripts` holds no `verl`, and `torch_utils.py` no
    `torch_xla`.
    """
    match = _MODULE.search(message)
    top = match["name"].partition(".")[0] if match else ""
    # A framework that runs from its own sources is as much a matter of the path.
    own = [
        frame for frame in frames if _PLAIN_PATH.fullmatch(frame.file) and not _INSTALLED.search(frame.file)
    ]
    if not own or frames[-1] is not own[-1] or not top or top in sys.stdlib_module_names:
        return
    paths = _paths(settings)
    folders = [PurePosixPath(frame.file).parent for frame in reversed(own)]
    for folder in folders:
        holder = next((each for each in (folder, *folder.parents) if each.name == top), None)
        if holder is not None and (not _is_package(top) or holder.parent.name in ("src", top)):
            why = in_both("changes.module-above", name=top, file=own[-1].file, folder=str(holder.parent))
            yield from _on_path(str(holder.parent), paths, why)
            return
    word = PurePosixPath(own[-1].file).stem.partition("_")[0]
    is_alike = len(word) > 2 and top.startswith(f"{word}_") and not (_is_package(word) or _is_package(top))
    if is_alike and folders[0] != folders[-1]:
        why = in_both("changes.module-beside", name=top, file=own[-1].file)
        yield from _on_path(str(folders[0]), paths, why)


def _is_package(module: str) -> bool:
    """Tell whether a module's name is known as that of a package which is installed."""
    known = known_frameworks()
    name = canonicalize_name(module)
    of_packages = known_packages() | known.of_layer("trainer", "engine", "library", "cluster")
    return name in of_packages or module in known.modules or module in everybodys_modules()


def _paths(settings: Sequence[Setting]) -> list[str]:
    """Give the values that the job has for Python's path, in order."""
    return [setting.value for setting in settings if setting.key == PATH]


def _on_path(folder: str, paths: Sequence[str], why: Text) -> Iterator[PackageChange]:
    """Give Python's path with a folder, unless that is on it."""
    if any(folder in each.split(":") for each in paths):
        return
    # Rows that each add to what the one above has made: the last one has it all.
    adds = len(paths) > 1 and all(_ITSELF in each for each in paths[1:])
    now = next(iter(paths[-1:] if adds else paths), None)
    # What another variable adds is known to the shell alone.
    to = f"{folder}:{now}" if now and not _VARIABLES.search(now.replace(_ITSELF, "")) else folder
    yield PackageChange(Change(framework="env", kind="env", key=PATH, to=to, why=why), now)


def _runs_from(folder: str, files: Sequence[JobFile], frames: Sequence[Frame]) -> bool:
    """Tell whether the script that the job runs lies in a folder; a module is run from elsewhere."""
    if not frames or any(frame.function == "_run_module_as_main" for frame in frames):
        return False
    if not _PLAIN_PATH.fullmatch(frames[0].file):
        return False
    script = PurePosixPath(frames[0].file).name
    paths = [PurePosixPath(file.name) for file in files]
    return {str(path.parent) for path in paths if path.name == script} == {folder}


def _shadowing(root: Event, files: Sequence[JobFile]) -> Iterator[PackageChange]:
    """Tell to rename the job's own file that stands in the place of a module which a package asks for."""
    match = _SHADOWED.search(root.body)
    name = (match["module"] or match["package"]) if match else ""
    own = [file.name for file in files if PurePosixPath(file.name).name == f"{name}.py"]
    # What the job's own code asks of its own module is no matter of names.
    is_of_package = bool(root.frames) and not is_own(root.frames[-1])
    if len(own) == 1 and (is_of_package or name in sys.stdlib_module_names):
        new = f"own_{name}"
        why = in_both("changes.module-shadowed", name=name, file=own[0], new=new)
        to = str(PurePosixPath(own[0]).with_name(f"{new}.py"))
        yield PackageChange(
            Change(framework="host", kind="command", key=f"mv {own[0]}", to=to, why=why), None
        )


def _applications(message: str, files: Sequence[JobFile]) -> Iterator[PackageChange]:
    """Give the name of the application that a server's module does define."""
    match = next((found for each in _APPLICATION if (found := each.search(message))), None)
    if match is None:
        return
    ending = f"{match['module'].replace('.', '/')}.py"
    named = [file for file in files if f"/{file.name}".endswith(f"/{ending}")]
    objects = list(_objects(named[0].text)) if len(named) == 1 else []
    new = near(match["name"], objects) or (objects[0] if len(objects) == 1 else None)
    if new is not None:
        old = f"{match['module']}:{match['name']}"
        why = in_both("changes.application-here", module=match["module"], name=match["name"], new=new)
        yield from _reworded(old, f"{match['module']}:{new}", files, why)


def _objects(text: str) -> Iterator[str]:
    """Give the names that a module's top level makes by a class."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            if called[:1].isupper():
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _scripts(message: str, files: Sequence[JobFile]) -> Iterator[PackageChange]:
    """Give the job's own file that a command means whose script, or module, is not there."""
    match = next((found for each in _SCRIPT if (found := each.search(message))), None)
    if match is None:
        return
    module = match.groupdict().get("module") or ""
    path = f"{module.replace('.', '/')}.py" if module else match["path"]
    old = module or path
    words = [each.text for each in _words(files)]
    # The interpreter tells the whole path, and the command a part of it.
    written = old if module else next((text for text in words if f"/{path}".endswith(f"/{text}")), "")
    given = {file.name: file.name for file in files}
    wanted = module.replace(".", "/") + ".py" if module else written.removeprefix("./")
    same = [name for name in given if PurePosixPath(name).name == PurePosixPath(wanted).name]
    new = same[0] if len(same) == 1 else near(wanted, list(given))
    if not written or new is None or new == wanted:
        return
    told = new.removesuffix(".py").replace("/", ".") if module else new
    why = in_both("changes.file-here", old=old, new=told)
    for text in words:
        if text == written or (module and text.partition(":")[0] == module):
            yield from _reworded(text, told + text[len(written) :], files, why)
            return


def _reworded(old: str, new: str, files: Sequence[JobFile], why: Text) -> Iterator[PackageChange]:
    """Give the change of one word of the job's commands."""
    programs = [each.program for each in _words(files) if each.text == old]
    if programs:
        change = Change(framework="python", kind="command", key=programs[0], to=new, why=why)
        yield PackageChange(change, old)


def _words(files: Sequence[JobFile]) -> Iterator[_Word]:
    """Give the words of the commands of the job's scripts."""
    for file in files:
        if not file.name.endswith((".sh", ".bash", ".slurm", ".sbatch")) and not file.text.startswith("#!/"):
            continue
        try:
            script = parse(file.text.replace("\r\n", "\n"))
        except NotPatchableError:
            continue
        for command in script.commands:
            if command.words:
                name = command.words[0].text
                yield from (_Word(name, word.text) for word in command.words[1:])
