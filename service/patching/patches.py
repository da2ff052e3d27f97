"""A job's own files and what they must say: each change goes into the file that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from corpus.keys import levels
from corpus.message import Message
from ingest.configfiles import notebook
from ingest.configfiles.errors import NotPatchableError
from service.patching.patch import (
    JSON,
    YAML,
    accepts,
    carries,
    difference,
    format_named,
    lists_packages,
    patch,
)
from service.patching.renaming import former_names
from service.patching.target import PatchTarget
from service.schemas.diagnosis import Dropped


@dataclass(frozen=True)
class ConfigFile:
    """One of the job's own files.

    `exact` is False where its bytes are no UTF-8, so that no patch would apply; `path` is where it lies on
    this machine, None where it does not. Of a notebook `text` is the code of its cells, and `notebook` the
    JSON that its file holds.
    """

    name: str
    text: str
    exact: bool = True
    path: Path | None = field(default=None, compare=False)
    notebook: str = field(default="", repr=False)

    @classmethod
    def of(cls, name: str, text: str, *, exact: bool = True, path: Path | None = None) -> ConfigFile:
        """Make the value of what a file holds."""
        if not name.lower().endswith(notebook.ENDING):
            return cls(name, text, exact, path)
        code = notebook.code_of(text)
        # Code of cells that was kept without their file cannot be written back.
        return cls(name, text, False, path) if code is None else cls(name, code, exact, path, text)

    @property
    def written(self) -> str:
        """The text as the file holds it."""
        return self.notebook or self.text


@dataclass(frozen=True)
class FileEdit:
    """What one file is to say in place of its text."""

    file: ConfigFile
    after: str

    def difference(self, context: int = 3) -> str:
        """Give it as a unified diff with so many rows around each change."""
        return difference(self.file.name, self.file.written, self.written, context)

    @property
    def written(self) -> str:
        """The text that the file is to hold; raises NotPatchableError where a notebook cannot take it."""
        if not self.file.notebook:
            return self.after
        return notebook.rewritten(self.file.notebook, self.file.text, self.after)

    @property
    def is_writable(self) -> bool:
        """Tell whether the file can take it."""
        try:
            return bool(self.written or not self.after)
        except NotPatchableError:
            return False


@dataclass(frozen=True)
class PatchedFiles:
    """The files that change, and what was left out with why."""

    edits: tuple[FileEdit, ...] = ()
    left_out: tuple[Dropped, ...] = ()


@dataclass
class _FileTargets:
    """A file with the targets that go into it."""

    file: ConfigFile
    targets: list[PatchTarget] = field(default_factory=list)


def patch_files(files: Sequence[ConfigFile], targets: Sequence[PatchTarget]) -> PatchedFiles:
    """Write each target into the file that it belongs to.

    A target goes to the first file that sets its key already, else to the first that it can be added to;
    where there is neither, the first file says why. Packages belong to lists of requirements before scripts.
    """
    shares = [_FileTargets(file) for file in files if file.exact]
    left_out = [
        Dropped(what=Message("dropped.patch", name=file.name), why=Message("patch.file-no-utf-8"))
        for file in files
        if not file.exact
    ]
    for target in targets:
        if not shares:
            continue
        home = _home(shares, target)
        if (other := _holder_of_part(home, shares, target)) is not None:
            why = Message("patch.part-stands-elsewhere", name=other.file.name)
            left_out.append(Dropped(what=str(target), why=why))
        else:
            home.targets.append(target)
    edits = []
    for share in shares:
        if share.targets:
            made = patch(share.file.name, share.file.text, share.targets)
            left_out += made.left_out
            if made.text != share.file.text:
                edits.append(FileEdit(share.file, made.text))
    return PatchedFiles(tuple(edits), tuple(left_out))


def _home(shares: Sequence[_FileTargets], target: PatchTarget) -> _FileTargets:
    if target.kind == "package":
        shares = sorted(shares, key=lambda share: not lists_packages(share.file.name, share.file.text))
    # A name that is to go is renamed where it stands, not where another file has the right one already.
    former = [former_names(target)] if target.replaces is not None else []
    fitting = (
        share
        for fits, wanted in (*((carries, name) for name in former), (carries, target), (accepts, target))
        for share in shares
        if fits(share.file.name, share.file.text, wanted)
    )
    return next(fitting, shares[0])


def _holder_of_part(
    home: _FileTargets, shares: Sequence[_FileTargets], target: PatchTarget
) -> _FileTargets | None:
    """Give another file that sets the last levels of a key which is to be added to a file of nested keys.

    It may hold the group of settings that the key is one of, as the files of Hydra do; what is added then
    stands twice.
    """
    steps = levels(target.names[0])
    if target.kind != "setting" or len(steps) < 3 or not _is_nested(home) or _carries(home, target):
        return None
    parts = [replace(target, names=(".".join(steps[dropped:]),)) for dropped in range(1, len(steps) - 1)]
    others = (share for share in shares if share is not home and _is_nested(share))
    return next((share for share in others if any(_carries(share, part) for part in parts)), None)


def _is_nested(share: _FileTargets) -> bool:
    return format_named(share.file.name, share.file.text) in (YAML.name, JSON.name)


def _carries(share: _FileTargets, target: PatchTarget) -> bool:
    return carries(share.file.name, share.file.text, target)
