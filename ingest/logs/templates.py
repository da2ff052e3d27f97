"""What a healthy run of the same job prints: lines that say nothing of why another run died.

A line's template is the line without its digits. Every healthy log warns and retries; what also stands in a
run that ended well is no cause.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus.message import Message
from ingest.errors import BrokenTemplatesError
from ingest.logs.events import GroupKey

FORMAT = "whycrash.templates/1"
# Distinct templates that are kept; a job prints far fewer.
MOST = 500_000

_DIGITS = b"0123456789"


@dataclass(frozen=True)
class Templates:
    """Checksums of a healthy run's line templates, and the groups of its events.

    `failed_at` is the line at which the run failed itself and so is no healthy one; 0 where it did not.
    """

    lines: frozenset[int]
    events: frozenset[GroupKey]
    failed_at: int = 0

    def has(self, line: bytes) -> bool:
        """Tell whether a line of this template stands in the healthy run."""
        return checksum(line) in self.lines

    def save(self, path: Path) -> None:
        """Write them to a file that `load` reads."""
        told = {"format": FORMAT, "lines": sorted(self.lines), "events": sorted(self.events)}
        path.write_text(json.dumps(told, ensure_ascii=False))


def checksum(line: bytes) -> int:
    """Give the checksum of a line's template."""
    return zlib.crc32(line.translate(None, _DIGITS).strip())


def checksums(data: bytes) -> Iterator[int]:
    """Give the checksum of each line's template, each distinct line once."""
    return (zlib.crc32(line.strip()) for line in set(data.translate(None, _DIGITS).split(b"\n")))


def is_saved(head: bytes) -> bool:
    """Tell whether a file begins as saved templates do."""
    return head.lstrip().startswith(b'{"format": "whycrash.templates')


def load(path: Path) -> Templates:
    """Read saved templates; raises BrokenTemplatesError."""
    try:
        told = json.loads(path.read_bytes())
        if told["format"] != FORMAT:
            raise BrokenTemplatesError(
                Message("errors.holds-version-reads", path=path, value=told["format"], value_2=FORMAT)
            )
        return Templates(
            frozenset(map(int, told["lines"])),
            frozenset((str(name), str(text)) for name, text in told["events"]),
        )
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise BrokenTemplatesError(
            Message("errors.holds-no-templates-healthy", path=path, reason=error)
        ) from error
