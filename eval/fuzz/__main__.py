"""Fuzz the readers of logs, archives and a job's own files: `python -m eval.fuzz [--seconds N] [NAME...]`.

Inputs that fail are stored in out/fuzz/NAME; `--again FILE` runs one of them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.fuzz.targets import SUBJECTS

OUT = Path("out") / "fuzz"
# Limits of an input (bytes) and of one execution (seconds, MiB).
LONGEST = 1 << 14
SLOWEST = 20
MOST_MIB = 4096

_EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s*(\d+)|Done (\d+) runs")
_COVERED = re.compile(r"\bcov: (\d+)")
_RAISED = re.compile(r"=== Uncaught Python exception: ===\n(.{0,400})|ERROR: libFuzzer: (.{0,80})")


@dataclass(frozen=True)
class FuzzResult:
    """The result of fuzzing one reader; `found` is the first finding's text, empty where there is none."""

    name: str
    executions: int
    branches: int
    found: str

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.executions} executions, {self.branches} branches reached, "
            f"{self.found or 'nothing found'}"
        )


def fuzz(name: str, seconds: int, again: Sequence[str] = ()) -> FuzzResult:
    """Fuzz one reader for `seconds`, or run it on the files of `again` only."""
    kept = OUT / name
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="whycrash-fuzz-") as folder:
        for number, seed in enumerate(SUBJECTS[name].seeds()):
            (Path(folder) / f"{number}").write_bytes(seed)
        given = list(again) or [folder, f"-max_total_time={seconds}", f"-max_len={LONGEST}"]
        options = [
            f"-timeout={SLOWEST}",
            f"-rss_limit_mb={MOST_MIB}",
            f"-artifact_prefix={kept}/",
            "-print_final_stats=1",
        ]
        completed = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-m", "eval.fuzz.process", name, *options, *given],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    output = completed.stdout + completed.stderr
    executions = max((int(match[1] or match[2]) for match in _EXECUTIONS.finditer(output)), default=0)
    branches = max((int(match[1]) for match in _COVERED.finditer(output)), default=0)
    raised = _RAISED.search(output)
    finding = (raised[1] or raised[2]).strip() if raised else output[-400:]
    return FuzzResult(name, executions, branches, finding if completed.returncode else "")


def main(words: Sequence[str] | None = None) -> int:
    """Fuzz the named readers, or all; exit code 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m eval.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *SUBJECTS], help=", ".join(SUBJECTS))
    parser.add_argument("--seconds", type=int, default=60, help="for each reader")
    parser.add_argument("--again", nargs="+", default=(), metavar="FILE", help="inputs to run instead")
    given = parser.parse_args(words)
    ended = []
    for name in given.names or SUBJECTS:
        ended.append(fuzz(name, given.seconds, given.again))
        sys.stdout.write(f"{ended[-1]}\n")
        sys.stdout.flush()
    return int(any(run.found for run in ended))


if __name__ == "__main__":
    sys.exit(main())
