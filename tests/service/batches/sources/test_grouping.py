"""Which files are one job's."""

from __future__ import annotations

from service.batches.sources.grouping import group_files
from tests.tables import each_row

ROWS = {
    "a flat folder is a job for each log": (["a.log", "b.log"], [], {"a": 1, "b": 1}),
    "two streams of one name are one job": (["a.out", "a.err", "b.out"], [], {"a": 2, "b": 1}),
    "a Slurm job's two files are one job": (
        ["slurm-12.out", "slurm-12.err", "slurm-13.out"],
        [],
        {"slurm-12": 2, "slurm-13": 1},
    ),
    "a PBS job's two files are one job": (
        ["train.o12", "train.e12", "train.o13"],
        [],
        {"train.12": 2, "train.13": 1},
    ),
    "rotated and previous logs are one job": (
        ["a.log", "a.log.1", "a.log.2.gz", "a-previous.log"],
        [],
        {"a": 4},
    ),
    "array tasks are jobs of their own": (
        ["slurm-7_0.out", "slurm-7_1.out"],
        [],
        {"slurm-7_0": 1, "slurm-7_1": 1},
    ),
    "the ranks of each job go together": (
        ["x_rank0.log", "x_rank1.log", "y_rank0.log", "y_rank1.log"],
        [],
        {"x": 2, "y": 2},
    ),
    "bare ranks make the folder one job": (["driver.log", "rank0.log", "rank3.log"], [], {"given": 3}),
    "numbered nodes are ranks where they count": (["t_node0.log", "t_node1.log"], [], {"t": 2}),
    "numbers of nodes are no ranks": (
        ["t_node2.log", "t_node4.log", "t_node8.log"],
        [],
        {"t_node2": 1, "t_node4": 1, "t_node8": 1},
    ),
    "a Ray session is one job": (["raylet.out", "gcs_server.err", "job-driver-x.log"], [], {"given": 3}),
    "general names are one job's": (["driver.log", "worker.log", "nohup.out"], ["config.yaml"], {"given": 3}),
    "each folder is a job": (
        ["j1/rank0.log", "j1/rank1.log", "j2/any.log", "j2/deep/er.log"],
        [],
        {"j1": 2, "j2": 2},
    ),
    "folders and files side by side": (["j1/train.log", "b.log", "c.log"], [], {"j1": 1, "b": 1, "c": 1}),
    "one folder around it is stripped": (["top/a.log", "top/b.log"], [], {"top/a": 1, "top/b": 1}),
    "a lone job's folder is its name": (
        ["run7/train.log", "run7/eval/e.log"],
        [],
        {"run7/train": 1, "run7/eval": 1},
    ),
    "Hydra's folder makes one job": (["train.log", "other.log"], [".hydra/config.yaml"], {"given": 2}),
    "a sweep's folders are jobs": (
        ["2026-11-20/10-00-00/0/t.log", "2026-11-20/10-00-00/1/t.log"],
        ["2026-11-20/10-00-00/multirun.yaml", "2026-11-20/10-00-00/0/.hydra/config.yaml"],
        {"2026-11-20/10-00-00/0": 1, "2026-11-20/10-00-00/1": 1},
    ),
    "days hold jobs": (
        ["2026-11-20/a/x.log", "2026-11-21/b/x.log"],
        [],
        {"2026-11-20/a": 1, "2026-11-21/b": 1},
    ),
    "torchrun's folders of ranks are one job": (
        ["0/stdout.log", "0/stderr.log", "1/stderr.log"],
        [],
        {"given": 3},
    ),
    "attempts are one job's": (["attempt_0/0/stderr.log", "attempt_1/0/stderr.log"], [], {"given": 2}),
    "a read-me is no log": (["README.txt", "a.log", "b.log"], [], {"a": 1, "b": 1}),
    "nothing makes nothing": ([], ["config.yaml"], {}),
}


@each_row(("logs", "configs", "expected"), ROWS.values(), ids=ROWS)
def test_that_files_make_jobs(logs: list[str], configs: list[str], expected: dict[str, int]) -> None:
    """Names alone tell which files are one job's."""
    assert {job.name: len(job.logs) for job in group_files(logs, configs, "given")} == expected


def test_that_a_config_goes_to_the_job_of_its_name_else_to_all() -> None:
    """A launch script beside the logs of several jobs is each one's."""
    found = {
        job.name: job.configs for job in group_files(["a.log", "b.log"], ["a.sh", "common.yaml"], "given")
    }
    assert found == {"a": ("a.sh", "common.yaml"), "b": ("common.yaml",)}


def test_that_no_log_is_lost_or_in_two_jobs() -> None:
    """Every log is in exactly one job, however names mix."""
    names = [
        f"{folder}{name}"
        for folder in ("", "j1/", "2026-11-20/j2/", "0/")
        for name in ("a.out", "a.err", "b_rank0.log", "stdout.log")
    ]
    found = [log for job in group_files(names, [], "given") for log in job.logs]
    assert sorted(found) == sorted(names)
