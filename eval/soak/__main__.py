"""Load a server for a while, kill parts of it, and look whether anything was lost: `python -m eval.soak`.

The server is started for it on loopback. The exit code is 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from eval.soak import checks, report
from eval.soak.load import Load
from eval.soak.target import SoakTarget

# Of the time, after which the server as a whole is killed: what lives on has half of it to settle.
SERVER_AT = (0.25, 0.5)
# Seconds between two kills of a worker.
WORKER_EVERY = 20.0
# Seconds for each batch that is still worked on afterwards.
PATIENCE = 600.0
# Words of a command that the report shows.
_SHOWN = 3


def main() -> int:
    """Load, kill, check, report."""
    parser = argparse.ArgumentParser(prog="python -m eval.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="how long the load lasts (default: 120)")
    parser.add_argument("--workers", type=int, default=2, help="processes that triage (default: 2)")
    parser.add_argument("--database", default="", help="URL of an empty database (default: SQLite)")
    parser.add_argument("--chroma", default="", help="URL of a Chroma server to use (default: none)")
    parser.add_argument(
        "--disturb",
        action="append",
        default=[],
        metavar="COMMAND",
        help="what stops or starts anew a part that the server needs, its database say; may be given again",
    )
    parser.add_argument(
        "--every", type=float, default=300.0, help="seconds between two of these, in turn (default: 300)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/soak.html"), help="where the report goes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whycrash-soak-") as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        with SoakTarget(folder / "home", given.workers, given.database, given.chroma) as target:
            load = Load(target.url, folder / "logs", given.seed)
            draws = random.Random(given.seed)  # noqa: S311 - no secret
            disturbances = itertools.cycle(given.disturb)
            _load_and_kill(target, load, given.minutes * 60, draws, _Disturbed(disturbances, given.every))
            found = checks.check(target.url, load.asked, target.samples, PATIENCE)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(report.page(target, load.asked, found, given.minutes), encoding="utf-8")
    told = [f"{count} {name}" for name, count in sorted(found.counts.items())]
    sys.stdout.write(f"{len(target.kills)} kills; {', '.join(told)}; the report is {given.out}\n")
    if (slope := checks.memory_slope(target.samples)) is not None:
        sys.stdout.write(f"in the later half of its longest life the server grew {slope:+.2f} MiB a minute\n")
    sys.stdout.writelines(f"did not hold: {row}\n" for row in found.wrong)
    return int(bool(found.wrong))


class _Disturbed:
    """Commands that disturb what the server needs, one after the other."""

    def __init__(self, commands: Iterator[str], every: float) -> None:
        self._commands, self._every = commands, every
        self._next = every

    def disturb(self, target: SoakTarget, now: float) -> None:
        """Run the next one, if it is time; raises CalledProcessError where it fails."""
        if now >= self._next and (command := next(self._commands, None)):
            self._next = now + self._every
            # What it starts must not hold this process's streams, nor end with it.
            quiet = subprocess.DEVNULL
            words = shlex.split(command)
            subprocess.run(  # noqa: S603 - whoever soaks says what
                words, check=True, stdin=quiet, stdout=quiet, stderr=quiet
            )
            target.note(" ".join(Path(word).name for word in words[:_SHOWN]))


def _load_and_kill(
    target: SoakTarget, load: Load, seconds: float, dice: random.Random, disturbed: _Disturbed
) -> None:
    """Load the server for so long, and kill parts of it meanwhile."""
    began = time.monotonic()
    servers = [share * seconds for share in SERVER_AT]
    worker = WORKER_EVERY
    load.start()
    try:
        while (now := time.monotonic() - began) < seconds:
            if servers and now >= servers[0]:
                servers.pop(0)
                target.kill_server()
            elif now >= worker:
                worker = now + WORKER_EVERY
                target.kill_worker(dice)
            disturbed.disturb(target, now)
            time.sleep(0.5)
    finally:
        load.stop()


if __name__ == "__main__":
    sys.exit(main())
