"""The job's own configuration as far as its output, or a file of its own, shows it.

Read, never executed: commands are split by shell rules, values that the shell would compute stay as written.
Secrets go before a row is read: the quotes and names that tell them are gone behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from ingest.configfiles.settings import LONGEST, Setting, Spelling
from ingest.configfiles.shell import commands, directives
from ingest.configfiles.shell.commands import is_command
from ingest.logs import lines
from ingest.logs.configs import dumps
from ingest.logs.configs.settings import ConfigLine, SettingLog
from ingest.logs.lines import Line
from ingest.redaction.redactor import Redactor

__all__ = [
    "ConfigLine",
    "LaunchReader",
    "Setting",
    "SettingLog",
    "Spelling",
    "from_command",
    "from_directives",
    "from_dump",
    "from_file",
    "is_command",
    "rows_below",
]

# Bytes of one row that are looked at; a `Namespace(...)` of a large framework is longer than a shown line.
MAX_ROW = 65_536
# Rows, and prints, of one log that are read as configuration; a print by every rank is read once.
MAX_ROWS = 60_000
# Bytes of a manifest of a cluster above its values.
MANIFEST = 2048
# Rows of other sources after which a silent one is taken to be done.
OTHERS = 512
# Bytes in which the prefixes of a row stand.
_HEAD = 400
# How many rows tell one print from another.
_TELLING = 12
_SECRET = re.compile(rb"kind['\": ]{1,6}Secret\b")
_XTRACE = re.compile(r"^\+{1,4} (?=\S)|^(?:Entrypoint|Command|cmd) ?[:=] ?", re.MULTILINE)


def from_command(text: str, line: int) -> list[Setting]:
    """Read overrides, flags and environment of one command, continuation lines joined; without secrets."""
    return commands.of_trace(Redactor().clean(text), line)


def from_dump(text: str, line: int, rows: Iterable[ConfigLine] = ()) -> list[Setting]:
    """Read what a framework prints of its configuration, from its first line and those below.

    Without secrets.
    """
    return _printed(Redactor(), ConfigLine(line, text), rows, text)


def from_directives(row: str, line: int) -> list[Setting]:
    """Read a row of a Slurm script's head, as it stands in a log or a paste; without secrets."""
    return [
        Setting(option.name, option.value.text[:LONGEST] if option.value else "true", line, "directive")
        for option in directives.options(Redactor().clean(row))
    ]


def from_file(text: str, name: str = "") -> list[Setting]:
    """Read the settings of one of the job's own files, in order, without secrets.

    `name` tells its format, else its text does.
    """
    # Imported here: a log alone needs no parser of files.
    from ingest.configfiles import reader

    return reader.read(Redactor().clean(text), name)


def _printed(redactor: Redactor, head: ConfigLine, rows: Iterable[ConfigLine], full: str) -> list[Setting]:
    """Read a print whose rows are cleaned together: where one tells a secret, once more without it."""
    taken = [head]

    def noted() -> Iterator[ConfigLine]:
        for row in rows:
            taken.append(row)
            yield row

    found = dumps.read(head, noted(), full)
    bodies = [row.body for row in taken]
    cleaned = redactor.rows(bodies)
    if not found or cleaned == bodies:
        return found
    first, *others = (ConfigLine(row.number, body) for row, body in zip(taken, cleaned, strict=True))
    return dumps.read(first, iter(others), redactor.clean(full))


def rows_below(data: bytes, offset: int, line: Line) -> Iterator[ConfigLine]:
    """Give the row of `data` that holds `offset`, in full, and those below it of the same source.

    None of a cluster's Secret.
    """
    begin = max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset)) + 1
    # Whether a row belongs to a Secret's manifest, whose keys and values have any name, and configure no job.
    place = data.rfind(b"Secret", max(0, begin - MANIFEST), begin)
    is_manifest = (
        place >= 0
        and _SECRET.search(data, max(0, place - 12), place + 7) is not None
        and data.find(b"\n---", place, begin) < 0
    )
    if is_manifest:
        return
    end = _end(data, offset)
    yield ConfigLine(line.number, _body(data[begin:end].split(b"\r", 1)[0], line.number)[1])
    # Most rows of other sources are told by what they lack, before they are taken apart.
    told = (line.pid or line.actor or line.node or line.rank).encode()
    number, begin, others = line.number, end + 1, 0
    while begin < len(data) and others < OTHERS:
        number, end, others = number + 1, _end(data, begin), others + 1
        source, body = (
            _body(data[begin:end], number) if told in data[begin : min(end, begin + _HEAD)] else (None, "")
        )
        begin = end + 1
        if source == line.source:
            others = 0
            yield ConfigLine(number, body)


def _end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start)
    return len(data) if end < 0 else end


def _body(raw: bytes, number: int) -> tuple[str, str]:
    """Give a row's source, and its text without prefixes; of a long row more than what is shown."""
    parsed = lines.parse_line(raw[: lines.MAX_TEXT], number)
    if len(raw) <= lines.MAX_TEXT or b"\r" in raw:
        return parsed.source, parsed.body
    whole = lines.printable(raw[:MAX_ROW].decode("utf-8", "replace"))
    return parsed.source, whole[len(parsed.text) - len(parsed.body) :] if parsed.text.endswith(
        parsed.body
    ) else parsed.body


def _whole(rows: Iterable[str]) -> str:
    """Join a command's rows, without what a shell shows before those that go on."""
    return " ".join(
        row.removesuffix("\\").removeprefix("> " if place else "") for place, row in enumerate(rows)
    )


# A row of code or of a message in a drawn box: what stands there nobody started.
_BOXED = re.compile(r"\s*[│┃|❱] ")


class LaunchReader:
    """Reads commands and prints of one log, each of them once, within bounds."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor()
        # The command with the most settings, as it is printed: what a patch is made of where there is no
        # file.
        self.shown = ConfigLine(0, "")
        self._most = 0
        self._spans: dict[int, int] = {}
        self._until: dict[str, int] = {}
        self._through: dict[str, int] = {}
        self._left = MAX_ROWS

    def command(self, rows: Iterable[ConfigLine], source: str = "") -> tuple[str, list[Setting]]:
        """Read the command that begins in the first row of a source.

        Gives its whole text, and settings where it is new.

        A row that another command of the source goes on with begins none: it gives nothing.
        """
        printed: list[str] = []
        number, size = 0, 0
        for row in islice(rows, dumps.MAX_ROWS):
            if not printed and row.number <= self._through.get(source, 0):
                return "", []
            number = number or row.number
            self._through[source] = row.number
            printed.append(row.body)
            size += len(row.body)
            if not row.body.endswith("\\") or size > MAX_ROW:
                break
        text = _whole(printed)
        if commands.is_usage(text):
            return text, []
        if hash(text) in self._spans or len(self._spans) >= MAX_ROWS:
            return text, []
        self._spans[hash(text)] = 0
        # The rows as they were printed, and then the whole: a value may stand in the row below its name.
        cleaned = self._redactor.rows(printed)
        joined = text if cleaned == printed else _whole(cleaned)
        found = commands.of_trace(self._redactor.clean(joined), number)
        # A module alone may as well be what a message tells one to start.
        is_run = any(setting.key != "m" for setting in found) or _XTRACE.match(text)
        if len(found) > self._most and is_run and not _BOXED.match(printed[0]):
            self._most, self.shown = (
                len(found),
                ConfigLine(number, _XTRACE.sub("", "\n".join(printed)) + "\n"),
            )
        return text, found

    def dump(self, line: Line, rows: Iterable[ConfigLine]) -> list[Setting]:
        """Read the print that begins in the first of `rows`, unless an earlier one holds or repeats it."""
        each = iter(rows)
        head = next(each, None)
        if head is None or head.number <= self._until.get(line.source, 0):
            return []
        kind = dumps.find(head.body, line.text)
        if kind is None:
            return []
        following = self._counted(each) if kind[0].is_long else iter(())
        first = list(islice(following, _TELLING))
        told = hash((head.body, *(row.body for row in first)))
        if told not in self._spans and len(self._spans) >= MAX_ROWS:
            return []
        found = (
            _printed(self._redactor, head, chain(first, following), line.text)
            if told not in self._spans
            else []
        )
        # What a print holds begins no other one.
        span = self._spans.setdefault(
            told, max((item.line for item in found), default=head.number) - head.number
        )
        self._until[line.source] = head.number + span
        return found

    def _counted(self, rows: Iterable[ConfigLine]) -> Iterator[ConfigLine]:
        for row in rows:
            if self._left <= 0:
                return
            self._left -= 1
            yield row
