"""Directives of a batch script whose limit was reached ask for more; others stay as they are."""

from __future__ import annotations

import re

from corpus.batch_limits import BatchLimit, known_batch_limits
from service.remediation.batch_limits import raised_limit
from service.remediation.code_edits.failing_code import JobFile
from tests.service.factories import failed, report
from tests.tables import each_row

BAR = " 25%|##   | 250/1000 [1:59:00<5:57:00, 28.5s/it]"
STALE = "100%|####| 40/40 [00:12<00:00, 3.1it/s]"


@each_row(
    ("pattern", "script", "expected"),
    [
        (
            "lsf.memory-limit",
            '#BSUB -R "rusage[mem=8GB]"\n#BSUB -M 8GB',
            '#BSUB -R "rusage[mem=16GB]"\n#BSUB -M 16GB',
        ),
        ("lsf.time-limit", "#BSUB -W 2:00", "#BSUB -W 09:00"),
        ("lsf.time-limit", "#BSUB -W 120", "#BSUB -W 540"),
        ("pbs.memory-limit", "#PBS -l select=1:mem=64gb:ngpus=1", "#PBS -l select=1:mem=128gb:ngpus=1"),
        ("pbs.time-limit", "#PBS -l walltime=02:00:00,mem=8gb", "#PBS -l walltime=09:00:00,mem=8gb"),
        ("gridengine.limit", "#$ -l h_rt=7200", "#$ -l h_rt=32400"),
    ],
)
def test_that_the_limit_which_was_reached_is_raised(pattern: str, script: str, expected: str) -> None:
    """Memory by twice, time by how far the longest bar came; what stands beside it stays."""
    log = report(failed(pattern=pattern, body="killed"), surroundings=((1, STALE), (2, BAR)))
    made = raised_limit(log, [JobFile("job.sh", f"#!/bin/bash\n{script}\npython a.py\n")])
    assert made is not None
    assert made.text == f"#!/bin/bash\n{expected}\npython a.py\n"


def test_that_other_failures_raise_no_limit() -> None:
    log = report(failed(pattern="torch.cuda-oom", body="CUDA out of memory"))
    assert raised_limit(log, [JobFile("job.sh", "#PBS -l walltime=02:00:00\n")]) is None


@each_row("row", known_batch_limits(), ids=lambda row: row.id)
def test_that_a_row_finds_its_examples(row: BatchLimit) -> None:
    group = "number" if row.of == "memory" else "clock"
    found = [re.search(row.expression, example) for example in row.examples]
    assert all(match is not None and match[group] for match in found)
    assert not any(re.search(row.expression, other) for other in row.near)
