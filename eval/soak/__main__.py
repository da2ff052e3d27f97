"""Load a server for a while, kill parts of it, and look whether anything was lost: `python -m eval.soak`.

The server is started for it on loopback. The exit code is 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from eval.soak import checks, report
from eval.soak.harms import HarmSchedule
from eval.soak.load import Load, LoadContext
from eval.soak.surroundings import Surroundings, everything
from eval.soak.target import SoakTarget

# Of the time, after which the server as a whole is killed: what lives on has half of it to settle.
SERVER_AT = (0.25, 0.5)
# Seconds between two kills of a worker.
WORKER_EVERY = 20.0
# Seconds for each batch that is still worked on afterwards.
PATIENCE = 600.0
# Seconds between two harms at most; in a short soak each comes once.
REST = 60.0
# How much of the time harms last, and what comes back after them, as far as that can be planned.
_LASTING = 60.0
# Words of a command that the report shows.
_SHOWN = 3


def main() -> int:
    """Load, kill, check, report."""
    given = _parser().parse_args()
    # Whoever ends a soak ends all that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="whycrash-soak-") as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "logs").mkdir()
        draws = random.Random(given.seed)  # noqa: S311 - no secret
        if given.everything:
            around = stack.enter_context(everything(folder, draws))
        else:
            around = Surroundings(folder, folder / "home", database=given.database, chroma=given.chroma)
        if given.warm:
            around.take_over(given.warm)
        with around.target(given.workers) as target:
            context = LoadContext(target.url, folder / "logs")
            load = Load(context, [make(context) for make in around.kinds], given.seed, given.slower)
            # Each is to come once at least.
            most = given.minutes * 60 / (len(around.harms) + 1) - _LASTING
            schedule = HarmSchedule(target, around.harms, min(REST, max(1.0, most)))
            disturbed = _Disturbed(itertools.cycle(given.disturb), given.every)
            _Soaking(target, load, draws, disturbed, schedule).run(given.minutes * 60)
            found = checks.check(target.url, context.asked, target.samples, PATIENCE)
            found.wrong += [*load.wrong(), *schedule.wrong]
            found.counts.update(load.counts())
    soak = report.Soak(target, context.asked, found, given.minutes, schedule.recoveries, around.missing)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(report.page(soak), encoding="utf-8")
    _tell(soak, given.out)
    return int(bool(found.wrong))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m eval.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0, help="how long the load lasts (default: 120)")
    parser.add_argument("--workers", type=int, default=2, help="processes that triage (default: 2)")
    parser.add_argument(
        "--everything",
        action="store_true",
        help="with page, Slack, a model, PostgreSQL, Chroma and a Ray cluster, and what can happen to each",
    )
    parser.add_argument("--slower", type=float, default=1.0, help="how much rarer is asked (default: 1)")
    parser.add_argument(
        "--warm", type=Path, metavar="HOME", help="a home whose index, models and caches are copied first"
    )
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
    return parser


def _tell(soak: report.Soak, out: Path) -> None:
    found, target = soak.found, soak.target
    killed = [f"{what} {count} times" for what, count in target.killed.most_common()]
    told = [f"{count} {name}" for name, count in sorted(found.counts.items())]
    sys.stdout.write(f"killed: {', '.join(killed)}; {', '.join(told)}; the report is {out}\n")
    if trend := checks.memory_trend(target.samples):
        sys.stdout.write(f"{trend.told()}\n")
    sys.stdout.writelines(f"{what}: work was taken {after:.0f} s later\n" for what, after in soak.recoveries)
    sys.stdout.writelines(f"not tried: {what}, as {why}\n" for what, why in soak.missing.items())
    sys.stdout.writelines(f"did not hold: {row}\n" for row in found.wrong)


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


class _Soaking:
    """Loads the server, and kills parts of it meanwhile."""

    def __init__(
        self,
        target: SoakTarget,
        load: Load,
        draws: random.Random,
        disturbed: _Disturbed,
        schedule: HarmSchedule,
    ) -> None:
        self._target, self._load, self._draws = target, load, draws
        self._disturbed, self._schedule = disturbed, schedule

    def run(self, seconds: float) -> None:
        """Do so for so long."""
        began = time.monotonic()
        servers = [share * seconds for share in SERVER_AT]
        worker = WORKER_EVERY
        self._load.start()
        try:
            while (now := time.monotonic() - began) < seconds:
                # A server that is started while its database is away does not come up.
                if servers and now >= servers[0] and self._schedule.is_quiet:
                    servers.pop(0)
                    self._target.kill_server()
                elif now >= worker:
                    worker = now + WORKER_EVERY
                    self._target.kill_worker(self._draws)
                self._disturbed.disturb(self._target, now)
                self._schedule.step()
                time.sleep(0.5)
            self._schedule.finish()
        finally:
            self._load.stop()


if __name__ == "__main__":
    sys.exit(main())
