"""Of several files of a kind the run's own is read and patched."""

from __future__ import annotations

from ingest.configfiles.settings import Setting
from ingest.logs.stacks.stack import Frame
from service.patching.patches import ConfigFile
from service.patching.used_files import by_use, of_run, to_be_patched
from service.pipeline.triage import Triage
from tests.service.factories import failed, report, setting
from tests.tables import each_row
from tests.warm import explained

FILES = [
    ConfigFile("a.sh", "python /data/ada/env/bin/train.py --bs 4\n"),
    ConfigFile("conf.yaml", "x: 1\n"),
    ConfigFile("b.sh", "# python /data/ada/env/bin/train.py\npython /data/bob/env/bin/train.py --bs 8\n"),
]


@each_row(
    ("shown", "names"),
    [
        ("line 3: 77 Killed   /data/bob/env/bin/train.py", ["b.sh", "conf.yaml", "a.sh"]),
        ("line 3: 77 Killed   /data/ada/env/bin/train.py", ["a.sh", "conf.yaml", "b.sh"]),
        ("started by b.sh", ["b.sh", "conf.yaml", "a.sh"]),
        ("CUDA out of memory", ["a.sh", "conf.yaml", "b.sh"]),
    ],
)
def test_that_what_the_output_shows_comes_first_among_its_kind(shown: str, names: list[str]) -> None:
    """By the file's name, or by paths that it holds outside comments; else the order stays as given."""
    told = report(failed(text=shown, body=shown), settings=[setting("x", "1")])
    assert [file.name for file in by_use(FILES, told)] == names


PROGRAMS = [
    ConfigFile("run.sh", "python train.py --bs 4\n"),
    ConfigFile("train.py", "from parts.model import Net\nBATCH = 8\n"),
    ConfigFile("parts/model.py", "WIDTH = 16\n"),
    ConfigFile("infer.py", "BATCH_SIZE = 2\n"),
    ConfigFile("infer.sh", "python infer.py --save_steps 5\n"),
    ConfigFile("conf.yaml", "lr: 1\n"),
]


def test_that_a_module_that_imports_one_that_ran_is_of_the_run() -> None:
    """What makes the trainer's arguments, where the program is not at hand; another program is not."""
    files = [
        ConfigFile("own_trainer.py", "class Own: ...\n"),
        ConfigFile("arguments.py", "from own_trainer import Own\nRATE = 1\n"),
        ConfigFile("other.py", "import own_trainer\nif __name__ == '__main__':\n    run()\n"),
    ]
    told = report(failed(frames=(Frame("/job/own_trainer.py", 1, "compute_loss"),)))
    assert [file.name for file in of_run(files, told)] == ["own_trainer.py", "arguments.py"]


@each_row(
    ("frame", "command", "names"),
    [
        (Frame("/job/train.py", 3, "<module>"), "", ["run.sh", "train.py", "parts/model.py", "conf.yaml"]),
        (None, "python infer.py --n 1", ["infer.py", "infer.sh", "conf.yaml"]),
        # A package's file of the same name is none of the job's, and nothing shown leaves all.
        (Frame("/env/lib/python3.11/site-packages/x/infer.py", 3, "f"), "", [file.name for file in PROGRAMS]),
    ],
)
def test_that_programs_that_did_not_run_are_none_of_the_run(
    frame: Frame | None, command: str, names: list[str]
) -> None:
    told = report(failed(frames=(frame,) if frame else ()), command=(1, command))
    assert [file.name for file in of_run(PROGRAMS, told)] == names


def test_that_a_tracker_s_record_comes_last() -> None:
    """A tracker writes the settings of a run down; no run reads them there, so that none is patched there."""
    record = ConfigFile("config.yaml", "_wandb:\n  value: {}\nlr:\n  value: 1\n")
    own = ConfigFile("run.yaml", "lr: 1\n")
    assert by_use([record, own], report(failed())) == (own, record)
    assert to_be_patched([record, own], report(failed())) == (own,)


def test_that_the_script_of_the_run_is_patched(triage: Triage) -> None:
    """The share of memory is raised in the batch script whose program was killed, not in another one's."""
    head = "#!/bin/bash\n#SBATCH --mem-per-cpu={}G\n#SBATCH --gres=gpu:1\n/home/{}/envs/a/bin/python {}\n"
    log = (
        "/var/spool/slurmd/job7/slurm_script: line 4: 99 Killed  /home/bob/envs/a/bin/python train.py\n"
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.batch cgroup. Some of your processes "
        "may have been killed by the cgroup out-of-memory handler.\n"
    )
    files = [
        ConfigFile("ada.sbatch", head.format(20, "ada", "other.py")),
        ConfigFile("bob.sbatch", head.format(3, "bob", "train.py")),
    ]
    answer = explained(triage, log, *files)
    assert [change.key for change in answer.changes][:1] == ["--mem-per-cpu"]
    assert "+++ b/bob.sbatch" in (answer.patch or "")
    assert "+#SBATCH --mem-per-cpu=6G" in (answer.patch or "")


def test_that_a_program_by_itself_is_left_out_where_another_one_ran() -> None:
    """Its modules, its configuration and what starts it stay."""
    files = [
        ConfigFile("other.py", "import parts\nif __name__ == '__main__':\n    parts.run()\n"),
        ConfigFile("parts.py", "WIDTH = 16\n"),
        ConfigFile("other.sh", "python other.py\n"),
        ConfigFile("job.sh", "python -m robust\n"),
        ConfigFile("conf.yaml", "lr: 1\n"),
    ]
    told = report(failed(frames=(Frame("/job/robust.py", 3, "<module>"),)))
    assert [file.name for file in of_run(files, told)] == ["parts.py", "job.sh", "conf.yaml"]


def test_that_a_program_beside_a_notebook_did_not_run() -> None:
    """What a cell started is the notebook's own code and modules that it imports."""
    files = [
        ConfigFile("train.py", "BATCH = 8\nif __name__ == '__main__':\n    main()\n"),
        ConfigFile("ppo.py", "model = AutoModel.from_pretrained(name)\nfor row in rows:\n    step(row)\n"),
        ConfigFile("parts.py", "WIDTH = 16\n"),
    ]
    told = report(failed(frames=(Frame("In [3]", 1, "<module>"),)))
    assert [file.name for file in of_run(files, told)] == ["parts.py"]


SCRIPTS = [
    ConfigFile("eval.sh", 'echo "Step 1: get data"\necho "Step 2: base model"\ntool --args "max_len=512"\n'),
    ConfigFile(
        "eval_big.sh",
        '# see eval.sh\necho "Step 1: get data"\necho "Step 2: base model"\necho "Merge"\n'
        'tool --args "max_len=8192"\n',
    ),
]


@each_row(
    ("shown", "printed", "names"),
    [
        ("Merge", [], ["eval_big.sh"]),
        ("out of memory", [("max_len", "8192")], ["eval_big.sh"]),
        ("out of memory", [("max_len", "512")], ["eval.sh"]),
        # Nothing tells them apart.
        ("Step 2: base model", [], ["eval.sh", "eval_big.sh"]),
        ("out of memory", [("max_len", "64")], ["eval.sh", "eval_big.sh"]),
    ],
)
def test_that_of_scripts_much_alike_the_output_tells_which_one_ran(
    shown: str, printed: list[tuple[str, str]], names: list[str]
) -> None:
    """By what a script echoes in its own words, and by the values that it hands on and the run prints."""
    values = [Setting(key, value, 3, "dump") for key, value in printed]
    told = report(failed(text=shown, body=shown), settings=values)
    assert [file.name for file in of_run(SCRIPTS, told)] == names
