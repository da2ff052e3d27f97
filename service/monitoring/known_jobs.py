"""Which ended jobs are dealt with already; kept in a small file, so that a restart reports none twice."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

MOST = 50_000
# Of batches, which are asked anew for all of a span of time.
MOST_ANSWERED = 1_000_000


class KnownJobs:
    """The keys of one watched place; written after each job, whole or not at all."""

    def __init__(
        self, home: Path, place: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        name = self._hash(place)[:16]
        self._path = home / "watch" / f"{name}.json"
        self._keys: dict[str, None] = {}
        self.since = now()
        self._load()

    def _load(self) -> None:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            self._keys = dict.fromkeys(map(str, data["keys"]))
            self.since = datetime.fromisoformat(data["since"])
        except (OSError, ValueError, KeyError, TypeError):
            return  # a new place, or a file that was damaged: what ends from now on counts

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._hash(key) in self._keys

    def add(self, key: str) -> None:
        """Note that a job is dealt with."""
        self._keys[self._hash(key)] = None
        self.save()

    def add_all(self, keys: Iterable[str]) -> None:
        """Note that jobs are dealt with; of very many, the latest are kept."""
        self._keys |= dict.fromkeys(map(self._hash, keys))
        self._keys = dict.fromkeys(list(self._keys)[-MOST_ANSWERED:])
        self.save()

    def tidy(self, met: Iterable[str]) -> None:
        """Write the keys; where they are many, without those that a look at the whole place did not meet."""
        if len(self._keys) > MOST:
            there = {self._hash(key) for key in met}
            self._keys = {key: None for key in self._keys if key in there}
        self.save()

    def save(self) -> None:
        """Write what is known."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        part.write_text(
            json.dumps({"since": self.since.isoformat(), "keys": list(self._keys)}), encoding="utf-8"
        )
        part.replace(self._path)

    @staticmethod
    def _hash(key: str) -> str:
        # Job names are hashed: the file may be read by others. A file's name need not be UTF-8.
        return hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()[:24]
