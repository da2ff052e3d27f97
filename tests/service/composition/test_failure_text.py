"""What an answer says of the lines around the failing one, and of the ranks that tell of no failure."""

from __future__ import annotations

from pathlib import Path

from ingest.logs.inputs import jobs
from service.pipeline.triage import Triage
from tests.service.pipeline.test_several_files import folder, told, watchdog
from tests.tables import each_row
from tests.warm import diagnosed, explained

RAY = (
    "Error executing job with overrides: ['trainer.nnodes=1']\n"
    "Traceback (most recent call last):\n"
    '  File "/opt/job/main.py", line 31, in main\n    run(config)\n'
    '  File "/env/lib/python3.11/site-packages/ray/_private/worker.py", line 929, in get_objects\n'
    "    raise value.as_instanceof_cause()\n"
    "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Runner.run() (pid=7, ip=10.0.0.1)\n"
    '  File "/opt/job/main.py", line 83, in run\n    trainer.fit()\n'
    "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.update() (pid=8, ip=10.0.0.1)\n"
    '  File "/opt/job/worker.py", line 54, in update\n    loss = self.model(batch).loss\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 17.34 GiB. GPU 3 has a total capacity of "
    "79.11 GiB of which 9.06 GiB is free.\n"
)


@each_row(("language", "apart"), [("en", "Printed before it"), ("zh", "出现在它之前")])
def test_that_an_exception_printed_around_its_cause_follows_from_it(
    triage: Triage, language: str, apart: str
) -> None:
    """Ray prints the outer exception above the inner one: that order tells nothing of what came of what."""
    made = explained(triage, RAY, language=language)
    assert made.cause is not None
    assert made.cause.startswith("gpu-oom")
    assert apart not in made.explanation


def last_step(rank: int) -> str:
    """Write the last row of a rank's own progress."""
    return f"2026-11-03 09:50:00 [rank{rank}] INFO train: step 40 loss 1.5 on rank {rank}\n"


@each_row(
    ("language", "sentence"),
    [
        ("en", "7 ranks report it; rank 5 does not. The last that it printed: [rank5.log:L1] `2026-11-03"),
        ("zh", "有 7 个 rank 报了这个错误，rank 5 没有；它最后输出的是：[rank5.log:L1] `2026-11-03"),
    ],
)
def test_that_the_last_row_of_a_silent_rank_is_shown(
    triage: Triage, tmp_path: Path, language: str, sentence: str
) -> None:
    """The others only say that they waited: where the rank stopped stands in its own file."""
    files = {
        f"rank{rank}.log": last_step(rank) + ("" if rank == 5 else watchdog(rank, "")) for rank in range(8)
    }
    assert sentence in told(triage, folder(tmp_path, files), language).explanation


def test_that_the_last_row_of_a_silent_rank_is_found_in_a_log_of_all(triage: Triage, tmp_path: Path) -> None:
    """Where a launcher mixes the ranks, their labels tell whose row is the last."""
    rows = [f"[rank{rank}]: step 40 of rank {rank}\n" for rank in (5, *range(8), 2)]
    rows += [watchdog(rank) for rank in range(8) if rank != 5]
    (tmp_path / "out.log").write_text("".join(rows))
    said = diagnosed(triage, jobs.open_job(tmp_path / "out.log"), "en").explanation
    assert "rank 5 does not. The last that it printed: [L7] `[rank5]: step 40 of rank 5`" in said


def test_that_a_secret_in_the_last_row_is_masked(triage: Triage, tmp_path: Path) -> None:
    """What a silent rank printed last is shown as all else is."""
    files = {f"rank{rank}.log": last_step(rank) + watchdog(rank, "") for rank in range(8) if rank != 3}
    files["rank3.log"] = "login with password=hunter2secretword now\n"
    said = told(triage, folder(tmp_path, files)).explanation
    assert "rank 3 does not. The last that it printed" in said
    assert "hunter2" not in said
