"""Which program reads which words of a command: `srun torchrun train.py` has three readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ingest.configfiles.shell.syntax import Script, ShellCommand
from ingest.configfiles.shell.variables import arguments, unused
from ingest.configfiles.shell.words import Word


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """How a program's start looks in a command; a `launcher` starts another one behind its own options."""

    owner: str
    pattern: re.Pattern[str]
    launcher: bool = False


def _program(owner: str, pattern: str, launcher: bool = False) -> ProgramStart:
    return ProgramStart(owner, re.compile(rf"(?:{pattern})(?= |$)"), launcher)


SCRIPT = ""  # the owner of a program that no framework is known to own
_ANY = r"(?:\S*/)?"
_PROGRAMS = [
    _program("slurm", rf"{_ANY}(?:srun|sbatch|salloc)", True),
    _program("docker", rf"{_ANY}(?:docker|podman|nerdctl)(?: container)? (?:run|create)", True),
    _program("docker-exec", rf"{_ANY}(?:docker|podman|nerdctl)(?: container)? exec", True),
    _program("mpi", rf"{_ANY}(?:mpirun|mpiexec|horovodrun)", True),
    _program("pytorch", rf"{_ANY}torchrun|-m torch\.distributed\.(?:run|launch)", True),
    _program("deepspeed", rf"{_ANY}deepspeed|-m deepspeed\.launcher\.runner", True),
    _program("accelerate", rf"{_ANY}accelerate launch|-m accelerate\.commands\.launch", True),
    _program("ray", rf"{_ANY}ray start"),
    _program("ray-job", rf"{_ANY}ray (?:job )?submit", True),
    _program("vllm", rf"{_ANY}vllm (?:serve|bench|chat|complete|run-batch)|-m vllm\.\S+|\S*vllm/vllm-\S+"),
    _program("sglang", r"-m sglang\.\S+|\S*sglang serve"),
    _program(
        "llamafactory",
        rf"{_ANY}llamafactory-cli \w+|{_ANY}lmf \w+|\S*src/train(?:_bash)?\.py|-m llamafactory\.\S+",
    ),
    _program(
        "ms-swift",
        rf"{_ANY}swift (?:sft|rlhf|pt|infer|deploy|eval|rollout|export|sample)|-m "
        r"swift\.\S+|\S*swift/cli/\w+\.py",
    ),
    _program("megatron-swift", rf"{_ANY}megatron (?:sft|rlhf|pt|export)"),
    _program(
        "trl",
        rf"{_ANY}trl (?:sft|dpo|grpo|kto|ppo|orpo|reward|rloo|vllm-serve)|-m trl\.\S+|\S*trl/scripts/\w+\.py",
    ),
    _program("axolotl", rf"{_ANY}axolotl \w[\w-]*|-m axolotl\.\S+"),
    _program("easyr1", r"-m verl\.trainer\.main"),
    _program("verl", r"-m (?:verl|recipe)\.\S+|\S*verl/trainer/\w+\.py"),
    _program("openrlhf", r"(?:-m )?openrlhf\.\S+|\S*train_(?:ppo|ppo_ray|sft|dpo|rm|kto|kd|prm)\w*\.py"),
    _program("megatron", r"\S*pretrain_\w+\.py"),
    _program(SCRIPT, r"-m [A-Za-z_]\w*(?:\.\w+)*|\S+\.py"),
]
_SHELL = re.compile(rf"{_ANY}(?:bash|sh|zsh) .+|\./.+|\S+\.sh(?: .*)?", re.DOTALL)
# Modules that `python -m` starts for the preparation, not for the job.
_PREPARES = frozenset({"pip", "venv", "json", "ensurepip", "http", "zipfile"})
_NO_JOB = frozenset(
    {
        "echo",
        "printf",
        "pip",
        "pip3",
        "cd",
        "mkdir",
        "export",
        "source",
        ".",
        "sed",
        "grep",
        "cat",
        "kill",
        "pkill",
    }
)

# Frameworks that read the options of another one's program, or start it with their own name.
_SHARED = {
    "easyr1": {"verl"},
    "verl": {"easyr1", "tinyzero", "simplerl-reason"},
    "llamafactory": {"transformers", "trl"},
    "ms-swift": {"transformers", "trl"},
    "megatron-swift": {"ms-swift", "megatron"},
    "trl": {"transformers"},
    "axolotl": {"transformers"},
}
# Those whose settings the program takes by the very same names.
_TAKEN = {
    "verl": {"tinyzero", "simplerl-reason"},
    "megatron-swift": {"ms-swift"},
    "llamafactory": {"transformers"},
    "ms-swift": {"transformers"},
    "trl": {"transformers"},
}
_STARTERS = frozenset({"pytorch", "deepspeed", "accelerate"})
_OWNERS = frozenset(program.owner for program in _PROGRAMS) - {SCRIPT}
_OWN_COMMANDS = frozenset({"slurm", "docker", "ray", "mpi", *_STARTERS})


@dataclass(frozen=True, slots=True)
class ProgramWords:
    """The words that one program reads; the first `names` of them are the program itself."""

    owner: str
    words: tuple[Word, ...]
    names: int
    launcher: bool
    known: bool
    command: ShellCommand | None

    def serves(self, framework: str) -> bool:
        """Tell whether the program reads settings of the framework."""
        if self.launcher and self.owner in _STARTERS:
            return framework in _STARTERS
        if self.owner == SCRIPT:
            return framework not in _OWN_COMMANDS
        is_known = framework in _OWNERS or any(framework in names for names in _SHARED.values())
        if not is_known:
            return not self.launcher and self.owner != "ray"
        return framework == self.owner or framework in _SHARED.get(self.owner, ())

    def takes(self, framework: str) -> bool:
        """Tell whether a further setting of the framework can be given to the program."""
        return framework == self.owner or framework in _TAKEN.get(self.owner, ())


def stages(script: Script) -> list[ProgramWords]:
    """Give every program's words, in the order of the script."""
    found = [stage for command in script.commands for stage in of_command(script, command)]
    return found + [ProgramWords(SCRIPT, tuple(words), 0, False, False, None) for words in unused(script)]


def of_command(script: Script, command: ShellCommand) -> list[ProgramWords]:
    """Cut a command where another program's words begin."""
    words = arguments(script, command)
    if not words or words[0].text in _NO_JOB:
        return []
    starts = list(_starts(words))
    if not starts:
        return [ProgramWords(SCRIPT, tuple(words), 1, False, False, command)]
    ends = [at for at, _, _ in starts[1:]] + [len(words)]
    return [
        ProgramWords(program.owner, tuple(words[at:end]), names, program.launcher, True, command)
        for (at, program, names), end in zip(starts, ends, strict=True)
    ]


def _starts(words: list[Word]) -> Iterator[tuple[int, ProgramStart, int]]:
    """Find where programs begin; the first that is no launcher reads all the rest."""
    at = 0
    while at < len(words):
        found = _at(words, at)
        if found is None:
            at += 1
            continue
        program, names = found
        yield at, program, names
        # What follows `ray start` belongs to it; a container's image may start a program of its own.
        if not program.launcher:
            return
        at += names


def _at(words: list[Word], at: int) -> tuple[ProgramStart, int] | None:
    tail = " ".join(word.text for word in words[at : at + 4])
    for program in _PROGRAMS:
        found = program.pattern.match(tail)
        if found is None or _is_value(words, at, found[0]):
            continue
        return program, found[0].count(" ") + 1
    return None


def _is_value(words: list[Word], at: int, found: str) -> bool:
    """Tell a program's name from the value of an option: `--strategy deepspeed`, `-m mod` of another program."""
    before = words[at - 1].text if at else ""
    if found.startswith("-m "):
        return found[3:].split(".")[0] in _PREPARES or ("." not in found and not _takes_module(words[:at]))
    if found.endswith(".py"):
        return before.startswith("--") and "=" not in before and not _starts_script(words[:at])
    return before.startswith("-") and found in ("deepspeed", "torchrun")


def _takes_module(before: list[Word]) -> bool:
    """Tell whether one of the words before takes `-m module`; to srun, `-m block` is something else."""
    return any(re.search(r"python|torchrun|deepspeed|launch", word.text, re.IGNORECASE) for word in before)


def _starts_script(before: list[Word]) -> bool:
    """Tell whether the words before can be a starter's switches: `torchrun --standalone train.py`."""
    return any(word.text.rsplit("/", 1)[-1] in ("torchrun", "deepspeed", "launch", "srun") for word in before)


def launches(script: Script) -> list[ShellCommand]:
    """Give the commands that start the job or a part of it."""
    return [command for command in script.commands if _is_launch(script, command)]


def _is_launch(script: Script, command: ShellCommand) -> bool:
    if any(stage.known for stage in of_command(script, command)):
        return True
    words = [word.text for word in command.words]
    return bool(words) and words[0] not in _NO_JOB and _SHELL.fullmatch(" ".join(words)) is not None
