"""Where the right change is none of a file, an answer says what to look at, what acts, and its costs."""

from __future__ import annotations

import re

from corpus.message import is_chinese
from ingest.logs.report import CrashReport, Limits
from service.composition.procedures import with_steps
from service.pipeline.triage import Triage
from tests.factories import whole_corpus
from tests.service.patching.applying import is_bash
from tests.tables import each_row
from tests.warm import explained

LOOKS = frozenset(
    "awk c++ cat df dirname dmesg du env free grep head hf kubectl lfs ls lsof namei nvcc nvidia-smi ps "  # noqa: SIM905 - a list of 30 words is read faster so
    "python quota ray sacct scontrol sinfo sort ss tail ulimit uniq uptime".split()
)
# Of programs that can act too, the words with which they only look.
ONLY = {
    "lfs": "quota",
    "ray": "status list",
    "scontrol": "show",
    "hf": "auth",
    "kubectl": "get debug",
    "python": "-c",
}
XID = (
    "[ 8123.4] NVRM: Xid (PCI:0000:3b:00): 79, pid=4321, name=python, GPU has fallen off the bus.\n"
    "RuntimeError: CUDA error: unspecified launch failure\n"
)


def commands(line: str) -> list[list[str]]:
    """Cut a line at the signs that separate commands, without what is in quotes."""
    bare = re.sub(r"'[^']*'", "''", line)
    parts = re.split(r"\|\||&&|[|;]", bare)
    return [part.replace("sudo ", "").split() for part in parts]


def test_that_every_procedure_looks_before_it_acts() -> None:
    """Its commands are shell, and the first ones change nothing."""
    wrong = []
    for row in whole_corpus().procedures:
        lines = [*(look.run for look in row.look), row.act.run]
        filled = [re.sub(r"\{(?:\w+\.\w+\|)+(\w+)\}", r"\1", line) for line in lines]
        wrong += [f"{row.cause}: no shell: {line}" for line in filled if not is_bash(line)]
        for line in filled[:-1]:
            for words in commands(line):
                allowed = ONLY.get(words[0], words[1] if len(words) > 1 else "").split()
                if words[0] not in LOOKS or (words[0] in ONLY and words[1] not in allowed):
                    wrong.append(f"{row.cause}: acts: {line}")
    assert wrong == []


@each_row(
    ("log", "looks", "acts"),
    [
        (XID, "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT", "sudo reboot"),
        (
            "slurmstepd: error: *** JOB 991 ON a07 CANCELLED AT 2026-11-20T10:00:00 DUE TO TIME LIMIT ***\n",
            "sacct -j 991 --format=JobID,State,Elapsed,Timelimit,End",
            "sbatch --time=LONGER JOB_SCRIPT",
        ),
        (
            "srun: error: Node failure on gpu-a07\n",
            "scontrol show node gpu-a07",
            "sbatch --exclude=gpu-a07 JOB_SCRIPT",
        ),
        # What a shell could make something of is not put into a command.
        (
            "srun: error: Node failure on $(reboot)\n",
            "scontrol show node NODE",
            "sbatch --exclude=NODE JOB_SCRIPT",
        ),
        (
            "srun: error: Node failure on -f;id\n",
            "scontrol show node NODE",
            "sbatch --exclude=NODE JOB_SCRIPT",
        ),
        (
            "Failed to initialize NVML: Driver/library version mismatch\n",
            "cat /proc/driver/nvidia/version",
            "sudo reboot",
        ),
        (
            "OSError: [Errno 24] Too many open files\n",
            "ulimit -Sn; ulimit -Hn; ulimit -Su; ulimit -Hu",
            "ulimit -Sn hard; ulimit -Su hard",
        ),
    ],
)
def test_that_the_log_s_own_values_stand_in_the_commands(
    log: str, looks: str, acts: str, triage: Triage
) -> None:
    """One acts, the last, and says what it costs; in both languages."""
    for language in ("en", "zh"):
        answer = explained(triage, log, language=language)
        assert looks in [step.run for step in answer.steps]
        assert [step.run for step in answer.steps if step.acts] == [acts]
        assert answer.steps[-1].acts
        assert answer.steps[-1].costs
        assert all(is_chinese(step.why) == (language == "zh") for step in answer.steps)


def test_that_a_change_that_can_be_made_comes_alone_unless_the_machine_must_be_mended_first(
    triage: Triage,
) -> None:
    """A taken port needs no steps where a patch names another one; a broken card always does."""
    answer = explained(triage, XID)
    report = CrashReport("a.log", (), None, (), (), (), Limits(0, 0))
    library = whole_corpus()
    for patch in (None, "--- a/run.sh\n"):
        for cause, expected in ((answer.cause, True), ("port-in-use", patch is None), ("nan-or-inf", False)):
            given = answer.model_copy(update={"cause": cause, "patch": patch})
            assert bool(with_steps(given, report, library, "en").steps) == expected
    assert not with_steps(answer.model_copy(update={"verdict": "unknown"}), report, library, "en").steps
