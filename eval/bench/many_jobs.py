"""Put very many jobs through `whycrash batch`, and tell whether any of its processes grows.

`python -m eval.bench.many_jobs --jobs 100000 --minutes 20`: small logs of the labelled incidents, every
second one a crash of its own. The command is stopped after the minutes, unless these are 0; what it did until
then counts. Of one that came to its end, the results are held against the jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

import psutil

from eval import incidents
from eval.bench.batch import own_crash
from service.settings import load_settings

# Bytes of a log that are kept: its end.
TAIL = 6000
EVERY = 1.0
# Jobs below one folder: as a scheduler lays them out by day or by user.
FOLDER = 1000
# The index and models of the configured home, so that nothing is built or loaded twice.
SHARED = ("index", "models", "cache")
_WORKER = re.compile(r"worker_program|spawn_main|forkserver")


class ProcessSample(NamedTuple):
    """What a process held: seconds since the start, MiB, open files."""

    at: float
    mib: float
    files: int


def main(words: Sequence[str]) -> int:
    """Write the logs, run the command, and print what came of it as JSON."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench.many_jobs", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=20.0, help="0: to its end")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="whycrash-many-") as name:
        folder = Path(name)
        write(folder / "logs", given.jobs)
        found = _run(folder, given.workers, given.minutes * 60 or inf)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


def write(folder: Path, count: int) -> None:
    """Write `count` logs, FOLDER in each folder below."""
    texts = [incident.text[-TAIL:] for incident in incidents.load()]
    for number in range(count):
        if number % FOLDER == 0:
            part = folder / f"part-{number // FOLDER:04d}"
            part.mkdir(parents=True)
        text = texts[number % len(texts)]
        path = part / f"job{number:07d}.log"
        path.write_text(own_crash(text, number) if number % 2 else text, encoding="utf-8")


def _run(folder: Path, workers: int, seconds: float) -> dict[str, object]:
    home = folder / "home"
    home.mkdir()
    for name in SHARED:
        (home / name).symlink_to(load_settings().home / name)
    parts = sorted(map(str, (folder / "logs").iterdir()))
    command = [sys.executable, "-m", "ui.cli.main", "batch", *parts, "--out", str(folder / "out.jsonl")]
    told = folder / "told"
    with told.open("wb") as file:
        began = time.monotonic()
        process = subprocess.Popen(
            [*command, "--workers", str(workers)],
            env={**os.environ, "WHYCRASH_HOME": str(home)},
            stdout=file,
            stderr=file,
        )
        samples = _watched(process, began, seconds)
        code = process.wait()
    rows = told.read_text(encoding="utf-8", errors="replace").splitlines()
    disk = {path.name: path.stat().st_size for path in home.glob("*.db*")}
    journal = sum(path.stat().st_size for path in (home / "batches").rglob("*") if path.is_file())
    return {
        "exit code": code,
        "seconds": round(time.monotonic() - began),
        "progress": [row for row in rows if re.match(r"\d+ of \d+ jobs", row)][-1:],
        "summary": rows[:3] if code >= 0 else [],
        "results": told_once(folder / "logs", folder / "out.jsonl") if code >= 0 else {},
        "database bytes": disk,
        "journal bytes": journal,
        "processes": _grown(samples),
    }


def told_once(logs: Path, results: Path) -> dict[str, int]:
    """Count the jobs that a file of results has once, more than once, and not at all."""
    told: Counter[str] = Counter()
    if results.exists():
        with results.open(encoding="utf-8") as file:
            told.update(Path(json.loads(row)["source"]).stem for row in file)
    jobs = {path.stem for path in logs.rglob("*.log")}
    return {
        "jobs": len(jobs),
        "once": sum(told[name] == 1 for name in jobs),
        "more than once": sum(told[name] > 1 for name in jobs),
        "missing": sum(told[name] == 0 for name in jobs),
        "of no job": len(told.keys() - jobs),
    }


def _watched(
    process: subprocess.Popen[bytes], began: float, seconds: float
) -> Mapping[str, list[ProcessSample]]:
    """ProcessSample each process until the command is over, or its time is."""
    samples: dict[str, list[ProcessSample]] = defaultdict(list)
    own = psutil.Process(process.pid)
    stopped = False
    while process.poll() is None:
        at = time.monotonic() - began
        if at > seconds and not stopped:
            stopped = True
            process.terminate()
        try:
            for each in (own, *own.children(recursive=True)):
                kind = "worker" if _WORKER.search(" ".join(each.cmdline())) else "other"
                name = "engine" if each.pid == own.pid else f"{kind} {each.pid}"
                samples[name].append(ProcessSample(at, each.memory_info().rss / (1 << 20), each.num_fds()))
        except psutil.NoSuchProcess:
            pass
        time.sleep(EVERY)
    return samples


def _grown(samples: Mapping[str, list[ProcessSample]]) -> dict[str, object]:
    """Give memory and files of each long-lived process in the second quarter of its life and in the last."""
    found: dict[str, object] = {}
    for name, rows in samples.items():
        quarter = len(rows) // 4
        if rows[-1].at - rows[0].at < 60:
            continue
        early, late = rows[quarter : 2 * quarter], rows[-quarter:]
        found[name] = {
            "seconds": round(rows[-1].at - rows[0].at),
            "MiB": [round(statistics.median(row.mib for row in part)) for part in (early, late)],
            "highest MiB": round(max(row.mib for row in rows)),
            "files": [round(statistics.median(row.files for row in part)) for part in (early, late)],
        }
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
