"""Close the loops over all jobs, one at a time, and say how many the first change cures."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import yaml

from eval.metrics import mean
from service.pipeline.triage import Triage
from service.settings import load_settings

from .closed_loop import LoopResult, close
from .jobs import JOBS, LoopJob, load

RECORDED = Path(__file__).with_name("results.yaml")
# What was not tried here says nothing; no change, or one that leaves the value to a person, cures nothing.
_COUNTED = {"cured": 1.0, "not cured": 0.0, "no change": 0.0, "in words": 0.0}


def summary(results: Sequence[LoopResult]) -> dict[str, object]:
    """Count the endings, and give the share that the first change cures with its 95 % interval."""
    share = mean([_COUNTED.get(result.ending) for result in results])
    figures = {"cured": round(share.value, 3), "low": round(share.low, 3), "high": round(share.high, 3)}
    return {"share": figures, "of": share.count, "endings": dict(Counter(item.ending for item in results))}


def recorded(path: Path = RECORDED) -> dict[str, LoopResult]:
    """Read the kept results, by the id of their job; none where there is no file."""
    if not path.exists():
        return {}
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return {row["id"]: LoopResult(**row) for row in rows}


def record(results: Sequence[LoopResult], jobs: Sequence[LoopJob], path: Path) -> None:
    """Write the results; a job that was not run this time keeps its row, one that is gone loses it."""
    rows = recorded(path) | {result.id: result for result in results}
    kept = [rows[job.id] for job in jobs if job.id in rows]
    told = [{key: value for key, value in asdict(row).items() if value} for row in kept]
    text = yaml.safe_dump({"summary": summary(kept), "jobs": told}, sort_keys=False, width=110)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(prog="python -m eval.lab.loops", description=__doc__)
    parser.add_argument("--jobs", type=Path, default=JOBS, metavar="DIR", help="folder of the jobs' tables")
    parser.add_argument("--only", action="append", metavar="ID", help="close this loop only; repeatable")
    parser.add_argument("--out", type=Path, default=Path("out/loops.yaml"), help="file for the results")
    parser.add_argument("--wheels", type=Path, help="folder of wheels from which a change may install")
    parser.add_argument("--raw", type=Path, help="also keep each run's output and answer here")
    parser.add_argument("--list", action="store_true", help="list the jobs and stop")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Close the chosen loops; return 1 where a job did not fail as it should."""
    options = _parser().parse_args(arguments)
    jobs = load(options.jobs)
    chosen = [job for job in jobs if not options.only or job.id in options.only]
    if options.list:
        sys.stdout.writelines(f"{job.id}  {job.mechanism}\n" for job in chosen)
        return 0
    triage, results = Triage(load_settings()), list[LoopResult]()
    for job in chosen:
        result = close(job, triage, options.wheels, options.raw)
        results.append(result)
        # After each job, so that what an interruption leaves is kept.
        record(results, jobs, options.out)
        shown = " | ".join(part for part in (result.cause, result.change, result.way, result.why) if part)
        sys.stdout.write(f"{result.ending:<10} {job.id}: {shown}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{summary(results)}\n")
    return int(any(result.ending == "not shown" for result in results))
