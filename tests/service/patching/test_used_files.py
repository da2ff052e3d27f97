"""Of several files of a kind the run's own is read and patched."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.patching.used_files import by_use
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


def test_that_a_tracker_s_record_comes_last() -> None:
    """A tracker writes the settings of a run down; no run reads them there."""
    record = ConfigFile("config.yaml", "_wandb:\n  value: {}\nlr:\n  value: 1\n")
    own = ConfigFile("run.yaml", "lr: 1\n")
    assert by_use([record, own], report(failed())) == (own, record)


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
