"""Files that a browser sent: without a name on the disk, claimed once, gone when the answer stands.

They are gone with the server, too, however it ends: a file without a name has nobody else to keep it.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from pydantic import BaseModel, ConfigDict, Field

from corpus.message import Message
from ingest.logs.inputs.members import CONFIG, kind_of
from service.patching.patches import ConfigFile
from service.persistence.spool import Spool, SpooledUpload
from service.pipeline.triage import read_config
from service.schemas.errors import BusyError, InvalidRequestError
from service.telemetry import snapshot
from service.telemetry.errors import TelemetryError
from service.telemetry.snapshot import Snapshot

# A browser that goes away leaves what it sent; nobody comes for it after so long.
ABANDONED_S = 900.0
# How often what was left is dropped, in seconds, whether or not anybody asks for anything.
SWEEP_S = 60.0
# So many uploads of the largest size may be kept, or come in, at once; and so many files: each is open.
LARGEST_AT_ONCE, FILES_AT_ONCE = 4, 400
# What the least file takes of a disk, in bytes.
_BLOCK = 4096
MAX_FILES = 200
# What pasted text is called where it stands beside files.
PASTED = "pasted.log"
# Where a snapshot's JSON names itself.
_HEAD = 4096
# What a kept file is called until it is claimed: nobody guesses it.
_PLACE = re.compile(r"upload-[0-9a-f]{32}")


class GoneError(InvalidRequestError):
    """The uploaded file is gone: another tab has used it, or it lay there for too long. Add it again."""


class Uploaded(BaseModel):
    """A file as the browser names it: what the server called it, and its name on the user's machine."""

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


@dataclass(frozen=True)
class _KeptUpload:
    """A file that waits for its claim: whose it is, and since when, by the clock that nobody sets."""

    file: SpooledUpload
    owner: str
    since: float


class Uploads:
    """The files that came and were not yet asked about; safe to use from many threads."""

    def __init__(self, largest: int = 1 << 30) -> None:
        """`largest` is how many bytes one request may bring."""
        self.largest = largest
        self._coming = 0
        self._turn = Lock()
        self._kept: dict[str, _KeptUpload] = {}
        self._claimed: list[SpooledUpload] = []

    def close(self) -> None:
        """Drop all that is left."""
        with self._turn:
            self._drop(list(self._kept))

    @contextmanager
    def room(self, size: int) -> Iterator[None]:
        """Keep room for `size` bytes while they come in; raises BusyError where there is none."""
        self.sweep()
        with self._turn:
            files = [*(kept.file for kept in self._kept.values()), *self._claimed]
            taken = self._coming + sum(max(_BLOCK, file.size) for file in files)
            if taken + size > LARGEST_AT_ONCE * self.largest or len(files) >= FILES_AT_ONCE:
                raise BusyError(Message("errors.added-files-take-room"), SWEEP_S)
            self._coming += size
        try:
            yield
        finally:
            with self._turn:
                self._coming -= size

    def keep(self, files: Sequence[SpooledUpload], owner: str) -> list[str]:
        """Keep files for who sent them; gives what each is called until it is claimed."""
        places = [f"upload-{secrets.token_hex(16)}" for _ in files]
        with self._turn:
            for place, file in zip(places, files, strict=True):
                self._kept[place] = _KeptUpload(file, owner, time.monotonic())
        return places

    @contextmanager
    def claimed(self, files: Sequence[Uploaded], owner: str, text: str = "") -> Iterator[SubmittedFiles]:
        """Take files out for one submission of who sent them, and drop them at its end.

        `text` is what was pasted beside them.

        Raises InvalidRequestError where one is none of their uploads, or a snapshot is none.
        """
        with self.taken(files, owner) as found, Spool() as pasted:
            yield _sorted(found, text, pasted)

    @contextmanager
    def taken(self, files: Sequence[Uploaded], owner: str) -> Iterator[list[tuple[str, Path]]]:
        """Take files out, with their names, and drop them at the end.

        Raises InvalidRequestError where one is none of an owner's uploads.
        """
        self.sweep()
        if len(files) > MAX_FILES:
            raise InvalidRequestError(Message("errors.more-files-put-into", max_files=MAX_FILES))
        with ExitStack() as held:
            yield [(file.name, held.enter_context(self._taken(file, owner)).path) for file in files]

    @contextmanager
    def _taken(self, file: Uploaded, owner: str) -> Iterator[SpooledUpload]:
        """Take a file out, so that nobody else reads or drops it meanwhile."""
        # A page can be made to name anything; only what was uploaded is the user's own.
        if not _PLACE.fullmatch(file.place):
            raise InvalidRequestError(Message("errors.no-uploaded-file", name=file.name))
        with self._turn:
            kept = self._kept.get(file.place)
            if kept is None or kept.owner != owner:
                raise GoneError(Message("errors.gone-add-again", name=file.name))
            del self._kept[file.place]
            self._claimed.append(kept.file)
        try:
            yield kept.file
        finally:
            kept.file.file.close()
            with self._turn:
                self._claimed.remove(kept.file)

    def sweep(self) -> None:
        """Drop what nobody came for."""
        before = time.monotonic() - ABANDONED_S
        with self._turn:
            self._drop([place for place, kept in self._kept.items() if kept.since < before])

    def _drop(self, places: Sequence[str]) -> None:
        for place in places:
            self._kept.pop(place).file.file.close()


def _sorted(files: Sequence[tuple[str, Path]], text: str, pasted: Spool) -> SubmittedFiles:
    snapshots = [path for name, path in files if _is_snapshot(name, path)]
    rest = [(name, path) for name, path in files if path not in snapshots]
    configs = [(name, path) for name, path in rest if kind_of(name) == CONFIG]
    logs = [file for file in rest if file not in configs]
    if not logs and not text.strip():
        # Whoever sends nothing but a .sh or .yaml means it as the log: its end may well be pasted output.
        logs, configs = configs, []
    if logs and text.strip():
        file = pasted.add(PASTED)
        file.write(text.encode("utf-8", "replace"))
        file.rewind()
        logs.append((PASTED, file.path))
    # No path leads back to the files.
    return SubmittedFiles(
        tuple(logs),
        tuple(replace(read_config(path, name), path=None) for name, path in configs),
        _loaded(snapshots),
    )


def _is_snapshot(name: str, path: Path) -> bool:
    if not name.endswith(".json"):
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
