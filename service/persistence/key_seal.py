"""The signed list, beside the database, of the keys that this installation has made and not revoked since.

A database that was damaged, deleted or put back from an old copy knows of no key, or still of one that was
revoked; one that was put in its place knows keys of whoever put it there. Were it alone to count, these would
be let in, or everybody.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from corpus.message import Message
from service.schemas.errors import StoreError
from service.schemas.records import KeyRecord

# The file under the home folder that says that this installation has, or had, API keys, and which.
MARK = "keyed"
# The secret that signs it; who has the database alone, or a copy of it, cannot make an entry.
SECRET = "keyed.secret"  # noqa: S105 - a file's name
_SAYS = """\
This installation of whycrash has, or had, API keys: its server lets nobody in without one, also where the \
database knows of none, and takes no key that it has not made itself.
`whycrash keys add NAME` makes one. Delete this file, with the server stopped, to let this machine in \
without a key again, or to take over the keys of a database from elsewhere.
"""
_SIZE = 32


class KeySeal:
    """Signs keys, and tells which of a database's are signed."""

    def __init__(self, home: Path) -> None:
        self.mark = home / MARK

    def exists(self) -> bool:
        """Tell whether there ever were keys; what cannot be looked up is taken for yes."""
        try:
            # Not `exists`, to which a folder that may not be read is one that is not there.
            self.mark.stat()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def sign(self, records: Sequence[KeyRecord]) -> None:
        """Take keys in as they are, revoked or in force; raises StoreError where that cannot be kept."""
        try:
            self.mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._secret() as secret:
                self._write({**self._entries(), **{each.id: _signature(secret, each) for each in records}})
        except OSError as error:
            raise StoreError(
                Message("errors.cannot-written-set-whycrash", parent=self.mark, reason=error.strerror)
            ) from error

    def note(self) -> None:
        """Keep that there are keys, without a list of them; raises StoreError."""
        if not self.exists():
            self.sign(())

    def signed(self, records: Sequence[KeyRecord]) -> tuple[KeyRecord, ...]:
        """Give those of a database's keys that are signed as they are.

        All of them, signed from now on, where there is no list yet: an earlier version kept none.
        """
        entries = self._entries()
        # Keys were signed here before: a mark whose list was taken away had one.
        has_list = self.exists() and (entries or os.path.lexists(self.mark.parent / SECRET))
        if not has_list:
            with suppress(StoreError):
                self.sign(records)
            return tuple(records)
        try:
            secret = (self.mark.parent / SECRET).read_bytes()
        except OSError:
            secret = secrets.token_bytes(_SIZE)  # which has signed nothing
        return tuple(
            each
            for each in records
            if hmac.compare_digest(entries.get(each.id, ""), _signature(secret, each))
        )

    def _entries(self) -> dict[str, str]:
        """Give the list; a damaged one has nothing in it."""
        try:
            found = json.loads(self.mark.read_text(encoding="utf-8").rpartition("\n\n")[2])
        except (OSError, ValueError, RecursionError):
            return {}
        is_list = isinstance(found, dict) and all(isinstance(value, str) for value in found.values())
        return {key: value for key, value in found.items() if value.isascii()} if is_list else {}

    def _write(self, entries: Mapping[str, str]) -> None:
        number, part = tempfile.mkstemp(dir=self.mark.parent, prefix=f".{MARK}")  # it has mode 600
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(f"{_SAYS}\n{json.dumps(entries)}")
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(self.mark)

    @contextmanager
    def _secret(self) -> Iterator[bytes]:
        """Give the secret, made where there is none, while no other process changes the list."""
        number = os.open(self.mark.parent / SECRET, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            found = os.pread(number, _SIZE, 0)
            if len(found) < _SIZE:
                found = secrets.token_bytes(_SIZE)
                os.pwrite(number, found, 0)
                os.fsync(number)
            yield found
        finally:
            os.close(number)


def _signature(secret: bytes, record: KeyRecord) -> str:
    """Sign what lets a key in: its id, its hash, its team, what it may do, and whether it still may."""
    fields: list[object] = [record.id, record.hash, sorted(record.scopes), record.revoked is not None]
    # Keys without a team are signed as they were before there were any.
    fields += [record.team] if record.team else []
    return hmac.digest(secret, json.dumps(fields).encode(), "sha256").hex()
