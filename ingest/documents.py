"""Documents: the pieces of text that the index holds, and how cases and reports become them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from corpus.schema import Case, Language
from ingest.logs.report import CrashReport

DocumentKind = Literal["case", "note", "report"]

CHUNK_CHARACTERS = 900
_SECTION = re.compile(r"^### .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One piece of text under search.

    `owner` is the case, note or report that it is a part of; `origin` the file it came from (empty for
    the corpus); `cause` is empty where none is known. Of a crash that several jobs had, `jobs` counts them,
    `owner` and `origin` are the first one's and `last` is the last one's owner. `home` names the home that
    took the file in, where several share an index. `team` is the one that alone may find it, empty for all.
    """

    id: str
    kind: DocumentKind
    owner: str
    title: str
    text: str
    language: str
    origin: str = ""
    cause: str = ""
    fix: str = ""
    heading: str = ""
    jobs: int = 1
    last: str = ""
    home: str = ""
    team: str = ""

    @property
    def digest(self) -> str:
        """Give a hash of what is embedded, to tell whether a vector is still good."""
        return hashlib.sha256(self.embedded.encode()).hexdigest()[:24]

    @property
    def embedded(self) -> str:
        """Give the text that vectors and words are made of: the title gives each piece its subject."""
        return f"{self.title}\n{self.text}"

    def record(self) -> dict[str, Any]:
        """Give the fields for storage."""
        return asdict(self)


def of_case(case: Case) -> Iterator[Document]:
    """Cut a case into pieces, by language and section."""
    languages: tuple[Language, ...] = ("en", "zh")
    for language in languages:
        yield from _in_language(case, language)


def _in_language(case: Case, language: Language) -> Iterator[Document]:
    title = case.title.to(language)
    keys = " ".join(change.key for change in case.changes)
    sections = [part.strip() for part in _SECTION.split(case.body.to(language)) if part.strip()]
    for number, section in enumerate(sections):
        text = f"{section}\n{keys}" if number == len(sections) - 1 and keys else section
        for piece_number, piece in enumerate(pieces(text)):
            name = f"case:{case.id}:{language}:{number}.{piece_number}"
            yield Document(name, "case", case.id, title, piece, language, cause=case.cause)


def of_report(
    report: CrashReport, owner: str, origin: str, cause: str = "", fix: str = ""
) -> Document | None:
    """Turn a crash into one document: its fingerprint, root event and facts, never the raw log."""
    if report.root is None:
        return None
    root = report.root
    frameworks = ", ".join(f"{found.name} {found.version}".strip() for found in report.frameworks)
    facts = "; ".join(
        f"{fact.kind} " + " ".join(f"{key}={value}" for key, value in fact.fields.items())
        for fact in report.facts
        if fact.line == root.line
    )
    lines = [
        root.body,
        f"exception {root.exception}" if root.exception else "",
        f"in {frame_path(report)}",
        f"phase {report.phase}" if report.phase else "",
        facts,
        f"frameworks {frameworks}",
    ]
    text = "\n".join(line for line in lines if line and line != "in ")
    title = f"{owner}: {root.exception or root.pattern}"
    return Document(
        f"report:{hashlib.sha256((origin + report.fingerprint).encode()).hexdigest()[:16]}",
        "report",
        owner,
        title,
        text,
        "en",
        origin=origin,
        cause=cause,
        fix=fix,
        heading=report.fingerprint,
    )


def collapsed(crashes: Iterable[Document]) -> Iterator[Document]:
    """Make one document of the same crash of many jobs, in the order of their first files.

    First and last go by the file's path: jobs' names count up or begin with a date, and not every log has
    times.
    Where people gave jobs different causes or fixes, those stay apart, and so do those of different teams.
    """
    groups: dict[tuple[str, str, str, str], list[Document]] = {}
    for crash in sorted(crashes, key=lambda document: document.origin):
        groups.setdefault((crash.heading, crash.cause, crash.fix, crash.team), []).append(crash)
    for first, *others in groups.values():
        yield replace(first, jobs=1 + len(others), last=others[-1].owner) if others else first


def frame_path(report: CrashReport) -> str:
    """Name the innermost calls of the root event, outermost first."""
    frames = report.root.frames[-4:] if report.root else ()
    return " > ".join(frame.function for frame in frames)


def pieces(text: str, limit: int = CHUNK_CHARACTERS) -> Iterator[str]:
    """Cut text at paragraph, then line, then sentence ends into pieces of at most `limit` characters."""
    held = ""
    for part in _parts(text, limit):
        if held.strip() and len(held) + len(part) > limit:
            yield held.strip()
            held = ""
        held = (held + part).lstrip()  # white space in front is part of no piece, and takes no room
    if held.strip():
        yield held.strip()


def _parts(text: str, limit: int) -> Iterator[str]:
    for paragraph in re.split(r"(?<=\n)\s*\n", text):
        if len(paragraph) <= limit:
            yield paragraph + "\n"
            continue
        for sentence in re.split(r"(?<=[.!?。！？;；\n])", paragraph):
            yield from (sentence[begin : begin + limit] for begin in range(0, len(sentence), limit))
