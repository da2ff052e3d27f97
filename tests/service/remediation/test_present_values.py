"""A change is held against what the job has: its value, the default, the versions that its words allow."""

from __future__ import annotations

from typing import Any

from corpus.schema import Scalar
from ingest.logs.report import CrashReport
from service.pipeline.triage import Triage
from service.remediation.changes import propose_changes
from service.schemas.diagnosis import ProposedChange
from tests.service.factories import case, change, failed, library, report, setting, spec
from tests.tables import each_row
from tests.warm import explained

OLD = "CUDA out of memory. Tried 2.00 GiB (GPU 0; 10.75 GiB total capacity; 8.39 GiB already allocated)"
NEW = "CUDA out of memory. Tried 2.00 GiB. GPU 0 has a total capacity of 10.75 GiB of which 1 GiB is free."
LEAVING = (
    "`eval_steps_per` is deprecated and will be removed in version 4.46 of Transformers. Use `x` instead"
)


def proposed(
    to: Scalar, default: Scalar | None, now: str | None = None, **fields: Any
) -> list[ProposedChange]:
    """Propose a smaller micro batch to a job that ran out of memory."""
    told = [] if now is None else [setting("data.size", now)]
    made = case(changes=[change(to=to)])
    known = library(spec(rule="micro-batch", default=default, **fields))
    return propose_changes([made], report(failed(), settings=told), known, told, "en")[0]


@each_row(
    ("to", "default", "now", "expected"),
    [
        (16, 64, None, [16]),
        (128, 64, None, ["below the present value"]),
        (128, None, None, [128]),
        (128, -1, None, [128]),
        (128, 1, None, [128]),
        (128, 64, "256", [128]),
        (128, 64, "100", [50]),
    ],
)
def test_a_value_that_is_no_move_from_the_default_is_told_as_a_direction(
    to: int, default: int | None, now: str | None, expected: list[Scalar]
) -> None:
    """The job's own value comes first; a default that means `never`, or cannot fall, says nothing."""
    assert [item.to for item in proposed(to, default, now)] == expected


def job(text: str, framework: str, version: str = "") -> CrashReport:
    """Make a job whose failing line says this."""
    return report(failed(text=text, body=text), frameworks=[(framework, version)])


@each_row(
    ("told", "framework", "versions", "kept"),
    [
        (job(OLD, "pytorch"), "pytorch", ">=2.1", False),
        (job(NEW, "pytorch"), "pytorch", ">=2.1", True),
        (job(OLD, "pytorch"), "pytorch", ">=1.13", True),
        (job(LEAVING, "transformers"), "transformers", ">=4.46", False),
        (job(LEAVING, "transformers"), "transformers", ">=4.45", True),
        (job(LEAVING, "transformers", "4.50"), "transformers", ">=4.46", True),
    ],
)
def test_the_words_of_a_log_date_a_framework_that_prints_no_version(
    told: CrashReport, framework: str, versions: str, kept: bool
) -> None:
    """An option that came later is none to offer; a printed version outweighs the words."""
    known = spec(framework=framework, versions=versions)
    made, _ = propose_changes([case(changes=[change(framework=framework)])], told, library(known), (), "en")
    assert bool(made) is kept
    own, _ = propose_changes(
        [case(changes=[change(framework=framework, versions=versions)])],
        told,
        library(spec(framework=framework)),
        (),
        "en",
    )
    assert bool(own) is kept


@each_row(("text", "offered"), [(OLD, False), (NEW, True)])
def test_an_allocator_without_expandable_segments_is_not_given_them(
    text: str, offered: bool, triage: Triage
) -> None:
    """An unknown option of the allocator ends the program at its start."""
    told = job(text, "pytorch")
    shipped = triage.library.cases["pytorch/gpu-memory-fragmentation"]
    made, _ = propose_changes([shipped], told, triage.library, (), "en")
    assert any(item.key == "PYTORCH_CUDA_ALLOC_CONF" for item in made) is offered


SITE = "/env/lib/python3.11/site-packages"
DEAD_WORKER = f"""\
Traceback (most recent call last):
  File "/job/train.py", line 88, in <module>
    trainer.train()
  File "{SITE}/transformers/trainer.py", line 2300, in train
    return inner_training_loop(
  File "{SITE}/torch/utils/data/dataloader.py", line 1251, in _try_get_data
    raise RuntimeError("DataLoader worker (pid(s) 1234) exited unexpectedly")
RuntimeError: DataLoader worker (pid(s) 1234) exited unexpectedly
"""


def test_that_a_dead_worker_proves_that_the_job_has_workers(triage: Triage) -> None:
    """The default, no workers at all, is then a change."""
    first = explained(triage, DEAD_WORKER).changes[0]
    assert (first.key, first.to) == ("dataloader_num_workers", 0)
