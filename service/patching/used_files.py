"""Which of several files of a kind the run has read: those whose own names and paths its output shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import PurePath

from corpus.keys import last_level
from ingest.configfiles.formats import CODE
from ingest.configfiles.remarks import without_remarks
from ingest.configfiles.run_record import read_record
from ingest.logs.report import CrashReport
from ingest.logs.stacks.own_calls import is_own
from service.patching.patches import ConfigFile
from service.remediation.alternative_files import unchosen
from service.remediation.code_edits.failing_code import JobFile

# Paths of three parts and more, and names of files: what two jobs rarely share by chance.
_TELLING = re.compile(r"(?:/[\w.@+=-]+){3,}|(?<![\w/.-])[\w-]+\.(?:py|ya?ml|json|jsonl|sh|pt|toml)(?![\w.])")
_COMMENT = re.compile(r"(?m)^\s*#(?!SBATCH).*$")
# Programs, and a script's call of one.
_PROGRAM = re.compile(r"\.(?:py|ipynb|sh|bash|slurm|sbatch)$")
_CALLS = re.compile(r"[\w-]\.py\b|\s-m\s+\w")
# A guard of the program's own part, a trainer that the module itself sets to work, or a model that it loads.
_MAIN = re.compile(
    r"(?m)^if\s*\(?\s*(?:__name__\s*==|['\"]__main__)|^\w+\.(?:train|fit|run)\("
    r"|^\w+ *= *\w+\.from_pretrained\("
)
# What Weights & Biases writes of a run, which no run reads: wandb/sdk/lib/config_util.py.
_RECORD = re.compile(r"(?m)^_wandb:")
# What a script says in its own words, without a value; two scripts are much alike that share some of it.
_ECHOED = re.compile(r"(?m)\becho (?:-\w+ )?[\"']([^\"'$`\\\n]*[A-Za-z]{3}[^\"'$`\\\n]*)[\"']")
ALIKE = 2
LONGEST = 60
# What a file's own name in the output counts for: more than any names that it holds.
_NAMED = 1000


def by_use(files: Sequence[ConfigFile], report: CrashReport) -> tuple[ConfigFile, ...]:
    """Give the files with those first, among their kind, that the run's output shows to be its own.

    Files of different kinds keep their places, and so do those of which the output shows as much.
    """
    # The rows of the output that the report keeps, the command, and the values of settings.
    texts = (*report.texts.values(), report.command[1], *(setting.value for setting in report.settings))
    shown = set(_TELLING.findall("\n".join(texts)))
    names = {PurePath(token).name for token in shown}
    kinds = [PurePath(file.name).suffix for file in files]
    ordered = {kind: iter(_ordered(files, kind, shown, names)) for kind in kinds}
    return tuple(next(ordered[kind]) for kind in kinds)


def of_run(files: Sequence[ConfigFile], report: CrashReport) -> tuple[ConfigFile, ...]:
    """Give the files without those that the run did not read: their options are none of this job.

    That is a configuration beside the one of its kind that the launch line chooses, and a program that did
    not run.
    """
    others = unchosen([JobFile(file.name, file.text) for file in files], report)
    return _without_programs([file for file in files if file.name not in others], report)


def _without_programs(files: Sequence[ConfigFile], report: CrashReport) -> tuple[ConfigFile, ...]:
    """Give the files without the programs that did not run.

    What ran is a program that a traceback or the launch command shows, and what it imports or starts. Where
    none of the files is seen to have run, those are left out that are programs by themselves while the output
    names another one; all are given where it names none. A script that starts the program otherwise than the
    tracker kept it has not started this run.
    """
    records = [record for file in files if (record := read_record(file.text)) and record.words]
    if len(records) == 1:
        files = [
            file
            for file in files
            if file.name.endswith(CODE) or records[0].may_come_of(file.text) is not False
        ]
    programs = {file.name: file for file in files if _PROGRAM.search(file.name)}
    frames = [frame for event in report.events for frame in event.frames if is_own(frame)]
    shown = {PurePath(frame.file.replace("\\", "/")).name for frame in frames}
    shown |= {PurePath(name).name for name in _TELLING.findall(report.command[1])}
    ran = {name for name in programs if PurePath(name).name in shown}
    if not ran:
        unlike = _not_echoed([file for file in programs.values() if not file.name.endswith(CODE)], report)
        files = [file for file in files if file.name not in unlike]
        programs = {name: file for name, file in programs.items() if name not in unlike}
        mains = {PurePath(frame.file).stem for frame in frames if frame.function == "<module>"}
        others = {name for name, file in programs.items() if mains and _is_other(file, mains)}
        return tuple(file for file in files if file.name not in others)
    # What starts a program that ran is of the run, too, as a file or as a module, what does not say which it
    # starts, and a module that imports one that ran.
    ran |= {
        name
        for name, file in programs.items()
        if not name.endswith(CODE)
        and (any(_is_called(each, file.text) for each in ran) or not _CALLS.search(file.text))
    }
    if modules := "|".join(re.escape(PurePath(name).stem) for name in ran if name.endswith(CODE)):
        imported = re.compile(rf"(?m)^\s*(?:from|import)\s+(?:[\w.]*\.)?(?:{modules})\b")
        ran |= {
            name
            for name, file in programs.items()
            if name.endswith(CODE) and not _MAIN.search(file.text) and imported.search(file.text)
        }
    ran -= _not_echoed([programs[name] for name in sorted(ran)], report)
    waiting = list(ran)
    while waiting:
        text = programs[waiting.pop()].text
        found = {name for name in programs if name not in ran and _is_called(name, text)}
        ran |= found
        waiting.extend(found)
    return tuple(file for file in files if file.name not in programs or file.name in ran)


def _not_echoed(files: Sequence[ConfigFile], report: CrashReport) -> set[str]:
    """Name the scripts of which the output shows fewer words and values than of one much like them.

    Two scripts of a folder often differ by a step or a model; what each of them echoes, and the values that
    it hands on and the run has printed, tell which one ran.
    """
    rows = "\n".join((*report.texts.values(), *(text for _, text in report.surroundings)))
    said = {file.name: set(_ECHOED.findall(file.text)) for file in files if not file.name.endswith(CODE)}
    others = [file.name for file in files if said.get(file.name)]
    words = [said[name] for name in others]
    if not any(len(one & two) >= ALIKE for one, two in combinations(words, 2)):
        return set()
    # One that is called by another is no other way to start.
    texts = {file.name: without_remarks(f"{file.text}\n{file.name}") for file in files}
    printed = [
        _given(item.key, item.value) for item in report.settings if item.line and item.spelled == "dump"
    ]
    shown = {
        name: sum(text in rows for text in said[name])
        + sum(pair.search(texts[name]) is not None for pair in filter(None, printed))
        for name in others
    }
    most = max(shown.values(), default=0)
    return {
        name
        for name in others
        if shown[name] < most
        and not any(_is_called(name, texts[other]) for other in others if other != name)
        and any(
            shown[other] == most and len(said[name] & said[other]) >= ALIKE
            for other in others
            if other != name
        )
    }


def _given(key: str, value: str) -> re.Pattern[str] | None:
    """Give the expression of a printed value as a script hands it on; None where it may be met by chance."""
    leaf = re.split(r"[._-]", last_level(key))
    if len(leaf) < 2 or not 0 < len(value) < LONGEST or not re.fullmatch(r"[\w./:-]+", value):
        return None
    return re.compile(
        rf"(?i)(?<![A-Za-z]){'[_-]'.join(map(re.escape, leaf))}[= ]+['\"]?{re.escape(value)}(?![\w.])"
    )


def program_of(files: Sequence[ConfigFile], report: CrashReport) -> ConfigFile | None:
    """Give the Python file that the run was started with; None where that is not seen.

    It is the outermost row of a traceback's own code, the program that a tracker kept, or the only one of the
    launch command.
    """
    own = ([frame for frame in event.frames if is_own(frame)] for event in report.events)
    started = [frames[0].file for frames in own if frames and frames[0].function == "<module>"]
    started += [record.program for file in files if (record := read_record(file.text)) is not None]
    called = [name for name in _TELLING.findall(report.command[1]) if name.endswith(".py")]
    names = {PurePath(name.replace("\\", "/")).name for name in started or called}
    found = [file for file in files if file.name.endswith(".py") and PurePath(file.name).name in names]
    return found[0] if len(found) == 1 else None


def to_be_patched(files: Sequence[ConfigFile], report: CrashReport) -> tuple[ConfigFile, ...]:
    """Give the files of the run without what a tracker wrote of it: a change there changes nothing."""
    return tuple(file for file in of_run(files, report) if not is_record(file))


def is_record(file: ConfigFile) -> bool:
    """Tell whether a file is what a tracker wrote of a run: the values that the run had."""
    return _RECORD.search(file.text) is not None or read_record(file.text) is not None


def _is_other(file: ConfigFile, mains: Iterable[str]) -> bool:
    """Tell whether a file is a program by itself, and starts none of those that ran."""
    if file.name.endswith(CODE):
        return _MAIN.search(file.text) is not None
    return bool(_CALLS.search(file.text)) and not any(_is_called(main, file.text) for main in mains)


def _is_called(name: str, text: str) -> bool:
    """Tell whether a program's text imports or starts another one."""
    stem = PurePath(name).stem
    module = PurePath(name).parent.name if stem == "__init__" else stem
    # A method of that name, as in `trainer.train()`, is no module.
    word = re.escape(module)
    return re.search(rf"(?<![\w-])(?:(?<!\.){word}|(?<=\.){word}(?!\())(?![\w-])", text) is not None


def _ordered(files: Sequence[ConfigFile], kind: str, shown: set[str], names: set[str]) -> list[ConfigFile]:
    def shared(file: ConfigFile) -> int:
        if is_record(file):
            return -1
        own = set(_TELLING.findall(_COMMENT.sub("", file.text)))
        return len(own & shown) + _NAMED * (PurePath(file.name).name in names)

    return sorted((file for file in files if PurePath(file.name).suffix == kind), key=shared, reverse=True)
