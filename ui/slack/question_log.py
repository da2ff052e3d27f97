"""A log of open questions: what a killed server leaves unanswered, the next one finds and finishes.

Each process has a file of its own under the home folder, and holds a lock on it that ends with the process.
No text of a log stands in it, only which message of which thread is the answer to which triage.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict, ValidationError

from corpus.schema import Language
from ui.slack.client import LOGGER
from ui.slack.request_parser import SlackQuestion


class OpenQuestion(BaseModel):
    """A question whose answer is not finished.

    `at` names the message that is its answer, once there is one; `triage` is the triage that it begins, or,
    with a `question`, the one that is asked about.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    channel: str
    user: str
    thread: str | None
    has_root: bool
    language: Language
    begun: datetime
    at: tuple[str, str] | None = None
    triage: str = ""
    question: str = ""


class QuestionLog:
    """The questions of this process; safe to use from many threads.

    A disk that fails costs no answer; what it does not take is written once it has room again.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / "slack"
        self._path = self._folder / f"{secrets.token_hex(8)}.jsonl"
        # A bare descriptor: its lock is to last as long as the process, also where the bot is closed with a
        # question open.
        self.descriptor = -1
        self._lock = threading.Lock()
        self._owed: list[str] = []
        self._open: set[str] = set()
        self._unsaid: dict[str, OpenQuestion] = {}

    def begin(self, asked: SlackQuestion) -> QuestionEntry:
        """Write down a question."""
        item = OpenQuestion(
            id=secrets.token_hex(8),
            channel=asked.channel,
            user=asked.user,
            thread=asked.thread,
            has_root=asked.has_root,
            language=asked.language,
            begun=datetime.now(UTC),
        )
        note = QuestionEntry(self, item)
        note.write()
        return note

    def put(self, item: OpenQuestion) -> None:
        """Write down how far a question is."""
        with self._lock:
            self._open.add(item.id)
            self.append(item.model_dump_json())

    def drop(self, item: OpenQuestion) -> None:
        """Write down that a question is answered."""
        with self._lock:
            self._open.discard(item.id)
            self._unsaid.pop(item.id, None)
            if self._open:
                self.append(_over(item))
                return
            self._owed.clear()
            if self.descriptor >= 0:
                with suppress(OSError):
                    os.ftruncate(self.descriptor, 0)

    def leave(self, item: OpenQuestion) -> None:
        """Note that an answer could not be said, for want of Slack; it is tried again."""
        with self._lock:
            self._unsaid[item.id] = item

    def unsaid(self) -> Sequence[OpenQuestion]:
        """Give the questions of this process whose answers could not be said."""
        with self._lock:
            return list(self._unsaid.values())

    def append(self, line: str) -> None:
        """Write a line at the file's end, with what a full disk did not take before."""
        self._owed.append(line)
        self._write_owed()

    def write_owed(self) -> None:
        """Write what a full disk did not take."""
        with self._lock:
            self._write_owed()

    def _write_owed(self) -> None:
        if not self._owed:
            return
        try:
            if self.descriptor < 0:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self.descriptor = _opened(self._path, os.O_CREAT)
                # Before anything stands in it: another process takes what is not locked for a dead one's.
                fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            lines = "".join(f"{each}\n" for each in self._owed).encode()
            size = os.fstat(self.descriptor).st_size
            if os.write(self.descriptor, lines) == len(lines):
                self._owed.clear()
                return
            # Of a line that stands there in part nobody could read this one or the next.
            os.ftruncate(self.descriptor, size)
            why = os.strerror(errno.ENOSPC)
        except OSError as error:
            why = error.strerror or str(error)
        LOGGER.error("A question could not be written down: %s", why)

    def left(self) -> Iterator[LeftOpenQuestions]:
        """Give the files of processes that are gone, each locked until it is closed."""
        for path in sorted(self._folder.glob("*.jsonl")):
            if path != self._path and (found := _taken(path)) is not None:
                yield found

    def close(self) -> None:
        """Remove the file where nothing is open; else it stays for the next server."""
        with self._lock:
            if self.descriptor >= 0 and not self._open:
                self._path.unlink(missing_ok=True)
                os.close(self.descriptor)
                self.descriptor = -1


@dataclass
class QuestionEntry:
    """A question's entry in the log."""

    question_log: QuestionLog
    item: OpenQuestion
    _is_left: bool = False

    def write(self, **told: object) -> None:
        """Write what is known now."""
        self.item = self.item.model_copy(update=told)
        self.question_log.put(self.item)

    def posted(self, at: tuple[str, str]) -> None:
        """Note which message is the answer."""
        self.write(at=at)

    def leave(self) -> None:
        """Note that the end of the answer could not be said."""
        self._is_left = True

    def close(self) -> None:
        """Note that the answer is finished, or that who asked was told why there is none."""
        if self._is_left:
            self.question_log.leave(self.item)
        else:
            self.question_log.drop(self.item)


@dataclass
class LeftOpenQuestions:
    """What a process that is gone left open."""

    path: Path
    file: IO[str]
    items: Sequence[OpenQuestion]
    _over: set[str] = field(default_factory=set)

    def drop(self, item: OpenQuestion) -> None:
        """Write down that an item is finished."""
        self._over.add(item.id)
        with suppress(OSError):
            self.file.write(f"{_over(item)}\n")
            self.file.flush()

    def close(self) -> None:
        """Close the file, and remove it where no question in it is open."""
        if self._over.issuperset(item.id for item in self.items):
            self.path.unlink(missing_ok=True)
        self.file.close()


def _over(item: OpenQuestion) -> str:
    return json.dumps({"over": item.id})


def _opened(path: Path, flags: int = 0) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND | flags, 0o600)


def _taken(path: Path) -> LeftOpenQuestions | None:
    """Lock a file and read it; None where its process lives, or another one has taken it."""
    try:
        file = os.fdopen(_opened(path), "a+", encoding="utf-8")
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.seek(0)
        items = _read(file)
    except (OSError, UnicodeDecodeError):
        file.close()
        return None
    if os.fstat(file.fileno()).st_nlink:
        return LeftOpenQuestions(path, file, items)
    file.close()
    return None


def _read(lines: IO[str]) -> Sequence[OpenQuestion]:
    """Read what is open: the last that was written of each question.

    A line that was cut counts for nothing.
    """
    found: dict[str, OpenQuestion] = {}
    for line in lines:
        with suppress(ValidationError, ValueError, TypeError, AttributeError):
            told = json.loads(line)
            if "over" in told:
                found.pop(str(told["over"]), None)
            else:
                item = OpenQuestion.model_validate(told)
                found[item.id] = item
    return list(found.values())
