"""The settings of a launch script with their places, as bash reads it, and the edits at such places."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from corpus.message import Message
from corpus.schema import Scalar
from ingest.configfiles import literals, tree_settings
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.settings import LONGEST, Edit, FilePlace, Setting, Spelling, edited, place_at, printed
from ingest.configfiles.shell import arguments, commands, directives, environment
from ingest.configfiles.shell.arguments import ArgumentSetting
from ingest.configfiles.shell.inner import in_script
from ingest.configfiles.shell.installs import installs
from ingest.configfiles.shell.launches import stages
from ingest.configfiles.shell.spelling import HYDRA, spelled
from ingest.configfiles.shell.syntax import Script, parse
from ingest.configfiles.shell.variables import changeable
from ingest.configfiles.shell.words import CharacterUnit, Word, WordEdit

# Scripts within scripts that are followed.
_DEPTH = 2
# Commands of the shell itself, which configure no program.
_SHELL_OWN = frozenset({"set", "shopt", "trap", "exit", "return", "shift"})
_REFERENCE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


class ScriptReader:
    """Collects the settings of one script, each place once."""

    def __init__(self, script: Script, depth: int = _DEPTH) -> None:
        self._script, self._depth = script, depth
        self._found: list[tuple[int, Setting]] = []
        self._seen: set[int] = set()

    def settings(self) -> list[Setting]:
        """Give the settings in the order of their places."""
        for option in directives.options(self._script.text):
            word = option.value if option.value is not None else option.word
            write = _switched if option.value is None else self._written
            place = self._at(word, "#SBATCH", partial(write, word))
            value = "true" if option.value is None else option.value.text
            self._add(option.name, value, "directive", option.word, place)
        for variable in environment.variables(self._script):
            self._variable(variable)
        for install in installs(self._script):
            self._install(install.word)
        for stage in stages(self._script):
            if stage.words and stage.words[0].text not in _SHELL_OWN:
                self._words(stage.words, " ".join(word.text for word in stage.words[: stage.names]))
        # Arguments that a variable holds which no command of this script expands.
        for each in self._script.assignments:
            held = each.words if each.array else [piece for word in each.words for piece in word.pieces()]
            if each.array or (held and held[0].text.startswith("--")):
                self._words(held, each.name)
        return [setting for _, setting in sorted(self._found, key=lambda found: found[0])]

    def _add(self, key: str, value: str, spelling: Spelling, word: Word, place: FilePlace | None) -> None:
        start = place.start if place else word.start
        setting = Setting(key, value[:LONGEST], self._script.line(start), spelling, place)
        self._found.append((word.start, setting))

    def _variable(self, variable: environment.VariablePlace) -> None:
        if variable.carrier == "job":
            return  # read with the rest of the runtime environment
        self._seen.add(variable.start)
        spelling = arguments.assigned(variable.name)
        value = self._filled(variable.value)
        # What `read` takes from a here-document is text that a command expands.
        if value and variable.declared != "read":
            place = self._place(variable.value, variable.declared, spelling)
            self._add(variable.name, value, spelling, variable.value, place)

    def _install(self, word: Word) -> None:
        self._seen.add(word.start)
        found = arguments.read_requirement(word.text)
        if found is None:
            return
        begin, end = found.span("version")
        place = None
        if word.plain and begin:
            place = self._at(word, "pip", partial(_in_span, word, begin, end))
        self._add(found["name"], found["version"], "package", word, place)

    def _words(self, words: Sequence[Word], scope: str) -> None:
        """Read a program's words; of what it sets twice, the last counts."""
        texts = [word.text for word in words]
        if commands.is_pip(texts):
            return
        last: dict[tuple[str, Spelling], tuple[ArgumentSetting, int]] = {}
        for at, word in enumerate(words):
            if word.start in self._seen:
                continue
            self._seen.add(word.start)
            found = list(arguments.read_settings(texts, at))
            for setting in found:
                last[setting.key, setting.spelled] = (setting, at)
            if not found:
                self._inner(word)
        for setting, at in last.values():
            self._argument(words, setting, at, scope)

    def _argument(self, words: Sequence[Word], setting: ArgumentSetting, at: int, scope: str) -> None:
        word = words[at]
        if setting.word is None:
            place = self._at(word, scope, partial(_switched, word))
            self._add(setting.key, setting.value, setting.spelled, word, place)
            return
        whole = words[setting.word]
        held = whole.rest(setting.begin)
        if setting.end < len(whole.text):
            write = partial(_in_span, whole, setting.begin, setting.end)
            span = self._at(whole, scope, write) if whole.plain else None
            self._add(setting.key, setting.value, setting.spelled, word, span)
            return
        value = self._filled(held)
        is_json = setting.key in ("runtime-env-json", "runtime_env_json")
        has_parts = self._runtime_env(held) if is_json else _is_script(whole)
        if value or setting.spelled == "flag":
            # What holds further settings is changed in its parts.
            where = None if has_parts else self._place(held, scope, setting.spelled)
            self._add(setting.key, value, setting.spelled, word, where)

    def _runtime_env(self, held: Word) -> bool:
        """Read the JSON text that describes a job's environment; gives True."""
        try:
            found = tree_settings.of_json(held.text) if held.plain else None
        except NotPatchableError:
            found = None
        line = self._script.line(held.start)
        if found is None:
            found = list(printed(literals.entries([(line, held.text.strip()[1:])], is_call=False), "json"))
        self._within(held, found)
        return True

    def _inner(self, word: Word) -> None:
        """Read the script that a word is: `bash -c '...'`, `ssh host '...'`."""
        if not self._depth or not _is_script(word):
            return
        try:
            self._within(word, ScriptReader(parse(word.text), self._depth - 1).settings())
        except NotPatchableError:
            return

    def _within(self, word: Word, found: Sequence[Setting]) -> None:
        """Take in the settings of a word's own text, with their places in the script."""
        for setting in found:
            place = setting.place
            if place is not None and place.start:
                start = word.units[place.start - 1].end
                place = place_at(self._script.text, start, place.scope, partial(_in_word, word, place.write))
            line = place.line if place is not None else self._script.line(word.start)
            self._found.append((word.start, replace(setting, line=line, place=place)))

    def _place(self, held: Word, scope: str, spelling: Spelling) -> FilePlace | None:
        """Give the place of a value: where it stands, or where its variable is assigned."""
        try:
            word = changeable(self._script, held)
        except NotPatchableError:
            return None
        # A default, and a variable that serves others, are changed for a run that is known: not here.
        if not word.plain or word.text != self._filled(held):
            return None
        style = HYDRA if spelling == "hydra" else ("1", "0") if spelling == "env" else ("true", "false")
        return self._at(word, scope, partial(self._written, word, style=style))

    def _at(self, word: Word, scope: str, write: Callable[[Scalar], Edit]) -> FilePlace:
        start = word.units[0].start if word.units else word.start
        return place_at(self._script.text, start, scope, write)

    def _written(self, word: Word, to: Scalar, style: tuple[str, str] = ("true", "false")) -> WordEdit:
        return word.replaced(spelled(to, word.text, style))

    def _filled(self, word: Word) -> str:
        """Give a word's text with the variables that the script assigns once, to a plain value."""
        return "".join(self._unit(unit) for unit in word.units)

    def _unit(self, unit: CharacterUnit) -> str:
        found = _REFERENCE.fullmatch(unit.text) if unit.computed else None
        name = (found[1] or found[2]) if found else ""
        held = [each for each in self._script.assignments if each.name == name] if name else []
        if len(held) != 1 or name in self._script.changed_names or held[0].array or held[0].append:
            return unit.text
        return held[0].words[0].text if held[0].words[0].plain else unit.text


def _in_span(word: Word, begin: int, end: int, to: Scalar) -> WordEdit:
    return word.span_replaced(begin, end, str(to))


def _switched(word: Word, to: Scalar) -> WordEdit:
    """Write the value of a switch that stands without one behind it."""
    return WordEdit(word.end, word.end, f" {spelled(to, '', ('true', 'false'))}")


def _is_script(word: Word) -> bool:
    return word.plain and " " in word.text and commands.is_command(word.text)


def _in_word(word: Word, write: Callable[[Scalar], Edit], to: Scalar) -> WordEdit:
    """Make the edit of the text that a word is."""
    return in_script(word, edited(word.text, write(to)))


def read(text: str) -> list[Setting]:
    """Read a script's settings; raises NotPatchableError where it is no bash.

    Places are offsets in the text with each end of a line as one character, as `applied` takes them.
    """
    return ScriptReader(parse(text.replace("\r\n", "\n"))).settings()


def applied(text: str, edits: Sequence[WordEdit]) -> str:
    """Write the edits, whose offsets count a line's end as one character, into the text as it is."""
    returns = [found.start() for found in re.finditer("\r\n", text)]
    ending = "\r\n" if returns and len(returns) * 2 >= text.count("\n") else "\n"
    pieces, at = [], 0
    for edit in sorted(set(edits)):
        start, end = _offset(returns, edit.start), _offset(returns, edit.end)
        if start < at:
            raise NotPatchableError(Message("patch.two-changes-meet-same"))
        pieces += [text[at:start], edit.new.replace("\n", ending)]
        at = end
    return "".join(pieces) + text[at:]


def _offset(returns: list[int], offset: int) -> int:
    """Give the place in the text as it is: every line's end before it may be one character longer."""
    for index, start in enumerate(returns):
        if start - index >= offset:
            return offset + index
    return offset + len(returns)
