"""The job's own files: launch scripts, batch directives, YAML, JSON, requirements, variables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from ingest.configfiles import literals, outlines
from ingest.configfiles.literals import MAX_ENTRIES, LiteralEntry
from ingest.configfiles.settings import Setting, printed
from ingest.configfiles.shell import arguments, commands

# Characters of a file, and of one row of it, that are read.
MAX_TEXT = 4_000_000
MAX_ROW = 65_536

Numbered = list[tuple[int, str]]

_ASSIGNED = re.compile(
    r"\s*(?:export\s+)?(?P<key>[A-Za-z_]\w*)(?P<more>\+?)=(?P<value>'[^']*'|\"[^\"$`]*\"|[^\s'\"$`;&|()]*)\s*(?:#.*)?$"
)
_SET = re.compile(
    r"(?:^|[\s;])(?:export\s+|local\s+|read\s+(?:-\w+\s+)*|for\s+)?(?P<key>[A-Za-z_]\w*)(?:\+?=|\s+in\s)"
)
_USED = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>[A-Za-z_]\w*))")
_DIRECTIVE = re.compile(r"\s*#SBATCH\s+(?P<options>.*)")
_OPTION = re.compile(
    r"--(?P<long>[a-z][\w-]*)(?:[= "
    r"](?P<value>\"[^\"]*\"|'[^']*'|(?!-)[^\s#]+))?|(?<!\S)-(?P<short>[A-Za-z])(?: "
    r"?(?P<short_value>[^\s#-][^\s#]*))?"
)
_SHORT = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "t": "time",
    "p": "partition",
    "G": "gpus",
    "J": "job-name",
    "o": "output",
    "e": "error",
    "w": "nodelist",
    "x": "exclude",
    "A": "account",
    "q": "qos",
    "d": "dependency",
    "C": "constraint",
}
_VARIABLE = re.compile(r"\s*(?:export\s+|ENV\s+)?(?P<key>[A-Za-z_]\w*)\s*=\s*(?P<value>.*)$")
_SECTION = re.compile(r"\s*\[{1,2}(?P<name>[\w.\"' -]+)\]{1,2}\s*(?:#.*)?$")
_PAIR = re.compile(r"\s*(?P<key>[\w.\"-]+)\s*=\s*(?P<value>.*)$")
_OVERRIDE = re.compile(r"\s*- +['\"]?(?:[+~]{0,2})[\w./@-]+=")
_OBJECT = re.compile(
    r"(?:^|(?<=\.))(?:spec|containers|initContainers|template|jobTemplate|worker|replicaSpecs|\w+ReplicaSpecs|Worker|Master|rayClusterSpec)\."
)
_REQUIREMENT = re.compile(r"-|[A-Za-z][\w.-]*(?:\[[\w,.-]*\])?\s*(?:(?:[=~!<>]=|<|>)\s*\d.*)?$")


def read(text: str, name: str = "") -> list[Setting]:
    """Read a file by what its name, else its text, says it is."""
    rows = [
        (number, row.removesuffix("\r")[:MAX_ROW])
        for number, row in enumerate(text[:MAX_TEXT].split("\n"), 1)
    ]
    reader = next((reader for named, reader in _FORMATS if named.search(name)), None) or _guessed(rows)
    return list(islice(reader(rows), MAX_ENTRIES))


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join lines that end in a backslash; yields the first line's number and the whole."""
    return _joined(enumerate(text.removesuffix("\n").split("\n"), 1))


def _joined(rows: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    held: list[str] = []
    start = 1
    for number, row in rows:
        start = start if held else number
        if row.rstrip().endswith("\\"):
            held.append(row.rstrip()[:-1])
            continue
        yield start, " ".join([*held, row])
        held = []
    if held:
        yield start, " ".join(held)


def _script(rows: Numbered) -> Iterator[Setting]:
    """Read a shell script; a variable that it sets once, to a plain value, is put where it is used."""
    known = _variables(rows)
    for number, row in _joined(rows):
        if match := _DIRECTIVE.match(row):
            yield from _directives(match["options"], number)
            continue
        for setting in commands.of_script(row, number):
            yield replace(setting, value=_filled(setting.value, known)) if "$" in setting.value else setting


def _variables(rows: Numbered) -> dict[str, str]:
    times = Counter(match["key"] for _, row in rows for match in _SET.finditer(row))
    found: dict[str, str] = {}
    for _, row in rows:
        match = _ASSIGNED.match(row)
        if match and not match["more"] and times[match["key"]] == 1:
            found[match["key"]] = match["value"].strip("'\"")
    return found


def _filled(value: str, known: dict[str, str]) -> str:
    return _USED.sub(lambda match: known.get(match["braced"] or match["plain"], match[0]), value)


def _directives(options: str, number: int) -> Iterator[Setting]:
    for match in _OPTION.finditer(options):
        key = match["long"] or _SHORT.get(match["short"], match["short"])
        yield Setting(
            key, (match["value"] or match["short_value"] or "true").strip("'\""), number, "directive"
        )


def _yaml(rows: Numbered) -> Iterator[Setting]:
    """Read YAML; a list of Hydra overrides is one of words, and a cluster object is known by its container's part."""
    if any(_OVERRIDE.match(row) for _, row in rows) and all(
        _OVERRIDE.match(row) or not row.strip(" -") or row.lstrip()[0] == "#" for _, row in rows
    ):
        for number, row in rows:
            yield from commands.of_words(
                [literals.unquoted(row.strip().removeprefix("- ").strip())] if row.strip(" -") else [], number
            )
        return
    found = outlines.entries(rows)
    is_object = any(entry.path == "apiVersion" for entry in found)
    yield from printed(_environment(_inside(found) if is_object else found), "yaml")


def _inside(found: Iterable[LiteralEntry]) -> Iterator[LiteralEntry]:
    """Leave out the path down to a pod's or container's own settings."""
    for entry in found:
        last = max((match.end() for match in _OBJECT.finditer(entry.path)), default=0)
        yield entry._replace(path=entry.path[last:])


def _environment(found: Iterable[LiteralEntry]) -> Iterator[LiteralEntry]:
    """Join `name: A`, `value: b` below `env`, and split `[A=b]` below `environment`."""
    name = ""
    for entry in found:
        if re.search(r"(?:^|\.)env\.name$", entry.path):
            name = entry.value
        elif re.search(r"(?:^|\.)env\.value$", entry.path) and name:
            yield entry._replace(path=f"env.{name}")
        elif re.search(r"(?:^|\.)environment$", entry.path):
            pairs = [part.partition("=") for part in entry.value.strip("[]").split(", ")]
            yield from (entry._replace(path=f"environment.{key}", value=value) for key, _, value in pairs)
        else:
            yield entry


def _json(rows: Numbered) -> Iterator[Setting]:
    start = next((place for place, (_, row) in enumerate(rows) if row.strip()), len(rows))
    plain = [(number, re.sub(r"^\s*//.*", "", row)) for number, row in rows[start:]]
    if plain and plain[0][1].lstrip()[:1] == "{":
        plain[0] = (plain[0][0], plain[0][1].lstrip()[1:])
        yield from printed(literals.entries(plain, is_call=False), "json")


def _requirements(rows: Numbered) -> Iterator[Setting]:
    for number, row in rows:
        if found := arguments.read_requirement(row):
            yield Setting(found["name"], found["version"], number, "package")


def _environ(rows: Numbered) -> Iterator[Setting]:
    for number, row in rows:
        if match := _VARIABLE.match(row):
            yield Setting(match["key"], _scalar(match["value"]), number, "env")


def _sections(rows: Numbered) -> Iterator[Setting]:
    """Read TOML or INI: sections in brackets, and `key = value`."""
    section = ""
    pairs: list[LiteralEntry] = []
    for number, row in rows:
        if match := _SECTION.match(row):
            section = re.sub(r"[\"' ]", "", match["name"]) + "."
        elif match := _PAIR.match(row):
            pairs.append(LiteralEntry(section + match["key"].strip('"'), _scalar(match["value"]), number))
    yield from printed(pairs, "dump")


def _scalar(value: str) -> str:
    """Take a comment and the quotes off a value."""
    value = value.strip()
    if quoted := re.match(r"'([^']*)'|\"((?:[^\"\\]|\\.)*+)\"", value):
        return quoted[1] if quoted[1] is not None else literals.unquoted(quoted[0])
    return re.sub(r"(?:^|\s)#.*", "", value).strip()


def _guessed(rows: Numbered) -> Callable[[Numbered], Iterator[Setting]]:
    """Tell a file's format from its first rows; a script where nothing else fits."""
    shown = [
        row
        for _, row in rows
        if row.strip() and (row.lstrip()[0] != "#" or row.startswith(("#!", "#SBATCH")))
    ][:200]
    if not shown or shown[0].startswith(("#!", "#SBATCH")):
        return _script
    if shown[0].lstrip()[0] == "{":
        return _json
    if all(_REQUIREMENT.match(row) for row in shown) and any(re.search(r"[=~<>]=", row) for row in shown):
        return _requirements
    if all(re.match(r"\s*(?:- |[\w.\"'-]+:(?: |$)|---)", row) for row in shown[:40]):
        return _yaml
    if shown[0].lstrip()[0] == "[" and any(_SECTION.match(row) for row in shown):
        return _sections
    return _script


_FORMATS: tuple[tuple[re.Pattern[str], Callable[[Numbered], Iterator[Setting]]], ...] = (
    (re.compile(r"(?i)(?:^|[/_.-])(?:requirements|constraints)[\w.-]*\.(?:txt|in)$"), _requirements),
    (re.compile(r"(?i)\.ya?ml$"), _yaml),
    (re.compile(r"(?i)\.json[c5]?$"), _json),
    (re.compile(r"(?i)(?:^|/)\.env[\w.-]*$|\.env$|(?:^|/)\.deepspeed_env$"), _environ),
    (re.compile(r"(?i)\.(?:toml|ini|cfg)$"), _sections),
    (re.compile(r"(?i)\.(?:sh|bash|zsh|sbatch|slurm|job)$"), _script),
)
