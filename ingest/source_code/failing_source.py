"""The statements of a stack, read in the code on the machine: that of the raise, and the job's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Literal

from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from ingest.redaction.redactor import Redactor
from ingest.source_code.guarded_statement import GuardedStatement, find_raise, read_statement
from ingest.source_code.message_template import is_said
from ingest.source_code.source_roots import FilesAtHand, SourceRoots

# Own files together: their secrets are looked for, which takes a millisecond for each 8,000 characters.
MOST_FRAMES, MOST_OWN_FILES, LONGEST_OWN = 30, 6, 100_000
# No reading goes on after so many seconds: a folder may lie on a slow network.
LONGEST_S = 0.5
# A row that a traceback quotes may be cut; so much of it must agree.
LEAST_SHARED = 40
Standing = Literal["read", "other-version", "not-parsed"]


@dataclass(frozen=True)
class ReadFrame:
    """A call whose file was found: what stands on its row, where the file is the one that ran.

    `standing` tells of one whose row says something else than the traceback that it is another version.
    """

    frame: Frame
    standing: Standing
    statement: GuardedStatement | None = None


@dataclass(frozen=True)
class FailingSource:
    """What was read: the call that failed, the job's own call that led there, and the job's own files.

    `files` are names as the traceback has them, each with its text, redacted.
    """

    frames: tuple[ReadFrame, ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    @property
    def raised(self) -> GuardedStatement | None:
        """The statement that raised, or asserted, in its own file; None where it was not read."""
        first = self.frames[0].statement if self.frames else None
        return first if first is not None and first.raises else None


def read_source(
    frames: Sequence[Frame], roots: SourceRoots | FilesAtHand, message: str = ""
) -> FailingSource:
    """Read the failing call of a stack, and the innermost of the job's own, from the files below `roots`.

    Files that are at hand anyway are not given again. `message` is what was raised: a file that was edited
    since may have another check on that row.
    """
    until = perf_counter() + LONGEST_S
    shown = [frame for frame in frames if frame.line and frame.file and not frame.file.startswith("<")]
    read: list[ReadFrame] = []
    files: dict[str, str] = {}
    for place, frame in enumerate(reversed(shown[-MOST_FRAMES:])):
        own = is_own(frame)
        is_told = place == 0 or (own and not any(is_own(item.frame) for item in read))
        wanted = is_told or (own and frame.file not in files and len(files) < MOST_OWN_FILES)
        # Without the row that a traceback quotes nobody can say whether a file is the one that ran.
        if not wanted or not frame.code.strip() or perf_counter() > until:
            continue
        text, standing = _text_of(frame, roots)
        if own and standing == "read" and len(text) + sum(map(len, files.values())) <= LONGEST_OWN:
            files.setdefault(frame.file, text)
        if is_told and standing is not None:
            read.append(_read(frame, text, standing, message if place == 0 else ""))
    if isinstance(roots, FilesAtHand):
        return FailingSource(tuple(read))
    clean = Redactor().clean
    return FailingSource(tuple(read), tuple((name, clean(text)) for name, text in files.items()))


def _text_of(frame: Frame, roots: SourceRoots | FilesAtHand) -> tuple[str, Standing | None]:
    """Give the text of the file that ran, else of another version of it; None where none is there."""
    other = ""
    for text, is_named in roots.texts(frame.file):
        if _agrees(text, frame):
            return text, "read"
        other = other or (text if is_named else "")
    return other, "other-version" if other else None


def _read(frame: Frame, text: str, standing: Standing, message: str) -> ReadFrame:
    found = read_statement(text, frame.line) if standing == "read" else None
    if found is not None and message and is_said(found.message, message) is False:
        # `raise ValueError(` stands on many rows: what the message says tells them apart.
        is_whole = len(frame.code.strip()) >= LEAST_SHARED
        found = find_raise(text, message, frame.function) or (found if is_whole else None)
        standing = standing if found is not None else "other-version"
    if found is None:
        return ReadFrame(frame, "not-parsed" if standing == "read" else standing)
    clean = Redactor().clean
    conditions = tuple(replace(each, text=clean(each.text)) for each in found.conditions)
    defaults = {name: clean(value) for name, value in found.defaults.items()}
    redacted = replace(found, statement=clean(found.statement), conditions=conditions, defaults=defaults)
    return ReadFrame(frame, standing, redacted)


def _agrees(text: str, frame: Frame) -> bool:
    """Tell whether a file's row is what the traceback quotes."""
    rows = text.split("\n", frame.line)
    if len(rows) < frame.line:
        return False
    row, quoted = (" ".join(told.split()) for told in (rows[frame.line - 1], frame.code))
    if row == quoted or (len(quoted) >= LEAST_SHARED and row.startswith(quoted)):
        return True
    # A row whose secrets were masked in the log is held against the file's, masked alike.
    return bool(row) and "[redacted:" in quoted and " ".join(Redactor().clean(row).split()) == quoted
