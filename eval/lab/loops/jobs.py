"""The jobs of the closed loops: the files of a small job that fails, and how its good run is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, TypeAdapter

from corpus.library import read_yaml
from corpus.schema import Record
from eval.lab.experiment import Limits

JOBS = Path(__file__).parent / "jobs"


class LoopEdit(Record):
    """One line of a job's file and what stands there instead.

    `line` is given without its indentation and stands once in `file`; `becomes` takes its place at the same
    indentation, over several lines where it has several. An empty one removes the line.
    """

    file: str
    line: str = Field(min_length=1)
    becomes: str


class Cure(Record):
    """One way to cure a job, as its author would take it: edits of its files, or another command to start it.

    `settings` names the settings that the way changes with the values they get, as the job writes them;
    it is empty where the way is an edit of code.
    """

    settings: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    edits: tuple[LoopEdit, ...] = ()
    launch: str | None = None


class LoopJob(Record):
    """A job that fails for one known reason: a mistake in its code, its configuration or its environment.

    `files` are the job's own by their names in its folder, as its user names them to `explain`: launch
    script, configurations, code. `shared` are further ones, each a file of `experiments/`. `launch` is the
    shell command that starts it there. `shows` are texts of its log without which it did not fail as it
    should; `done` is what it prints at a good end, so that a run which skips the work is no cure. `needs`
    are the distributions that must be installed, `absent` those that must not be, `packages` those that a
    change, or the job itself, installs from a folder of wheels. `cures` are the ways that are known to
    cure it, any of which suffices; the trial itself does not look at them.
    """

    id: str = Field(pattern="^[a-z0-9-]+$")
    mechanism: str
    files: Mapping[str, str]
    shared: Mapping[str, str] = Field(default_factory=dict)
    launch: str
    shows: tuple[str, ...] = Field(min_length=1)
    done: str
    project: str = "job"
    needs: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)
    limits: Limits = Field(default_factory=Limits)
    timeout_s: int = Field(default=120, gt=0, le=600)
    cures: tuple[Cure, ...] = ()


_TABLE = TypeAdapter(tuple[LoopJob, ...])


def load(folder: Path = JOBS) -> tuple[LoopJob, ...]:
    """Load the jobs of all tables, in the order of their files; raises pydantic's error for a wrong row."""
    return tuple(
        job for path in sorted(folder.glob("*.yaml")) for job in _TABLE.validate_python(read_yaml(path))
    )
