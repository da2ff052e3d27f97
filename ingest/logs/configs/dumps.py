"""What programs print of their own configuration: one row per format, found by how it begins.

The formats are those of the print code: argparse, pprint, OmegaConf, json, DeepSpeed, Megatron, transformers,
vLLM, SGLang, torch elastic, NCCL. A reader of a format gets the text behind the beginning and the rows below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice

from corpus.frameworks import PrintForm, known_frameworks
from ingest.configfiles import literals, outlines
from ingest.configfiles.literals import LiteralEntry
from ingest.configfiles.settings import Setting, printed
from ingest.configfiles.shell import commands
from ingest.logs.configs import tables
from ingest.logs.configs.settings import ConfigLine
from ingest.logs.configs.tables import Rows

MAX_ROWS = 3000

_PAIR = re.compile(r"[a-z_]\w*=")


@dataclass(frozen=True, slots=True)
class OpenDump:
    """A print at its beginning: where its format was known by, that row's number, and the rows below."""

    match: re.Match[str]
    line: int
    rows: Rows
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def behind(self) -> str:
        """The rest of the first row."""
        return self.match.string[self.match.end() :]

    def nested(self) -> Rows:
        """Give the rest of the first row and the indented rows below."""
        return chain([ConfigLine(self.line, self.behind)], tables.nested(self.rows))


@dataclass(frozen=True, slots=True)
class Dump:
    """A format: how it begins, how it is read, and whether it is more than the row it begins in.

    `in_full` where it is known by the place in the code that a logger puts before the message. `names` is
    what the print calls settings by other names.
    """

    begins: re.Pattern[str]
    read: Callable[[OpenDump], Iterable[Setting]]
    is_long: bool
    in_full: bool
    names: Mapping[str, str]


def find(body: str, full: str) -> tuple[Dump, re.Match[str]] | None:
    """Tell which format begins in a row, by its text without and with prefixes."""
    for dump in dump_formats():
        if match := dump.begins.search(full if dump.in_full else body):
            return dump, match
    return None


def _call(begun: OpenDump) -> Iterable[Setting]:
    """Read `Name(key=value, ...)`, in one row or one row per setting."""
    if begun.behind.strip():
        return printed(literals.entries(begun.nested(), is_call=True))
    first = list(islice(begun.rows, 1))
    if first and first[0].body[:1].isspace():
        return printed(literals.entries(tables.nested(chain(first, begun.rows)), is_call=True))
    return printed(tables.call_rows(chain(first, begun.rows)))


def _mapping(begun: OpenDump) -> Iterable[Setting]:
    """Read a mapping that a label announces."""
    return printed(literals.entries(begun.nested(), is_call=False))


def _known_mapping(begun: OpenDump) -> Iterable[Setting]:
    """Read a mapping without a label, if it is a configuration by the names in it."""
    found = literals.entries(begun.nested(), is_call=False)
    known = {entry.path.split(".", 1)[0] for entry in found} & known_keys()
    # One row may as well be a step's results, with a name or other in common.
    least = 1 if found and found[-1].line > begun.line else 2
    return printed(found) if len(known) >= least else []


def _announced(begun: OpenDump) -> Iterable[Setting]:
    """Read what follows `config:` in the next rows: JSON, a printed dict, or an outline."""
    first = next(begun.rows, None)
    if first is None:
        return []
    if (opening := re.match(r"\s*\{", first.body)) is not None:
        return _mapping(OpenDump(opening, first.number, begun.rows))
    block = list(tables.block(chain([first], begun.rows)))
    return printed(block) if len(block) > 2 else []


def _outline(begun: OpenDump) -> Iterable[Setting]:
    """Read an outline that begins with a section's name; what is no mapping of two levels is none."""
    first = list(islice(begun.rows, 1))
    if not first or not re.match(r"\s+[\w.-]+:(?: |$)", first[0].body):
        return []
    return printed(
        outlines.entries(
            tables.until_blank(chain([ConfigLine(begun.line, begun.match["section"])], first, begun.rows))
        )
    )


def _rows(begun: OpenDump) -> Iterable[Setting]:
    """Read one row of a table of settings, or the JSON that begins in it."""
    name, value = begun.match["key"], begun.match["value"].strip()
    key = begun.names.get(name, name)
    if value[:1] == "{":
        path = f"{key}." if key else ""
        below = tables.nested(begun.rows) if value == "{" else []
        return printed(
            literals.entries(chain([ConfigLine(begun.line, value[1:])], below), is_call=False, path=path)
        )
    if name.endswith("_config") and _PAIR.match(value):
        return printed(literals.entries([ConfigLine(begun.line, value)], is_call=True, path=f"{key}."))
    return printed([LiteralEntry(key, literals.unquoted(value), begun.line)])


# How Hydra's and other loggers begin a message, where no prefix of a launcher is.
_LOGGER = r"(?:\[[^\]]{1,60}\] ?){1,5}(?:- )?"

_READERS: Mapping[PrintForm, Callable[[OpenDump], Iterable[Setting]]] = {
    # A printed list of a command's words.
    "words": lambda begun: commands.of_words(literals.list_members(begun.behind), begun.line),
    "call": _call,
    "mapping": _mapping,
    "known": _known_mapping,
    "announced": _announced,
    "outline": _outline,
    # `key=value, ...` in the rest of the row.
    "pairs": lambda begun: printed(
        entry._replace(path=begun.names.get(entry.path, entry.path))
        for entry in literals.entries([(begun.line, begun.behind)], is_call=True)
    ),
    "dotted": lambda begun: printed(tables.dotted_rows(begun.rows)),
    "elastic": lambda begun: printed(tables.elastic_rows(begun.rows)),
    "rows": _rows,
    # A file of Python, as it is.
    "assigned": lambda begun: printed(tables.assigned(begun.rows)),
    # A variable of the environment.
    "variable": lambda begun: [
        Setting(begun.match["key"], literals.unquoted(begun.match["value"].strip()), begun.line, "env")
    ],
    # A row of a summary in words.
    "named": lambda begun: [
        Setting(begun.names[begun.match["key"]], begun.match["value"].replace(",", ""), begun.line, "dump")
    ],
}


@cache
def known_keys() -> frozenset[str]:
    """Give the keys that tell a printed configuration from a printed result or a description of a model."""
    return frozenset(key for row in known_frameworks().rows.values() for key in row.config.keys)


@cache
def dump_formats() -> tuple[Dump, ...]:
    """Give the formats of all frameworks; those of no framework in particular stand last in the table."""
    known = known_frameworks()
    sections = dict.fromkeys(name for row in known.rows.values() for name in row.config.sections)
    words = {
        "<variables>": "|".join(map(re.escape, known.variable_prefixes)),
        "<sections>": "|".join(map(re.escape, sections)),
        "<logger>": _LOGGER,
    }
    return tuple(
        Dump(
            re.compile(re.sub("<(?:variables|sections|logger)>", lambda m: words[m[0]], row.begins)),
            _READERS[row.form],
            row.is_long,
            row.in_full,
            row.names,
        )
        for framework in known.rows.values()
        for row in framework.prints
    )


def read(head: ConfigLine, rows: Rows, full: str) -> list[Setting]:
    """Read the print that begins in `head`, whose rows go on in `rows`; none where nothing known begins."""
    found = find(head.body, full)
    if found is None:
        return []
    dump, match = found
    return list(
        islice(
            dump.read(OpenDump(match, head.number, islice(rows, MAX_ROWS), dump.names)), literals.MAX_ENTRIES
        )
    )
