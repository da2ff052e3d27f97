"""Which files of settings beside a log their reader has allowed: by path, and by the hash of their bytes.

Whoever writes the file again, even by one byte, has to be allowed again.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from corpus.message import Message
from service.schemas.errors import SettingsError

NAME = "allowed.json"


class AllowedFiles:
    """The list of allowed files, itself a file in the user's own configuration folder."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def state(self, file: Path, content: bytes) -> str:
        """Tell whether a file with this content is `allowed`, has `changed` since, or is `unknown`."""
        kept = self.all().get(_place(file))
        return "unknown" if kept is None else "allowed" if kept == sha256(content).hexdigest() else "changed"

    def allow(self, file: Path, content: bytes) -> None:
        """Let a file count as long as its content is this; raises SettingsError."""
        self._write({**self._own(), _place(file): sha256(content).hexdigest()})

    def forget(self, file: Path) -> bool:
        """Let a file count no more; tells whether it did. Raises SettingsError."""
        kept = self._own()
        was_kept = kept.pop(_place(file), None) is not None
        if was_kept:
            self._write(kept)
        return was_kept

    def all(self) -> dict[str, str]:
        """Give paths with the hash of the content that is allowed.

        A list that is damaged, or that others could have written, allows nothing.
        """
        try:
            return self._own()
        except SettingsError:
            return {}

    def _own(self) -> dict[str, str]:
        if not self._file.is_absolute():
            raise SettingsError(Message("errors.no-home-folder-keep"))
        try:
            # Opened before it is looked at, so that what is looked at is what is read.
            with self._file.open("rb") as stream:
                about = os.fstat(stream.fileno())
                if about.st_uid not in (os.geteuid(), 0) or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    raise SettingsError(Message("errors.not-used-yours-no", file=self._file))
                kept = json.loads(stream.read())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise SettingsError(
                Message("errors.cannot-read", file=self._file, reason=error.strerror)
            ) from error
        except (ValueError, RecursionError) as error:
            raise SettingsError(Message("errors.allowed-damaged", file=self._file)) from error
        if not isinstance(kept, dict) or not all(isinstance(value, str) for value in kept.values()):
            raise SettingsError(Message("errors.allowed-damaged", file=self._file))
        return kept

    def _write(self, kept: Mapping[str, str]) -> None:
        """Put the list in the place of the old one at once; nobody else may read or write it."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, part = tempfile.mkstemp(dir=self._file.parent, prefix=f".{NAME}")  # it has mode 600
            with os.fdopen(number, "w", encoding="utf-8") as stream:
                json.dump(kept, stream, indent=1)
                stream.flush()
                os.fsync(stream.fileno())
            Path(part).replace(self._file)
        except OSError as error:
            raise SettingsError(
                Message("errors.file-not-written", path=f"{self._file} ({error.strerror})")
            ) from error


def _place(file: Path) -> str:
    return os.path.realpath(file)
