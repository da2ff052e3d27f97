"""Labelled incidents: a log with its cause, its root lines and the changes that would have helped."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from corpus.errors import InvalidCorpusError
from corpus.library import read_yaml, validated
from corpus.schema import Record, Scalar
from eval.errors import InvalidIncidentError
from ingest.logs.events import masked
from ingest.logs.inputs import sources
from ingest.logs.inputs.jobs import JobSource, open_named
from ingest.logs.inputs.sources import LogSource
from service.telemetry import snapshot
from service.telemetry.snapshot import Snapshot

FOLDER = Path(__file__).parent / "incidents"
LOGS = ("log.txt", "log.txt.gz")
TELEMETRY = "telemetry.json"
# Files that were found beside the log.
BESIDE = "beside"
JOB_FILES = (
    "run.sh", "job.sbatch", "config.yaml", "ds.json", "requirements.txt", "pod.yaml", "docker-compose.yaml",
    "hostfile",
)  # fmt: skip

LabelVerdict = Literal["diagnosed", "unknown", "no-failure"]
Split = Literal["fit", "test"]


class LabelledChange(Record):
    """A change that would have helped; any one of several suffices. `to` may be a range in words."""

    framework: str
    key: str
    to: Scalar | list[Scalar] | None = None


class Origin(Record):
    """Where an incident comes from: written from published facts, recorded by `eval.lab`, or public."""

    kind: Literal["written", "lab", "public"]
    facts: tuple[str, ...] = ()
    versions: Mapping[str, str] = Field(default_factory=dict)
    note: str = ""


class Label(Record):
    """The ground truth of an incident.

    `causes` are all that an expert would accept, the best first; `root_lines` the numbers (from 1) of lines
    that prove them. `pair` is the id of an incident that differs only in what decides the cause. Incidents of
    one `mechanism`, and pairs, are in the same `split`. `traps` say what misleads in the log. `forbidden` are
    changes that would make it worse, or that cannot be made at all; without a value, whatever it is.
    """

    id: str
    causes: tuple[str, ...]
    verdict: LabelVerdict
    root_lines: tuple[int, ...] = ()
    changes: tuple[LabelledChange, ...] = ()
    forbidden: tuple[LabelledChange, ...] = ()
    frameworks: Mapping[str, str] = Field(default_factory=dict)
    language: Literal["en", "zh"] = "en"
    kind: Literal["paste", "short", "medium", "long"]
    mechanism: str
    split: Split
    traps: tuple[str, ...] = ()
    pair: str | None = None
    origin: Origin


@dataclass(frozen=True)
class Incident:
    """A label with its files; `configuration` names the job's own ones that may stand in the folder.

    A `bare` one is read without the files beside its log.
    """

    label: Label
    folder: Path
    configuration: tuple[str, ...] = JOB_FILES
    bare: bool = False

    @property
    def id(self) -> str:
        """The incident's id, which is also its folder's name."""
        return self.label.id

    @property
    def log(self) -> Path:
        """The job's output."""
        return next(self.folder / name for name in LOGS if (self.folder / name).exists())

    @property
    def job_files(self) -> list[Path]:
        """The job's configuration files that exist."""
        return [self.folder / name for name in self.configuration if (self.folder / name).exists()]

    @property
    def telemetry(self) -> Snapshot | None:
        """The telemetry snapshot, where the incident has one."""
        path = self.folder / TELEMETRY
        return snapshot.load_snapshot(path) if path.exists() else None

    @property
    def beside(self) -> list[Path]:
        """What tools left beside the log: stacks, dumps."""
        return [] if self.bare else sorted((self.folder / BESIDE).glob("*"))

    def source(self) -> LogSource | JobSource:
        """Open the log, with what lies beside it."""
        return _job(self.log, files) if (files := self.beside) else sources.from_path(self.log)

    @cached_property
    def _parts(self) -> list[tuple[str, str]]:
        return _parts(self.log, self.beside)

    @cached_property
    def text(self) -> str:
        """The log's text, and what the files beside it tell; the longest is some megabytes."""
        return "".join(text for _, text in self._parts)

    def line_of(self, file: str | None, line: int) -> int:
        """Give the number in the whole text of a line that is counted in one of the job's files."""
        above = 0
        for name, text in self._parts:
            if name == file:
                return above + line
            above += text.count("\n")
        return line

    @property
    def lines(self) -> list[str]:
        """The log's lines; line 1 is the first."""
        return self.text.split("\n")


def _job(log: Path, files: Sequence[Path]) -> JobSource:
    return open_named([(path.name, path) for path in (log, *files)], log.parent.name)


def _parts(log: Path, beside: Sequence[Path]) -> list[tuple[str, str]]:
    """Give the log's name and text, and those of what the files beside it tell."""
    if not beside:
        raw = log.read_bytes()
        return [(log.name, (gzip.decompress(raw) if log.suffix == ".gz" else raw).decode("utf-8", "replace"))]
    parts = []
    for part in _job(log, beside).parts():
        text = b"".join(part.chunks()).decode("utf-8", "replace")
        parts.append((part.name, text if text.endswith("\n") else f"{text}\n"))
    return parts


def whole_text(log: Path, beside: Sequence[Path]) -> str:
    """Give a log's text, and behind it what the files beside it tell."""
    return "".join(text for _, text in _parts(log, beside))


def load(folder: Path = FOLDER, split: Split | None = None, *, bare: bool = False) -> list[Incident]:
    """Load incidents, sorted by id; raises InvalidIncidentError naming file and field.

    `bare` ones are read without the files beside their logs.
    """
    found = [_incident(path, bare=bare) for path in sorted(folder.glob("*/label.yaml"))]
    if not found:
        raise InvalidIncidentError(
            f"{folder} holds no incident: one is a folder with label.yaml and log.txt (a checkout has ours)"
        )
    return [incident for incident in found if split in (None, incident.label.split)]


def _incident(path: Path, *, bare: bool) -> Incident:
    try:
        data: Any = read_yaml(path)
        label = validated(Label, data, str(path))
    except InvalidCorpusError as error:
        raise InvalidIncidentError(str(error)) from error
    if label.id != path.parent.name:
        raise InvalidIncidentError(f"{path}: its id is {label.id!r}; id and folder must be the same")
    if not any((path.parent / name).exists() for name in LOGS):
        raise InvalidIncidentError(f"{path.parent}: has no {' or '.join(LOGS)}")
    return Incident(label, path.parent, bare=bare)


def findings(incidents: Sequence[Incident], causes: Iterable[str]) -> list[str]:
    """Give a sentence for each fault of a set of incidents.

    Unknown causes, root lines outside the log, label words inside the log, duplicate logs, and mechanisms or
    pairs that stand in both splits.
    """
    known = set(causes)
    found = [text for incident in incidents for text in _label_findings(incident, known)]
    return [*found, *_duplicates(incidents), *_in_both_splits(incidents)]


def _label_findings(incident: Incident, causes: set[str]) -> list[str]:
    label = incident.label
    found = [f"{label.id}: unknown cause {cause}" for cause in label.causes if cause not in causes]
    found += [
        f"{label.id}: has no line {line}" for line in label.root_lines if not 0 < line <= len(incident.lines)
    ]
    if label.verdict == "diagnosed" and not (label.causes and label.root_lines):
        found.append(f"{label.id}: a diagnosed incident needs a cause and a root line")
    if label.verdict == "no-failure" and (label.causes or label.root_lines):
        found.append(f"{label.id}: a healthy run has neither cause nor root line")
    hyphened = [cause for cause in causes if "-" in cause]
    leaks = re.search("|".join(map(re.escape, [label.id, *hyphened])), incident.text)
    if leaks:
        found.append(f"{label.id}: its log holds the label's word {leaks[0]!r}")
    return found


def _duplicates(incidents: Sequence[Incident]) -> list[str]:
    """Find logs that are equal but for numbers, ids and paths.

    A log with telemetry and the same one without are no duplicates.
    """
    seen: dict[str, str] = {}
    found = []
    for incident in incidents:
        shape = "\n".join(masked(line) for line in incident.lines) + (
            "\nwith telemetry" if incident.telemetry else ""
        )
        if shape in seen:
            found.append(f"{incident.id}: the same text as {seen[shape]} but for numbers and names")
        seen.setdefault(shape, incident.id)
    return found


def _in_both_splits(incidents: Sequence[Incident]) -> list[str]:
    """Find mechanisms and pairs that stand in both splits."""
    sides: dict[str, set[str]] = {}
    split = {incident.id: incident.label.split for incident in incidents}
    for incident in incidents:
        label = incident.label
        if label.verdict == "diagnosed":
            sides.setdefault(f"mechanism {label.mechanism}", set()).add(label.split)
        if label.pair in split:
            sides.setdefault(f"twins {' and '.join(sorted((label.id, label.pair)))}", set()).update(
                (label.split, split[label.pair])
            )
    return [f"{name}: is in fit and in test" for name, found in sides.items() if len(found) > 1]
