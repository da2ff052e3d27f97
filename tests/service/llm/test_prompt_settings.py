"""The job's settings in a prompt: which are none, how each is told, and of which file."""

from __future__ import annotations

from ingest.logs.inputs import sources
from service.llm.prompt_sections import MAX_DULL
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.factories import OOM, traceback
from tests.service.llm.answering import context_and_prompt
from tests.service.llm.test_prompt_sections import section, sent
from tests.tables import each_row
from tests.warm import opened


@each_row(
    ("command", "told", "kept_out"),
    [
        (
            "$ python3 -u -m verl.trainer.main_ppo trainer.save_freq=10",
            ["trainer.save_freq=10"],
            ["u=", "m="],
        ),
        (
            "+ MY_RUN=a7 NCCL_IB_DISABLE=1 torchrun --nproc_per_node=8 t.py",
            ["NCCL_IB_DISABLE=1"],
            ["MY_RUN="],
        ),
    ],
)
def test_what_is_no_setting_is_not_told_as_one(
    command: str, told: list[str], kept_out: list[str], triage: Triage
) -> None:
    """An interpreter's switches and a shell's own variables change nothing in the job."""
    _, prompt = sent(triage, f"{command}\n" + traceback(OOM))
    rows = section(prompt, "The job's settings")
    assert [row for row in told if row not in rows] == []
    assert [row for row in rows if row.startswith(tuple(kept_out))] == []


def test_that_packages_leave_room_for_the_jobs_own_options(triage: Triage) -> None:
    """A list of all that is installed comes before the options of a run, and is longer."""
    installed = "".join(f"part-{number}==1.{number}\n" for number in range(80))
    files = [
        ConfigFile("requirements.txt", installed),
        ConfigFile("run.sh", "python3 tune.py --fold_width 48\n"),
    ]
    _, prompt = context_and_prompt(opened(triage, sources.from_text(traceback(OOM)), "en", files))
    rows = section(prompt, "The job's settings")
    assert "1: --fold_width=48" in rows
    assert "1: part-0==1.0" in rows
    assert 0 < sum(": part-" in row for row in rows) < MAX_DULL


JOB = """import argparse, torch
parser = argparse.ArgumentParser()
parser.add_argument("--width", default=48)
parser.add_argument("--depth", default=3)
def evaluate(rounds):
    total_right = 0.0
    total_right += torch.softmax(x, dim=7)
    return total_right
head = Head(size=12)
evaluate(rounds=5)
"""
RECORD = """{"startedAt": "2026-01-01T00:00:00Z", "program": "/job/train.py", "args": ["--depth", "9"],
"cpu_count": 64, "disk": {"/": {"total": "134145380352"}}}"""


def test_what_is_no_setting_is_left_out(triage: Triage) -> None:
    """Counters, arguments of others' functions and a machine's sizes; what the run had wins over defaults."""
    files = [ConfigFile("train.py", JOB), ConfigFile("wandb-metadata.json", RECORD)]
    _, prompt = context_and_prompt(opened(triage, sources.from_text(traceback(OOM)), "en", files))
    rows = [row for row in section(prompt, "The job's settings") if "=" in row]
    assert sorted(rows) == [
        "--depth=9",
        "10: rounds=5 (in evaluate)",
        "3: --width=48",
        "9: size=12 (in Head)",
    ]


def test_a_script_s_tools_set_nothing_of_the_job(triage: Triage) -> None:
    """Options of curl, git, conda and of a bare interpreter, a loop's variable, texts and headers of code."""
    script = (
        "export KV_CACHE_DTYPE=fp8\nexport MY_LABEL=a\nready=0\ncurl --max-time 40 http://127.0.0.1:8000\n"
        "git rev-parse --abbrev-ref HEAD\nconda create python=3.10\npython --version\n"
        "Write-Host -ForegroundColor Red\n#SBATCH --job-name=me\npython train.py --depth 9\n"
    )
    code = (
        "note = 'nothing is known of it'\nplace = f'{root}/a'\nhead = {'Content-Type': 'application/json'}\n"
        "size = 7\n"
    )
    files = [ConfigFile("train.py", code), ConfigFile("run.sh", script), ConfigFile("notes.txt", "nothing\n")]
    _, prompt = context_and_prompt(opened(triage, sources.from_text(traceback(OOM)), "en", files))
    rows = section(prompt, "The job's settings")
    assert sorted(row for row in rows if "=" in row) == [
        "10: --depth=9",
        "1: KV_CACHE_DTYPE=fp8",
        "4: size=7",
    ]
    assert "[no setting was read of notes.txt: read_job_file shows what stands there]" in rows


def test_a_setting_is_told_as_its_program_spells_it(triage: Triage) -> None:
    """With its row in the file; an own option to which nothing gives a value is named too."""
    script = "#!/bin/bash\n#SBATCH --time=3:00\nexport NCCL_DEBUG=INFO\npython train.py --depth 9 lr.max=3\n"
    code = f"{JOB}parser.add_argument('-r', '--resume_from')\n"
    files = [
        ConfigFile("train.py", code),
        ConfigFile("run.sh", script),
        ConfigFile("net.yaml", "TRAIN:\n  BATCH_SIZE: 8\n" + "".join(f"K{n}: {n}\n" for n in range(90))),
    ]
    _, prompt = context_and_prompt(opened(triage, sources.from_text(traceback(OOM)), "en", files))
    rows = section(prompt, "The job's settings")
    told = {
        "2: #SBATCH --time=3:00",
        "3: NCCL_DEBUG=INFO",
        "4: --depth=9",
        "4: lr.max=3",
        "2: TRAIN.BATCH_SIZE=8",
    }
    assert told - set(rows) == set()
    assert any(row.startswith("[options of the job's own parsers") and "--resume_from" in row for row in rows)
