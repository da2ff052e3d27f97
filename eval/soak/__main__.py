"""Load a server for a while, kill parts of it, and look whether anything was lost: `python -m eval.soak`.

The server is started for it on loopback. The exit code is 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
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


def main() -> int:
    """Load, kill, check, report."""
    parser = argparse.ArgumentParser(prog="python -m eval.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="how long the load lasts (default: 120)")
    parser.add_argument("--workers", type=int, default=2, help="processes that triage (default: 2)")
    parser.add_argument("--database", default="", help="URL of an empty database (default: SQLite)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/soak.html"), help="where the report goes")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="whycrash-soak-") as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        with SoakTarget(folder / "home", given.workers, given.database) as target:
            load = Load(target.url, folder / "logs", given.seed)
            draws = random.Random(given.seed)  # noqa: S311 - no secret
            _load_and_kill(target, load, given.minutes * 60, draws)
            found = checks.check(target.url, load.asked, target.samples, PATIENCE)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(report.page(target, load.asked, found, given.minutes), encoding="utf-8")
    told = [f"{count} {name}" for name, count in sorted(found.counts.items())]
    sys.stdout.write(f"{len(target.kills)} kills; {', '.join(told)}; the report is {given.out}\n")
    if (slope := checks.memory_slope(target.samples)) is not None:
        sys.stdout.write(f"in the later half of its longest life the server grew {slope:+.2f} MiB a minute\n")
    sys.stdout.writelines(f"did not hold: {row}\n" for row in found.wrong)
    return int(bool(found.wrong))


def _load_and_kill(target: SoakTarget, load: Load, seconds: float, dice: random.Random) -> None:
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
            time.sleep(0.5)
    finally:
        load.stop()


if __name__ == "__main__":
    sys.exit(main())
