"""Run the experiments and leave one labelled incident for each that failed as intended."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from .catalogue import hangs, processes, ray, torch, trainers
from .cgroup import CgroupUnavailableError
from .experiment import Experiment
from .record import NotShownError, write
from .sandbox import BESIDE, RunOutcome, run_job

SCRIPTS = Path(__file__).with_name("experiments")


class SkippedError(Exception):
    """The machine lacks what the experiment needs."""


def experiments() -> tuple[Experiment, ...]:
    """Return all experiments, in the order of the tables."""
    return (
        *ray.EXPERIMENTS,
        *torch.EXPERIMENTS,
        *processes.EXPERIMENTS,
        *trainers.EXPERIMENTS,
        *hangs.EXPERIMENTS,
    )


def _installed(name: str) -> bool:
    """Tell whether a distribution is installed."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _require(experiment: Experiment) -> None:
    """Raise where a tool or package is missing, or one is present that must not be."""
    missing = [name for name in experiment.needs if not _installed(name)]
    missing += [tool for tool in ("unshare", "setpriv", "ip", "mount") if shutil.which(tool) is None]
    present = [name for name in experiment.absent if _installed(name)]
    if missing or present:
        words = [f"{name} is missing" for name in missing] + [f"{name} is installed" for name in present]
        raise SkippedError(", ".join(words))


def _run_in(folder: Path, experiment: Experiment, job: Path) -> RunOutcome:
    """Lay out the job's files in `job` and run it."""
    for source, name in ((experiment.script, experiment.shown_as), *experiment.extra):
        (job / name).write_bytes((folder / source).read_bytes())
    (job / BESIDE).mkdir()
    return run_job(
        job, experiment.project, experiment.launch, experiment.env, experiment.limits, experiment.timeout_s
    )


def record_one(experiment: Experiment, out: Path, keep: Path | None = None) -> Path:
    """Run one experiment in a temporary folder and write its incident; keep the raw output where asked.

    Raises:
        SkippedError: a package or tool is missing.
        NotShownError: the failure did not show.
        CgroupUnavailableError: limits cannot be set here.

    """
    _require(experiment)
    with tempfile.TemporaryDirectory() as temporary:
        job = Path(temporary) / "job"
        job.mkdir()
        outcome = _run_in(SCRIPTS, experiment, job)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{experiment.id}.txt").write_bytes(outcome.output)
        return write(experiment, outcome, job, out)


def _report(experiment: Experiment, out: Path, keep: Path | None) -> str:
    """Run one experiment and give a line for the terminal: recorded, skipped or not shown, and why."""
    try:
        folder = record_one(experiment, out, keep)
    except (SkippedError, CgroupUnavailableError) as error:
        return f"skipped   {experiment.id}: {error}"
    except NotShownError as error:
        return f"not shown {experiment.id}: {error}"
    return f"recorded  {folder}"


def _parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(prog="python -m eval.lab", description=__doc__)
    parser.add_argument("--only", action="append", metavar="ID", help="run this experiment only; repeatable")
    parser.add_argument("--out", type=Path, default=Path("eval/incidents"), help="folder for the incidents")
    parser.add_argument("--raw", type=Path, help="also keep every run's output here, recorded or not")
    parser.add_argument("--list", action="store_true", help="list the experiments and stop")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen experiments; return 1 where one did not fail as intended."""
    options = _parser().parse_args(arguments)
    chosen = [row for row in experiments() if not options.only or row.id in options.only]
    if options.list:
        sys.stdout.writelines(f"{row.id}  {row.mechanism}\n" for row in chosen)
        return 0
    lines = []
    for row in chosen:
        lines.append(_report(row, options.out, options.raw))
        sys.stdout.write(lines[-1] + "\n")
        sys.stdout.flush()
    return int(any(line.startswith("not shown") for line in lines))
