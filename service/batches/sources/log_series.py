"""Jobs of a store that keeps lines under labels or fields: which of them tell the job, its files, its node.

Collectors call the same thing by many names (`pod`, `k8s.pod.name`, `kubernetes.pod_name`), all of which end
alike.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from ingest.errors import EmptyInputError, InputError
from ingest.logs.inputs.members import Skipped
from ingest.logs.inputs.sources import LogSource
from service.batches.sources import kubernetes
from service.batches.sources.copies import PieceStream
from service.batches.sources.found import shown_path
from service.batches.sources.spool import SpooledJob
from service.schemas.errors import InvalidRequestError

# Lines of a job's file that are taken from its beginning, and as many from its end; a page is held at a time,
# of the end all.
END_LINES = 200_000
# And so many signs of each end: lines may be records of kilobytes.
END_BYTES = 64 << 20

Role = Literal["job", "namespace", "pod", "container", "file", "node", "service"]
Labels = Mapping[str, str]
_ROLES: Mapping[Role, re.Pattern[str]] = {
    "namespace": re.compile(r"(?:^|(?<!data_stream)_)namespace(?:_name)?$"),
    "pod": re.compile(r"(?:^|_)pod(?:_name)?$"),
    "container": re.compile(r"(?:^|_)container(?:_name)?$"),
    "file": re.compile(r"(?:^|_)(?:filename|file_path)$"),
    "node": re.compile(r"(?:^|_)(?:node(?:_?name)?|host(?:_?name)?)$"),
    "service": re.compile(r"^(?:service(?:_name)?|app|job|unit|systemd_unit)$"),
}
# What tells a job's files apart, beside the labels that name the job.
OTHER_ROLES = tuple(_ROLES)
_SIGNS = re.compile(r"[^a-z0-9]+")


def _plain(name: str) -> str:
    return _SIGNS.sub("_", name.removesuffix(".keyword").lower())


# By which operators and schedulers say whose output it is; a store's names have other signs between words.
_JOBS = re.compile("(?:^|_)(?:" + "|".join(map(_plain, (*kubernetes.JOB_LABELS, "job_id", "jobid"))) + ")$")


class Line(NamedTuple):
    """A line of a store; `order` tells when, in the store's own unit, and may be equal for several."""

    order: int
    text: str


@dataclass(frozen=True)
class LineSeries:
    """Lines with the same labels, and when they began and ended, where the store tells."""

    labels: Labels
    began: datetime | None = None
    ended: datetime | None = None


@dataclass(frozen=True)
class SeriesJob:
    """A job: its name, and its files by their names, each of one or more series."""

    name: str
    files: Mapping[str, Sequence[LineSeries]]

    @property
    def series(self) -> Iterator[LineSeries]:
        """All of its series."""
        for each in self.files.values():
            yield from each

    @property
    def nodes(self) -> tuple[str, ...]:
        """The machines that it ran on."""
        found = (told_of(each.labels, "node") for each in self.series)
        return tuple(dict.fromkeys(shown_path(node) for node in found if node))


def role(name: str) -> Role | None:
    """Tell what a label or field says of a line; None where nothing that is used here."""
    plain = _plain(name)
    if _JOBS.search(plain):
        return "job"
    return next((kind for kind, pattern in _ROLES.items() if pattern.search(plain)), None)


def told_of(labels: Labels, wanted: Role) -> str:
    """Give the value of a role; of several names the one that is shortest, empty where there is none."""
    names = sorted((name for name in labels if labels[name] and role(name) == wanted), key=_rank)
    return labels[names[0]] if names else ""


def _rank(name: str) -> tuple[int, str]:
    return len(name), name


def group_series(series: Iterable[LineSeries], job_label: str, skipped: Skipped) -> list[SeriesJob]:
    """Group series by their job, in the order of names.

    By `job_label` where it is given, else by what they say; pods that no label calls a job's are grouped by
    their names.
    """
    found: dict[str, dict[str, list[LineSeries]]] = defaultdict(lambda: defaultdict(list))
    pods: dict[tuple[str, str], list[LineSeries]] = defaultdict(list)
    for each in series:
        space, pod = told_of(each.labels, "namespace"), told_of(each.labels, "pod")
        name = each.labels.get(job_label, "") if job_label else told_of(each.labels, "job")
        if kubernetes.is_own(space):
            skipped.add("of_kubernetes_itself", f"{space}/{pod}")
        elif name:
            found[f"{space}/{name}" if space else name][_file(each.labels)].append(each)
        elif job_label:
            skipped.add("without_job_label", _file(each.labels))
        elif pod:
            pods[space or "default", pod].append(each)
        else:
            found[told_of(each.labels, "file") or told_of(each.labels, "service") or "job"][
                _file(each.labels)
            ].append(each)
    rows = [kubernetes.Pod(space, pod, f"{space}/{pod}") for space, pod in pods]
    for job, keys in kubernetes.group_pods(rows).items():
        for key in keys:
            space, _, pod = key.partition("/")
            for each in pods[space, pod]:
                found[job][_file(each.labels)].append(each)
    return [SeriesJob(name, files) for name, files in sorted(found.items())]


def _file(labels: Labels) -> str:
    parts = [part for wanted in ("pod", "container") if (part := told_of(labels, wanted))]
    path = told_of(labels, "file").strip("/")
    # A file within a pod is another one than what its container prints.
    return "/".join(parts or [told_of(labels, "service") or "output"]) if not path or parts else path


def both_ends(pages: Callable[[bool], Iterator[Sequence[Line]]], cut: Callable[[], None]) -> Iterator[bytes]:
    """Yield a file's lines, page by page; of one with more than twice END_LINES the beginning and the end.

    `pages` gives them from the beginning, or where it is told so from the end, each page in that order;
    `cut` is called where some are left out.
    """
    count = size = 0
    had = Counter[Line]()
    for page in pages(False):
        yield _text(page)
        count, size = count + len(page), size + _size(page)
        last = page[-1].order if page else -1
        # More lines of the last moment may follow than were had.
        of_moment = (line for line in (*had.elements(), *page) if line.order == last)
        had = Counter(of_moment) if page else had
        if count >= END_LINES or size >= END_BYTES:
            break
    else:
        return
    tail: list[Line] = []
    size = 0
    for page in pages(True):
        fresh = [line for line in page if line.order > last or (line.order == last and _is_fresh(line, had))]
        tail += fresh
        size += _size(fresh)
        if page and page[-1].order < last:
            break
        if len(tail) >= END_LINES or size >= END_BYTES:
            cut()
            break
    tail.reverse()
    yield _text(tail)


def _is_fresh(line: Line, had: Counter[Line]) -> bool:
    """Tell whether a line was not had, and count one that was as met."""
    is_had = had[line] > 0
    had[line] -= is_had
    return not is_had


def _size(lines: Iterable[Line]) -> int:
    return sum(len(line.text) for line in lines)


def _text(lines: Sequence[Line]) -> bytes:
    return "".join(f"{line.text.removesuffix(chr(10))}\n" for line in lines).encode("utf-8", "replace")


def keep_file(
    name: str, pages: Callable[[bool], Iterator[Sequence[Line]]], copies: SpooledJob, skipped: Skipped
) -> None:
    """Keep a file of a job; what is refused or has no text is told, and the job's others are kept."""

    def cut() -> None:
        skipped.add("middle_of_long_logs", shown_path(name))

    def checked() -> Iterator[bytes]:
        for piece in both_ends(pages, cut):
            copies.spool.check()
            yield piece

    try:
        source = LogSource(name, PieceStream(checked(), "the store"))
        with closing(source):
            source.head()
            copies.log(name, source.chunks())
    except EmptyInputError:
        return
    except (InvalidRequestError, InputError) as error:
        skipped.add("logs_not_given", f"{shown_path(name)} ({shown_path(str(error))})")
        return
    for reason, told in source.omitted.items():
        skipped.add(reason, f"{shown_path(name)} ({told})")
