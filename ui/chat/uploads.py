"""Files that a browser sent: claimed once, sorted by what they are, removed when the answer stands."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Lock

from pydantic import BaseModel, ConfigDict, Field

from corpus.message import Message
from ingest.logs.inputs.members import CONFIG, kind_of
from service.patching.patches import ConfigFile
from service.pipeline.triage import read_config
from service.schemas.errors import BusyError, InvalidRequestError
from service.telemetry import snapshot
from service.telemetry.errors import TelemetryError
from service.telemetry.snapshot import Snapshot

# A browser that goes away leaves what it sent; nobody comes for it after so long.
ABANDONED_S = 900.0
# How often what was left is removed, in seconds, whether or not anybody asks for anything.
SWEEP_S = 60.0
# So many uploads of the largest size may lie in the folder, or come in, at once.
LARGEST_AT_ONCE = 4
# What the least file takes of a disk, in bytes.
_BLOCK = 4096
MAX_FILES = 200
# How the folder's name begins; the server's process follows.
PREFIX = "whycrash-uploads-"
# What pasted text is called where it stands beside files.
PASTED = "pasted.log"
# How the name of a folder begins whose files somebody works on; their end removes it.
_CLAIMED = "claimed-"
# Where a snapshot's JSON names itself.
_HEAD = 4096


class GoneError(InvalidRequestError):
    """The uploaded file is gone: another tab has used it, or it lay there for too long. Add it again."""


class Uploaded(BaseModel):
    """A file as the browser names it: where the server put it, and its name on the user's machine."""

    model_config = ConfigDict(extra="forbid")

    # Not `path`: Gradio takes a record with one for a file of its own, and refuses what is not in its folder.
    place: str
    name: str = Field(max_length=300)


@dataclass(frozen=True)
class SubmittedFiles:
    """The files of one submission.

    Logs (and archives) by their names, the job's own configuration, and a snapshot of its machine.
    """

    logs: tuple[tuple[str, Path], ...] = ()
    configs: tuple[ConfigFile, ...] = ()
    telemetry: Snapshot | None = None


class Uploads:
    """The folder that uploads come into; it lives as long as the server, and goes with it."""

    def __init__(self, largest: int = 1 << 30) -> None:
        """Make the folder; `largest` is how many bytes one request may bring."""
        _clear_up(Path(gettempdir()))
        self.largest = largest
        self._coming = 0
        self._turn = Lock()
        self._folder = TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-")
        self.root = Path(self._folder.name).resolve()

    def close(self) -> None:
        """Remove the folder with all that is left in it."""
        self._folder.cleanup()

    @contextmanager
    def room(self, size: int) -> Iterator[None]:
        """Keep room for `size` bytes while they come in; raises BusyError where there is none."""
        with self._turn:
            self.sweep()
            if self._stored() + self._coming + size > LARGEST_AT_ONCE * self.largest:
                raise BusyError(Message("errors.added-files-take-room"), SWEEP_S)
            self._coming += size
        try:
            yield
        finally:
            with self._turn:
                self._coming -= size

    @contextmanager
    def claimed(self, files: Sequence[Uploaded], text: str = "") -> Iterator[SubmittedFiles]:
        """Take files out of the folder for one submission, and remove them at its end.

        `text` is what was pasted beside them.

        Raises InvalidRequestError where a path is none of an upload, or a snapshot is none.
        """
        with self.taken(files) as (found, folder):
            yield _sorted(found, text, folder)

    @contextmanager
    def taken(self, files: Sequence[Uploaded]) -> Iterator[tuple[list[tuple[str, Path]], Path]]:
        """Take files out of the folder, with their names, into one of their own that goes at the end.

        Raises InvalidRequestError where a path is none of an upload.
        """
        self.sweep()
        if len(files) > MAX_FILES:
            raise InvalidRequestError(Message("errors.more-files-put-into", max_files=MAX_FILES))
        with TemporaryDirectory(dir=self.root, prefix=_CLAIMED) as folder:
            yield (
                [
                    (file.name, self._taken(file, Path(folder) / str(place)))
                    for place, file in enumerate(files)
                ],
                Path(folder),
            )

    def _taken(self, file: Uploaded, folder: Path) -> Path:
        """Move an upload away, so that nobody else reads or removes it meanwhile."""
        path = Path(file.place).resolve()
        # A page can be made to name any path; only what was uploaded is the user's own.
        if self.root not in path.parents or path.is_symlink() or (path.exists() and not path.is_file()):
            raise InvalidRequestError(Message("errors.no-uploaded-file", name=file.name))
        folder.mkdir()
        try:
            moved = path.rename(folder / path.name)
        except FileNotFoundError as error:
            raise GoneError(Message("errors.gone-add-again", name=file.name)) from error
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # named by the content's sum; another upload of it may lie there again
        return moved

    def sweep(self) -> None:
        """Remove what nobody came for."""
        before = time.time() - ABANDONED_S
        for entry in self.root.iterdir():
            # Others claim and remove meanwhile.
            with contextlib.suppress(FileNotFoundError):
                if entry.name.startswith(_CLAIMED) or entry.stat().st_mtime >= before:
                    continue
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)

    def _stored(self) -> int:
        total = 0
        for folder, _, names in os.walk(self.root):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    total += max(_BLOCK, Path(folder, name).lstat().st_size)
        return total


def _clear_up(parent: Path) -> None:
    """Remove the folders of servers of ours that were killed, and so removed nothing themselves."""
    for folder in parent.glob(f"{PREFIX}*-*"):
        process = folder.name.removeprefix(PREFIX).split("-")[0]
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid() and process.isdecimal() and not _runs(int(process)):
                shutil.rmtree(folder, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, and is somebody else's
    return True


def _sorted(files: Sequence[tuple[str, Path]], text: str, folder: Path) -> SubmittedFiles:
    snapshots = [path for _, path in files if _is_snapshot(path)]
    rest = [(name, path) for name, path in files if path not in snapshots]
    configs = [(name, path) for name, path in rest if kind_of(name) == CONFIG]
    logs = [file for file in rest if file not in configs]
    if not logs and not text.strip():
        # Whoever sends nothing but a .sh or .yaml means it as the log: its end may well be pasted output.
        logs, configs = configs, []
    if logs and text.strip():
        pasted = folder / PASTED
        pasted.write_text(text, encoding="utf-8", errors="replace", newline="")
        logs.append((PASTED, pasted))
    return SubmittedFiles(
        tuple(logs),
        tuple(replace(read_config(path), name=name) for name, path in configs),
        _loaded(snapshots),
    )


def _is_snapshot(path: Path) -> bool:
    if path.suffix != ".json":
        return False
    with path.open("rb") as stream:
        return b"whycrash.snapshot/" in stream.read(_HEAD)


def _loaded(paths: Sequence[Path]) -> Snapshot | None:
    if len(paths) > 1:
        raise InvalidRequestError(Message("errors.give-snapshot-machine"))
    try:
        return snapshot.load_snapshot(paths[0]) if paths else None
    except TelemetryError as error:
        raise InvalidRequestError(str(error)) from error
