"""Where a batch's jobs come from, by the options of `whycrash batch`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from corpus.message import Message
from service.batches.sources import (
    elasticsearch,
    folder,
    kubernetes,
    kubernetes_api,
    loki,
    object_store,
    ray_jobs,
    slurm,
    slurmrestd,
    upload,
)
from service.batches.sources.found import FoundJobs
from service.batches.sources.spool import BatchSpool
from service.schemas.errors import InvalidRequestError
from service.schemas.records import SourceKind
from service.settings import Settings

_SPAN = re.compile(r"(?P<count>\d{1,6})(?P<unit>[mhdw])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
DAY = timedelta(days=1)


@dataclass(frozen=True)
class BatchArguments:
    """What was asked for on the command line."""

    paths: tuple[Path, ...]
    out: Path
    html: Path | None = None
    csv: Path | None = None
    lang: str = ""
    workers: int | None = None
    name: str = ""
    slurm: bool = False
    slurmrestd: str = ""
    ray: str = ""
    kubernetes: str = ""
    objects: str = ""
    loki: str = ""
    elasticsearch: str = ""
    query: str = ""
    job_label: str = ""
    since: str = ""
    users: str = ""
    new: bool = False

    @property
    def address(self) -> str:
        """The server that is asked, empty where none is."""
        return (
            self.ray or self.slurmrestd or self.loki or self.elasticsearch or self.objects or self.kubernetes
        )

    @property
    def digest(self) -> str:
        """Tell one request from another: the same one goes on, another one begins anew."""
        places = [str(path.absolute()) for path in (*self.paths, self.out, *self.pods)]
        asked = [*places, str(self.slurm), self.ray, self.since, self.users, self.lang]
        asked += [url for url in (self.objects, self.kubernetes) if url and "://" in url]
        asked += [
            word
            for word in (self.slurmrestd, self.loki, self.elasticsearch, self.query, self.job_label)
            if word
        ]
        return hashlib.sha256("\0".join(asked).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    @property
    def pods(self) -> tuple[Path, ...]:
        """The folder of pods' logs, where one was named and no cluster."""
        is_folder = self.kubernetes and not kubernetes_api.is_address(self.kubernetes)
        return (Path(self.kubernetes),) if is_folder else ()

    @property
    def caller(self) -> str:
        """Who has the batch, as the store keeps it."""
        return f"cli:{self.digest}"

    @property
    def part(self) -> Path:
        """What tells, until the results are whole, which batch they are of."""
        return self.out.with_name(f"{self.out.name}.part")


@dataclass(frozen=True)
class SourceQuestion:
    """What is to be found: the arguments, with what was answered before and when it is now."""

    arguments: BatchArguments
    spool: BatchSpool
    settings: Settings
    answered: Container[str] = ()
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def since(self) -> datetime | None:
        """Since when jobs are asked for, where it was said."""
        return since_of(self.arguments.since, self.now)

    @property
    def since_or_day(self) -> datetime:
        """Since when, of a source that is not asked for all time."""
        return self.since or self.now - DAY


def kind_of(wanted: BatchArguments) -> SourceKind:
    """Tell which source was named; raises InvalidRequestError where none was, or more than one."""
    kinds: list[tuple[bool, SourceKind]] = [
        (bool(wanted.paths), "folder"),
        (wanted.slurm or bool(wanted.slurmrestd), "slurm"),
        (bool(wanted.ray), "ray"),
        (bool(wanted.kubernetes), "kubernetes"),
        (bool(wanted.objects), "objects"),
        (bool(wanted.loki), "loki"),
        (bool(wanted.elasticsearch), "elasticsearch"),
    ]
    found = [kind for is_asked, kind in kinds if is_asked]
    if len(found) != 1:
        raise InvalidRequestError(Message("errors.give-files-folders-slurm"))
    if wanted.new and (found[0] not in CHECKPOINTED or wanted.pods):
        raise InvalidRequestError(Message("errors.new-takes-source"))
    one = wanted.paths[0] if len(wanted.paths) == 1 else None
    if one is not None and one.is_file():
        with one.open("rb") as file:
            return "upload" if upload.is_collection(file) else found[0]
    return found[0]


def _of_upload(wanted: SourceQuestion) -> FoundJobs:
    path = wanted.arguments.paths[0]
    with path.open("rb") as file:
        return upload.find_jobs([upload.NamedFile(path.name, file)], wanted.spool, wanted.settings)


def _of_kubernetes(wanted: SourceQuestion) -> FoundJobs:
    given = wanted.arguments
    if given.pods:
        return kubernetes.find_jobs(given.pods[0], wanted.settings)
    asked = kubernetes_api.KubernetesQuery(given.kubernetes, wanted.since)
    return kubernetes_api.find_jobs(asked, wanted.spool, wanted.settings, wanted.answered)


def _of_slurm(wanted: SourceQuestion) -> FoundJobs:
    asked = slurm.SlurmQuery(wanted.since_or_day, users=wanted.arguments.users)
    if wanted.arguments.slurmrestd:
        return slurmrestd.find_jobs(wanted.arguments.slurmrestd, asked, wanted.settings, wanted.answered)
    return slurm.find_jobs(asked, wanted.settings, answered=wanted.answered)


def _of_ray(wanted: SourceQuestion) -> FoundJobs:
    asked = ray_jobs.RayJobQuery(wanted.arguments.ray, wanted.since)
    return ray_jobs.find_jobs(asked, wanted.spool, wanted.settings, wanted.answered)


def _of_objects(wanted: SourceQuestion) -> FoundJobs:
    asked = object_store.ObjectQuery(wanted.arguments.objects, wanted.since)
    return object_store.find_jobs(asked, wanted.spool, wanted.settings, wanted.answered)


def _of_loki(wanted: SourceQuestion) -> FoundJobs:
    given = wanted.arguments
    asked = loki.LokiQuery(given.loki, wanted.since_or_day, given.query, given.job_label)
    return loki.find_jobs(asked, wanted.spool, wanted.settings, wanted.answered)


def _of_elasticsearch(wanted: SourceQuestion) -> FoundJobs:
    given = wanted.arguments
    asked = elasticsearch.ElasticsearchQuery(
        given.elasticsearch, wanted.since_or_day, given.query, given.job_label
    )
    return elasticsearch.find_jobs(asked, wanted.spool, wanted.settings, wanted.answered)


READERS: Mapping[SourceKind, Callable[[SourceQuestion], FoundJobs]] = {
    "slurm": _of_slurm,
    "ray": _of_ray,
    "kubernetes": _of_kubernetes,
    "objects": _of_objects,
    "loki": _of_loki,
    "elasticsearch": _of_elasticsearch,
    "folder": lambda wanted: folder.find_all_jobs(wanted.arguments.paths, wanted.settings),
    "upload": _of_upload,
}
# Whose jobs have a key, so that a later run can leave out those that were answered.
CHECKPOINTED: frozenset[SourceKind] = frozenset(
    {"slurm", "ray", "kubernetes", "objects", "loki", "elasticsearch"}
)


def since_of(text: str, now: datetime) -> datetime | None:
    """Read a time such as `2026-11-20`, `2026-11-20T08:00+08:00`, `36h` or `7d` ago.

    Raises InvalidRequestError.
    """
    if not text:
        return None
    if span := _SPAN.fullmatch(text):
        try:
            return now - int(span["count"]) * _UNITS[span["unit"]]
        except OverflowError as error:
            raise InvalidRequestError(Message("errors.since-before-all-time", text=text)) from error
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise InvalidRequestError(Message("errors.since-write-2026-11", text=repr(text))) from error
