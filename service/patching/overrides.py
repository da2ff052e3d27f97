"""Settings that stand as arguments of a command: Hydra overrides (`key=value`) and flags (`--key value`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from corpus.condition_nodes import compare
from corpus.frameworks import FlagStyle, known_frameworks
from corpus.keys import canonical, flag, levels, negated, signs, unsigned
from corpus.message import Message
from ingest.configfiles.errors import NotPatchableError
from ingest.configfiles.shell.arguments import Argument, Form, is_option, read_argument
from ingest.configfiles.shell.insertion import behind_name, behind_words, removed
from ingest.configfiles.shell.launches import SCRIPT, ProgramWords, stages
from ingest.configfiles.shell.spelling import HYDRA, is_switch, same, spelled
from ingest.configfiles.shell.syntax import Script
from ingest.configfiles.shell.variables import changeable, literal
from ingest.configfiles.shell.words import Word, WordEdit
from service.patching.mentions import refuse_if_mentioned
from service.patching.target import PatchTarget

# As an argument is written, or `--no-key`.
PlaceForm = Form | Literal["negated"]

# Switches that some versions have on by default, so that leaving them out does not turn them off.
_MAY_BE_ON = frozenset({"enable_chunked_prefill", "enable_prefix_caching", "requeue"})
_OVERRIDE = re.compile(r"(?P<sign>\+{0,2}|~)(?P<key>[A-Za-z_][\w.@/-]*)")
_FILE = re.compile(r"\S+\.ya?ml")


@dataclass(frozen=True, slots=True)
class SettingPlace:
    """Where a setting stands: the word with its name, and its value where it has one.

    `further` are the words behind that value which an option with several values takes as well.
    """

    form: PlaceForm
    word: Word
    value: Word | None
    stage: ProgramWords
    before: Word | None
    further: tuple[Word, ...] = ()

    @property
    def line(self) -> int:
        """Give the line of the name."""
        return self.word.line

    @property
    def uncertain(self) -> bool:
        """Tell whether an `if` or a loop decides if the command gets the word."""
        direct = self.stage.command.words if self.stage.command else ()
        return self.word.branch and self.word not in direct


def places(script: Script, target: PatchTarget, serving: bool = True) -> list[SettingPlace]:
    """Find the setting in the commands that its framework reads (or, not `serving`, in all of them).

    Where the script starts the program that the target names, only in its words.
    """
    names = {canonical(name) for name in target.names}
    found: dict[tuple[int, int], SettingPlace] = {}
    programs = stages(script)
    called = [stage for stage in programs if target.program and stage.is_called(target.program)]
    for stage in called or programs:
        if serving and not called and not stage.serves(target.framework):
            continue
        for place in _in_stage(stage, names, target):
            # Two commands may expand the same array: it is one place.
            found.setdefault((place.word.start, place.word.end), place)
    return list(found.values())


def _flags(target: PatchTarget) -> FlagStyle:
    return known_frameworks().row(target.framework).flags


def _in_stage(stage: ProgramWords, names: set[str], target: PatchTarget) -> Iterator[SettingPlace]:
    texts = [word.text for word in stage.words]
    exact = {unsigned(name) for name in target.names}
    for index in range(stage.names, len(texts)):
        argument = read_argument(texts, index)
        if argument is None:
            continue
        if argument.sign.startswith("-"):
            found = _as_flag(stage, argument, names, target)
        else:
            keys = exact if target.spelled == "hydra" else exact | names
            is_named = target.spelled != "flag" and argument.key in keys
            found = _placed(stage, argument) if is_named else None
        if found is not None:
            yield found


def _placed(stage: ProgramWords, argument: Argument) -> SettingPlace:
    words, at = stage.words, argument.word
    value = None if argument.value is None else words[argument.value].rest(argument.begin)
    form: PlaceForm = argument.form
    return SettingPlace(
        form, words[at], None if form == "deleted" else value, stage, words[at - 1] if at else None
    )


def _as_flag(
    stage: ProgramWords, argument: Argument, names: set[str], target: PatchTarget
) -> SettingPlace | None:
    name, found = canonical(argument.key), _placed(stage, argument)
    if target.spelled == "hydra":
        return None
    if name not in names:
        opposite = name.removeprefix("no_") if name.startswith("no_") else f"no_{name}"
        is_negated = opposite in names and argument.form != "joined"
        return replace(found, form="negated", value=None) if is_negated else None
    if argument.form != "pair" or found.value is None:
        return found
    if isinstance(target.to, bool):
        # What follows a switch may be its value, or the program's next argument.
        computed = not _flags(target).bare and "@" not in found.value.text
        if not (is_switch(found.value.text) if found.value.plain else computed):
            return replace(found, form="bare", value=None)
    if stage.launcher or known_frameworks().row(stage.owner).flags.one_value:
        return found
    behind = stage.words[argument.word + 2 :]
    further = takewhile(lambda word: word.plain and not is_option(word.text), behind)
    return replace(found, further=tuple(further))


def edits(script: Script, target: PatchTarget) -> list[WordEdit]:
    """Give the edits that set the value; none where it stands already."""
    found = _present(_relevant(places(script, target), target), target)
    if not found:
        return _added(script, target)
    chosen = _chosen(script, found, target)
    return [
        edit
        for place in chosen
        if not _holds(script, place, target)
        for edit in _changed(script, place, target)
    ]


def hold(script: Script, target: PatchTarget) -> bool:
    """Tell whether every program that has the setting gets the value, and at least one has it."""
    found = _relevant(places(script, target), target)
    if not found:
        return _is_off(script, target)
    kept = _present(found, target)
    if kept != found and not all(_agrees(place, target) is False for place in kept):
        return False
    if target.present and len({id(place.stage) for place in found}) > 1:
        # Of several commands only the one with the run's value was meant.
        return any(_holds(script, place, target) for place in found)
    last = {place.stage.command.start if place.stage.command else -1: place for place in found}
    return all(_holds(script, place, target) for place in last.values())


def _present(found: list[SettingPlace], target: PatchTarget) -> list[SettingPlace]:
    """Keep, of several commands that give the setting, the one that gives the value which the run had."""
    if len({id(place.stage) for place in found}) == 1 or not target.present:
        return found
    same_value = [place for place in found if place.value is not None and place.value.text == target.present]
    # Those that agree with all that is known of the run, and with something.
    agreeing = [place for place in same_value if _agrees(place, target)]
    for kept in (same_value, agreeing):
        if len({id(place.stage) for place in kept}) == 1:
            return kept
    return found


def _is_run_alike(found: Sequence[SettingPlace], target: PatchTarget) -> bool:
    """Tell whether several commands start one program, each with the value that failed."""
    programs = {tuple(word.text for word in place.stage.words[: place.stage.names]) for place in found}
    commands = {id(place.stage) for place in found}
    values = {place.value.text if place.value is not None else "" for place in found}
    return len(commands) == len(found) > 1 and len(programs) == 1 and values == {target.present}


def _agrees(place: SettingPlace, target: PatchTarget) -> bool | None:
    """Tell whether a command gives what the run is known to have had; None where it gives nothing of it."""
    run, names = dict(target.run), {canonical(name) for name in target.names}
    given = [(key, value) for key, value in _given(place.stage) if key in run and key not in names]
    return all(compare(value, "==", run[key]) for key, value in given) if given else None


def _given(stage: ProgramWords) -> Iterator[tuple[str, str]]:
    """Give the settings that a command spells out, by their canonical names."""
    texts = [word.text for word in stage.words]
    for index in range(stage.names, len(texts)):
        argument = read_argument(texts, index)
        if argument is not None and argument.value is not None:
            value = stage.words[argument.value].rest(argument.begin)
            if value.plain:
                yield canonical(argument.key), value.text


def _relevant(found: list[SettingPlace], target: PatchTarget) -> list[SettingPlace]:
    """Keep, of an option that stands once per name (`--ulimit memlock=-1`), those of the same name."""
    if unsigned(target.names[0]).replace("_", "-") not in _flags(target).repeated:
        return found
    name = str(target.to).split("=")[0]
    return [place for place in found if place.value is not None and place.value.text.split("=")[0] == name]


def _chosen(script: Script, found: Sequence[SettingPlace], target: PatchTarget) -> Sequence[SettingPlace]:
    """Of several places in one command take the last, which wins, or all that say the same."""
    lines = ", ".join(str(place.line) for place in found)
    if _is_run_alike(found, target):
        return found
    if len({id(place.stage) for place in found}) > 1 and not all(
        _holds(script, place, target) for place in found
    ):
        raise NotPatchableError(Message("patch.several-commands-set-lines", lines=lines))
    if len(found) > 1 and any(place.uncertain for place in found):
        raise NotPatchableError(Message("patch.set-more-once-not", lines=lines))
    if any(place.form == "deleted" for place in found):
        raise NotPatchableError(Message("patch.taken-out-line", lines=lines))
    alike = {(place.form, place.value.text if place.value else "") for place in found}
    return found if len(alike) == 1 else found[-1:]


def _holds(script: Script, place: SettingPlace, target: PatchTarget) -> bool:
    if place.form in ("bare", "negated"):
        return isinstance(target.to, bool) and target.to is (place.form == "bare")
    if place.value is None or target.own == "switch" or (target.is_list and place.further):
        return False
    try:
        return same(
            literal(script, place.value).text, target.to, HYDRA if target.spelled == "hydra" else None
        )
    except NotPatchableError:
        return False


def _changed(script: Script, place: SettingPlace, target: PatchTarget) -> Iterator[WordEdit]:
    if place.value is not None and target.own == "switch" and isinstance(target.to, bool):
        # The program's own switch takes no value: the word behind it is what the parser leaves over.
        start = place.word.end if target.to else removed(place.word, place.before).start
        yield WordEdit(start, place.value.end, "")
        return
    if place.value is not None:
        held = changeable(script, place.value)
        if place.further and target.is_list and held.start == place.value.start < place.further[-1].start:
            yield WordEdit(place.value.start, place.further[-1].end, spelled(target.to, ""))
            return
        if place.further:
            raise NotPatchableError(
                Message("patch.line-several-values-follow", line=place.line, text=place.word.text)
            )
        is_known = bool(target.present) and "$" not in target.present
        if is_known and held.plain and not place.value.plain and not compare(held.text, "==", target.present):
            raise NotPatchableError(
                Message("patch.line-value-computed", line=place.line, text=place.value.text)
            )
        style = HYDRA if place.form == "override" and target.spelled == "hydra" else ("true", "false")
        yield held.replaced(spelled(target.to, held.text, style))
        return
    if not isinstance(target.to, bool):
        raise NotPatchableError(Message("patch.line-stands-switch-without", line=place.line))
    yield from _switched(place, target)


def _switched(place: SettingPlace, target: PatchTarget) -> Iterator[WordEdit]:
    """Turn a bare switch: add, take away or replace its negation, or write the value behind it."""
    name = place.word.text
    if place.form == "negated":
        yield place.word.replaced(negated(name))
    elif not _flags(target).bare:
        yield WordEdit(place.word.end, place.word.end, " false")
    elif canonical(name) in _MAY_BE_ON:
        raise NotPatchableError(Message("patch.line-turned-off-depends", line=place.line, name=name))
    else:
        yield removed(place.word, place.before)


def _is_off(script: Script, target: PatchTarget) -> bool:
    """Tell whether a switch is off because it does not stand there."""
    if target.own == "switch" and target.to is False:
        return not places(script, target)
    if target.to is not False or not _flags(target).bare or target.spelled not in ("flag", ""):
        return False
    if any(canonical(name) in _MAY_BE_ON for name in target.names):
        return False
    return any(stage.known and stage.serves(target.framework) for stage in stages(script))


def _added(script: Script, target: PatchTarget) -> list[WordEdit]:
    refuse_if_mentioned(script, target, [place.word for place in places(script, target, serving=False)])
    if _is_off(script, target):
        return []
    stage = _only_reader(script, target)
    words = _new_words(stage, target)
    if target.spelled == "yaml" and (file := _config_file(stage)):
        raise NotPatchableError(Message("patch.settings-stand-change", file=file))
    return [
        behind_name(script, stage, words)
        if stage.launcher or stage.runs_nothing
        else behind_words(script, stage, words)
    ]


def _config_file(stage: ProgramWords) -> str | None:
    words = stage.words
    for index in range(stage.names, len(words)):
        before = words[index - 1].text
        if _FILE.fullmatch(words[index].text) and (
            not before.startswith("-") or before.startswith("--config")
        ):
            return words[index].text
    return None


def _only_reader(script: Script, target: PatchTarget) -> ProgramWords:
    """Give the one program that the setting can be added to."""
    programs, commands = known_frameworks().row(target.framework).executables, set(target.commands)
    known = []
    for stage in filter(lambda each: each.known, stages(script)):
        names = [word.text.rsplit("/", 1)[-1] for word in stage.words[:2]]
        # A framework's program that is called with another command than those that take the setting.
        is_other = commands and len(names) > 1 and names[0] in programs and commands.isdisjoint(names)
        if not is_other and not any(map(stage.is_called, target.refused_by)):
            known.append(stage)
    if target.own and len(scripts := [stage for stage in known if stage.owner == SCRIPT]) == 1:
        return scripts[0]
    own = [stage for stage in known if stage.owner == target.framework]
    others = [
        stage
        for stage in known
        if stage.takes(target.framework) or (stage.owner == SCRIPT and stage.serves(target.framework))
    ]
    reading = [stage for stage in own or others if _carries(stage, target)] or own
    if not reading:
        raise NotPatchableError(
            Message("patch.script-not-set-no", framework=target.framework or "its program")
        )
    if len(reading) > 1:
        lines = ", ".join(str(stage.words[0].line) for stage in reading)
        raise NotPatchableError(Message("patch.script-not-set-several", lines=lines))
    return reading[0]


def _carries(stage: ProgramWords, target: PatchTarget) -> bool:
    """Tell whether the program gets other settings of the framework, in the same spelling."""
    names = {unsigned(name) for word in stage.words[stage.names :] if (name := word.text.split("=")[0])}
    if target.spelled == "hydra":
        root = levels(target.names[0])[0] + "."
        return any(
            name.startswith(root) or (stage.owner == target.framework and "." in name) for name in names
        )
    if stage.owner != SCRIPT:
        return any(word.text.startswith("-") for word in stage.words[stage.names :])
    return any(canonical(name) in _flags(target).told_by for name in names)


def _new_words(stage: ProgramWords, target: PatchTarget) -> list[str]:
    """Spell the setting as further arguments, in the manner of those that stand there."""
    name = target.names[0]
    if target.spelled == "hydra" or (target.spelled == "" and "." in name and not name.startswith("-")):
        return [f"{_sign(stage, name)}{unsigned(name)}={spelled(target.to, '')}"]
    if "." in name and target.spelled == "yaml":
        raise NotPatchableError(Message("patch.part-configuration-file-script"))
    option = flag(name)
    if isinstance(target.to, bool):
        if not _flags(target).bare and target.own != "switch":
            return [option, "true" if target.to else "false"]
        if target.to:
            return [option]
        raise NotPatchableError(Message("patch.script-not-set-turned"))
    joined = sum(1 for word in stage.words if word.text.startswith("--") and word.equals_at() is not None)
    apart = sum(1 for word in stage.words if word.text.startswith("--") and word.equals_at() is None)
    value = spelled(target.to, "")
    return [f"{option}={value}"] if joined > apart or _flags(target).joined else [option, value]


def _sign(stage: ProgramWords, name: str) -> str:
    """Give the + that the neighbours under the same parent carry, if all of them do."""
    if name.startswith("+") or "." not in name:
        return signs(name)
    parent = name.rsplit(".", 1)[0] + "."
    found_signs = {
        found["sign"]
        for word in stage.words
        if (at := word.equals_at()) is not None
        and (found := _OVERRIDE.fullmatch(word.text[:at]))
        and found["key"].startswith(parent)
    }
    return found_signs.pop() if len(found_signs) == 1 and found_signs <= {"+", "++"} else ""
