"""The results of a large batch are held against its jobs."""

from __future__ import annotations

import json
from pathlib import Path

from eval.bench.many_jobs import told_once


def test_that_jobs_told_twice_or_not_at_all_are_counted(tmp_path: Path) -> None:
    logs = tmp_path / "logs" / "part-0000"
    logs.mkdir(parents=True)
    for number in range(4):
        (logs / f"job{number}.log").touch()
    # As a batch calls them.
    told = ["part-0000/job0", "part-0000/job1", "part-0000/job1", "part-0000/job9"]
    results = tmp_path / "out.jsonl"
    results.write_text("".join(json.dumps({"source": name}) + "\n" for name in told), encoding="utf-8")
    expected = {"jobs": 4, "once": 1, "more than once": 1, "missing": 2, "of no job": 1}
    assert told_once(tmp_path / "logs", results) == expected
