"""Write the incident of a finished experiment; a run that did not fail as intended is refused."""

import shutil
from importlib import metadata
from pathlib import Path
from platform import python_version

import yaml

from eval.incidents import whole_text

from .experiment import Experiment
from .sandbox import BESIDE, RunOutcome

_FRAMEWORKS = frozenset(
    (
        "ray",
        "verl",
        "torch",
        "transformers",
        "trl",
        "accelerate",
        "lightning",
        "deepspeed",
        "hydra-core",
        "datasets",
        "peft",
    )
)


class NotShownError(Exception):
    """The failure did not show; the run is not recorded."""


def versions(names: tuple[str, ...]) -> dict[str, str]:
    """Return the interpreter's version and those of the installed distributions."""
    return {"python": python_version(), **{name: metadata.version(name) for name in names}}


def root_lines(experiment: Experiment, log: str) -> list[int]:
    r"""Return the numbers of the decisive lines, counting `\n` only.

    Raises:
        NotShownError: a decisive or required text is missing.

    """
    for text in experiment.shows:
        if text not in log:
            raise NotShownError(f"the log lacks {text!r}")
    lines = log.split("\n")
    found = set()
    for wanted in experiment.root:
        hits = [number for number, line in enumerate(lines, 1) if wanted.text in line]
        if not hits:
            raise NotShownError(f"no line contains {wanted.text!r}")
        found.add(hits[0] if wanted.which == "first" else hits[-1])
    return sorted(found)


def check(experiment: Experiment, outcome: RunOutcome) -> None:
    """Refuse a run that took too long, or ended otherwise than the experiment says.

    Raises:
        NotShownError: with the reason.

    """
    if outcome.timed_out:
        raise NotShownError(f"still running after {experiment.timeout_s} s")
    healthy = experiment.verdict == "no-failure"
    if healthy != (outcome.returncode == 0):
        raise NotShownError(f"exit status {outcome.returncode}")


# The size classes of a log, each with the number of lines that it stays below.
_KINDS = (("paste", 60), ("short", 300), ("medium", 3000))


def label(experiment: Experiment, log: str) -> dict[str, object]:
    """Build the incident's label.

    Raises:
        NotShownError: the log does not show the failure.

    """
    found = versions(experiment.needs)
    return {
        "id": experiment.id,
        "causes": list(experiment.causes),
        "verdict": experiment.verdict,
        "root_lines": root_lines(experiment, log),
        "changes": [{"framework": c.framework, "key": c.key, "to": c.to} for c in experiment.changes],
        "frameworks": {
            name.removesuffix("-core"): found[name] for name in experiment.needs if name in _FRAMEWORKS
        },
        "language": experiment.language,
        "kind": next((name for name, below in _KINDS if log.count("\n") < below), "long"),
        "mechanism": experiment.mechanism,
        "traps": list(experiment.traps),
        "origin": {"kind": "lab", "versions": found},
    }


def write(experiment: Experiment, outcome: RunOutcome, job: Path, out: Path) -> Path:
    """Write `<out>/<id>/` with the log, the label and the job's own launch and configuration files.

    Raises:
        NotShownError: the run did not fail as intended; nothing is written.

    """
    check(experiment, outcome)
    folder = out / experiment.id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.txt").write_bytes(outcome.output)
    files = sorted((job / BESIDE).iterdir()) if experiment.beside else []
    if files:
        (folder / BESIDE).mkdir(exist_ok=True)
        for file in files:
            (folder / BESIDE / file.name).write_bytes(file.read_bytes())
    log = whole_text(folder / "log.txt", [folder / BESIDE / file.name for file in files])
    try:
        told = label(experiment, log)
    except NotShownError:
        shutil.rmtree(folder)
        raise
    text = yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=110)
    (folder / "label.yaml").write_text(text, encoding="utf-8")
    for file in job.iterdir():
        if file.name in {"run.sh", "config.yaml", "ds.json"}:
            (folder / file.name).write_bytes(file.read_bytes())
    return folder
