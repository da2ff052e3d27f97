"""One closed loop: run, explain, make the first change, run again, and take the change back."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from eval.lab.cgroup import CgroupUnavailableError
from eval.lab.run import SCRIPTS
from eval.lab.sandbox import RunOutcome, run_job
from ingest.logs.inputs import jobs as inputs
from service.llm.triage_context import TriageContext
from service.patching.application import apply_edits, take_back
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Outcome

from .jobs import LoopJob
from .trial import INSTALL_FAILED, NotTriedError, Trial, first_step, trial_of

Ending = Literal["cured", "not cured", "no change", "in words", "not tried", "not shown", "skipped"]


# What pip says of a package that the folder of wheels does not hold.
_NO_WHEEL = "No matching distribution found"


@dataclass(frozen=True)
class LoopResult:
    """What became of a job: whether its first change cured it, what that was and how it was made.

    `why` tells of one that was not cured the last line of its second run, of others the reason.
    """

    id: str
    ending: Ending
    cause: str = ""
    change: str = ""
    way: str = ""
    why: str = ""


def close(job: LoopJob, triage: Triage, wheels: Path | None = None, keep: Path | None = None) -> LoopResult:
    """Close the loop over one job in a folder that is thrown away; keep log and answer where asked."""
    if missing := _missing(job, wheels):
        return LoopResult(job.id, "skipped", why=missing)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "job"
        folder.mkdir()
        shared = {name: (SCRIPTS / source).read_text(encoding="utf-8") for name, source in job.shared.items()}
        for name, text in (shared | dict(job.files)).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        try:
            failed = _run(job, folder, job.launch, wheels)
        except CgroupUnavailableError as error:
            return LoopResult(job.id, "skipped", why=str(error))
        _kept(keep, f"{job.id}.failed.log", failed.output)
        log = failed.output.decode("utf-8", "replace")
        absent = [text for text in job.shows if text not in log]
        if failed.timed_out or failed.returncode == 0 or absent:
            told = f"the log lacks {absent[0]!r}" if absent else f"exit status {failed.returncode}"
            told = f"still running after {job.timeout_s} s" if failed.timed_out else told
            return LoopResult(job.id, "not shown", why=told)
        files = [read_config(folder / name, name) for name in job.files]
        outcome = Outcome.told(exit_code=failed.returncode)
        source = inputs.open_jobs([folder.parent / "output"])
        context = triage.diagnose(triage.read(source, "en", files, outcome=outcome))
        _kept(keep, f"{job.id}.answer.json", context.first.to_json(indent=1).encode())
        return _tried(job, context, folder, wheels, keep)


def _missing(job: LoopJob, wheels: Path | None) -> str:
    """Say what the machine lacks for a job, or has and must not."""
    tools = [tool for tool in ("unshare", "setpriv", "ip", "mount") if shutil.which(tool) is None]
    lacking = [name for name in job.needs if not _is_installed(name)]
    present = [f"{name} is installed" for name in job.absent if _is_installed(name)]
    unasked = ["a folder of wheels (--wheels) is missing"] if job.packages and wheels is None else []
    return ", ".join([*(f"{name} is missing" for name in (*tools, *lacking)), *present, *unasked])


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _run(job: LoopJob, folder: Path, launch: str, wheels: Path | None) -> RunOutcome:
    """Run a command in the sandbox, which has no network: pip finds there what the folder of wheels holds."""
    offline = {} if wheels is None else {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels.resolve())}
    env = tuple({**offline, **job.env}.items())
    return run_job(folder, job.project, launch, env, job.limits, job.timeout_s)


def _kept(keep: Path | None, name: str, content: bytes) -> None:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / name).write_bytes(content)


def _tried(
    job: LoopJob, context: TriageContext, folder: Path, wheels: Path | None, keep: Path | None
) -> LoopResult:
    """Make the first change, run again, and take it back to the byte."""
    cause = context.first.cause or ""
    told = "; ".join(
        f"{change.framework}: {change.key} {change.from_ or ''}-> {change.to}"
        for change in first_step(context.first.changes)
    )
    try:
        trial = trial_of(job, context)
    except NotTriedError as error:
        return LoopResult(job.id, error.ending, cause, told, why=str(error))
    again = _run_changed(job, trial, folder, wheels)
    _kept(keep, f"{job.id}.again.log", again.output)
    log = again.output.decode("utf-8", "replace")
    if (trial.way == "package" and again.returncode == INSTALL_FAILED) or (
        _NO_WHEEL in log and again.returncode
    ):
        return LoopResult(job.id, "not tried", cause, told, trial.way, "not in the folder of wheels")
    if again.returncode == 0 and job.done in log:
        return LoopResult(job.id, "cured", cause, told, trial.way)
    last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "no output")
    why = f"still running after {job.timeout_s} s" if again.timed_out else last[:160]
    return LoopResult(job.id, "not cured", cause, told, trial.way, why)


def _run_changed(job: LoopJob, trial: Trial, folder: Path, wheels: Path | None) -> RunOutcome:
    """Run the job with the change in it; its files have their bytes back afterwards.

    Raises RuntimeError where they do not: that is a fault of the product, and no job's result.
    """
    home = folder.parent / "home"
    if trial.edits:
        apply_edits(trial.edits, home)
    try:
        return _run(job, folder, trial.launch, wheels)
    finally:
        if trial.edits:
            take_back(home)
        changed = [name for name, text in job.files.items() if (folder / name).read_bytes() != text.encode()]
        if changed:
            raise RuntimeError(f"{job.id}: not undone to the byte: {', '.join(changed)}")
