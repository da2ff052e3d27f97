"""The job's launch command with a change in it, to be pasted: as the log or a launch script shows it.

What cannot be pasted as it stands is no command: one that is cut or masked, that a script computes, or whose
quotes the log has lost.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ingest.configfiles import formats
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.run_record import read_record
from ingest.configfiles.shell import directives
from ingest.configfiles.shell.environment import variables
from ingest.configfiles.shell.inner import inner_scripts
from ingest.configfiles.shell.launches import launches, of_command
from ingest.configfiles.shell.syntax import Script, ShellCommand, parse
from ingest.configfiles.shell.variables import arguments
from ingest.configfiles.shell.words import CharacterUnit, Word
from ingest.redaction.redactor import MASK
from service.patching.patch import carries, patch
from service.patching.patches import ConfigFile
from service.patching.target import PatchTarget

# What a command that was found in the log itself is called: there is no such file on the user's disk.
LOGGED = re.compile(r"command-at-line-(?P<line>\d+)\.sh")
# Characters of a line of a command; a longer one is written a word a line.
WIDTH = 110
# Hands a script with directives to Slurm: https://slurm.schedmd.com/sbatch.html
SUBMIT = "sbatch"
# What stands before a command in a log: a shell's report of a kill, a launcher's label, a prompt, a trace.
_BEFORE = re.compile(
    r"(?:[^\n]{0,200}?: line \d+:\s+\d+ [A-Z][a-z]+(?: [a-z]+)*(?: \(core dumped\))?\s{2,}"
    r"|(?i:run sh|cmd|command|running(?: command)?|executing|launching|process \d+)\s*: ?"
    r"|(?:\([^()\s]{1,60}\) ?)?[\w.-]{1,60}@[\w.-]{1,60}[: ][^\s$#%>]{0,200}[$#%>]\s+"
    r"|\([^()\s]{1,60}\)\s*[$#%>]?\s+|[$❯➜]\s+|[-=]>\s+|\d*\+{1,4}\s+|exec\s+)+"
)
_CUT = re.compile(r"(?:^|\s)(?:\.\.\.|…)(?:\s|$)|(?:\.\.\.|…)$")
# Variables that the job's environment has wherever it is started.
_EVERYWHERE = r"(?:SLURM_\w+|HOME|USER|PWD|HOSTNAME|PATH|LD_LIBRARY_PATH|PYTHONPATH|TMPDIR)"
_GIVEN = re.compile(rf"\$(?:{_EVERYWHERE}\b|\{{{_EVERYWHERE}\}}|\((?:hostname|pwd)\))")
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_DEFAULT = re.compile(r"\$\{\w+:?-([^${}\"'`\\]*)\}")
# An option that takes text in any language, such as a prompt.
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_JSON = re.compile(r"(?<!\S)([^\s'\"{}]*)(?=\{\")")


def corrected_command(files: Sequence[ConfigFile], shown: str, targets: Sequence[PatchTarget]) -> str | None:
    """Give the job's launch command with all targets written into it; None where there is none.

    That of the job's own scripts comes before the one that the log shows, which a launcher may have made.
    """
    scripts = (file for file in files if formats.format_of(file.name, file.text) == "shell")
    texts = [*(_of_script(file, targets) for file in scripts), shown_command(shown)]
    made = (_corrected(text, targets) for text in texts if targets and text)
    return next((command for command in made if command), None)


def recorded_command(files: Sequence[ConfigFile]) -> str:
    """Give the command of the run as a tracker kept it; empty where there is none to paste.

    What started several processes of a program is not kept, so that it is one of a machine with one card.
    """
    records = [record for file in files if (record := read_record(file.text)) is not None]
    if len(records) != 1 or records[0].cards != 1 or not records[0].words:
        return ""
    return shlex.join(["python", records[0].program, *records[0].words])


def _of_script(file: ConfigFile, targets: Sequence[PatchTarget]) -> str:
    """Give the command that starts what a script starts; a batch script is handed to its scheduler."""
    if not directives.options(file.text):
        return launch_command(file.text)
    # What the script itself sets wins over what it is given.
    sets = any(target.kind == "env" and carries(file.name, file.text, target) for target in targets)
    return "" if sets else f"{SUBMIT} {shlex.quote(file.name)}"


def _corrected(text: str, targets: Sequence[PatchTarget]) -> str | None:
    made = patch("command.sh", text, targets)
    if made.left_out or made.text == text:
        return None
    added = made.text.removesuffix(text)
    if len(parse(text).commands) == 1 and made.text.endswith(text) and added.startswith("export "):
        rows = [row.removeprefix("export ") for row in added.splitlines()]
        return " ".join([*rows, text]).strip()
    return made.text.strip()


def shown_command(text: str) -> str:
    """Give a command as a log shows it without what stands before it; empty where it cannot be pasted."""
    label = _BEFORE.match(text)
    body = text[label.end() if label else 0 :].strip()
    if label and "`" in text[: label.end() + 1]:
        body = body.strip("`")
    body = _with_quoted_json(body)
    if MASK in body or _CUT.search(body):
        return ""
    try:
        script = parse(body)
        started = launches(script)
    except NotPatchableError:
        return ""
    return body if started and all(_is_whole(script, command) for command in script.commands) else ""


def _with_quoted_json(text: str) -> str:
    """Put words of JSON whose quotes a log has lost (`--x={"a": 1}`) into quotes again."""
    parts, at = [], 0
    for found in _JSON.finditer(text):
        try:
            end = json.JSONDecoder().raw_decode(text, found.end())[1] if found.end() >= at else -1
        except ValueError:
            continue
        if end == len(text) or (end > 0 and text[end].isspace()):
            parts += [text[at : found.start()], shlex.quote(text[found.start() : end])]
            at = end
    return "".join([*parts, text[at:]])


def _is_whole(script: Script, command: ShellCommand) -> bool:
    """Tell whether a command can be pasted: nothing is computed that only its script knows, and no prose."""
    words = arguments(script, command)
    inner = [parse(text.text) for text in inner_scripts(script)]
    computed = [unit for word in words for unit in word.units if unit.computed]
    computed += [unit for each in inner for of in each.commands for word in of.words for unit in word.units]
    if any(unit.computed and not _GIVEN.fullmatch(unit.text) for unit in computed):
        return False
    pairs = zip([None, *words], words, strict=False)
    return not any(
        _NOT_ASCII.search(word.text)
        and not set(word.text) & set("/=")
        and not (before is not None and before.text.startswith("-"))
        for before, word in pairs
    )


def launch_command(text: str) -> str:
    """Give the one command by which a script starts the job, with the variables that the script sets.

    Empty where the script computes it, starts several or is no script that can be read.
    """
    try:
        script = parse(text.replace("\r\n", "\n"))
        found = [
            each
            for each in launches(script)
            if any(stage.known and not stage.runs_nothing for stage in of_command(script, each))
        ]
        if len(found) != 1 or found[0].branch or script.unset:
            return ""
        return _laid_out(list(_pasted(script, found[0])))
    except NotPatchableError:
        return ""


def _pasted(script: Script, command: ShellCommand) -> Iterator[str]:
    """Give the command's words as they are to be pasted, after the folder and the variables that it needs.

    Raises NotPatchableError where one is computed.
    """
    for each in script.commands:
        if each.words and each.words[0].text == "cd" and each.start < command.start:
            yield " ".join([*(_quoted(script, word) for word in each.words), "&&"])
    handed = {}
    for place in variables(script):
        before = script.text[place.start : command.start]
        is_prefix = place.carrier == "prefix" and "\n" not in before.replace("\\\n", "")
        if place.start < command.start and (is_prefix or place.carrier == "export"):
            handed[place.name] = _quoted(script, place.value)
    yield from (f"{name}={value}" for name, value in handed.items())
    words = arguments(script, command)
    # It would take the place of the shell that it is pasted into.
    for word in words[words[0].text == "exec" :]:
        held = word.reference()
        if held is not None and held.quote == "" and not _GIVEN.fullmatch(word.units[0].text):
            # Without quotes around it, bash cuts a value at blanks.
            yield from map(shlex.quote, _filled(script, word.units[0]).split())
        else:
            yield _quoted(script, word)


def _quoted(script: Script, word: Word) -> str:
    """Write a word for a shell that knows nothing of the script's variables."""
    if word.plain and word.opened == "":
        # As it stands: what has no quotes may be a pattern of file names.
        return word.source[word.start : word.end]
    parts = [_filled(script, unit) for unit in word.units]
    pairs = list(zip(parts, word.units, strict=True))
    if any(unit.computed and unit.quote == "" and re.search(r"\s", part) for part, unit in pairs):
        raise NotPatchableError(word.text)
    if not any(unit.computed and _GIVEN.search(part) for part, unit in pairs):
        return shlex.quote("".join(parts))
    escaped = (part if unit.computed else re.sub(r"([$`\"\\])", r"\\\1", part) for part, unit in pairs)
    return f'"{"".join(escaped)}"'


def _filled(script: Script, unit: CharacterUnit, within: frozenset[str] = frozenset()) -> str:
    """Give what a piece of a word stands for; raises NotPatchableError where only the script's run tells.

    `within` are the variables whose values are being put together: one that is made of itself, `P=/job:$P`,
    goes on from what the shell was given.
    """
    if not unit.computed or _GIVEN.fullmatch(unit.text):
        return unit.text
    if found := _DEFAULT.fullmatch(unit.text):
        return found[1]
    found = _REFERENCE.fullmatch(unit.text)
    name = (found[1] or found[2]) if found else ""
    held = [each for each in script.assignments if each.name == name and not each.prefix]
    if (
        name in within
        or len(held) != 1
        or held[0].array
        or held[0].append
        or held[0].branch
        or name in script.changed_names
    ):
        raise NotPatchableError(unit.text)
    units = held[0].words[0].units if held[0].words else ()
    return "".join(_filled(script, each, within | {name}) for each in units)


def _laid_out(words: Sequence[str]) -> str:
    """Write words in one line, or an option or an override a line where that is too long."""
    line = " ".join(words)
    if len(line) <= WIDTH:
        return line
    rows = [words[0]]
    for before, word in pairwise(words):
        is_own = word.startswith("--") or ("=" in word and not before.startswith("-"))
        rows += [word] if is_own or before == "&&" else [f"{rows.pop()} {word}"]
    return " \\\n    ".join(rows)
