"""Jobs out of what a client sends: an archive, many files, or JSON lines; kept as redacted copies.

Of an archive, each job is what `grouping` says of its names. Of several files likewise, and an archive among
them is one job's. A line of JSON is a job: `{"name": ..., "log": ..., "config": ..., "nodes": ..., ...}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import PurePosixPath
from typing import Annotated, BinaryIO, Protocol

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveInt,
    ValidationError,
)

from corpus.message import Message
from ingest.errors import InputError
from ingest.logs.inputs.archives import Contents
from ingest.logs.inputs.compression import codec_of
from ingest.logs.inputs.files import BorrowedStream, PeekedStream
from ingest.logs.inputs.members import CONFIG, LIMITS, JobLimits, Member, Skipped, kind_of
from ingest.logs.inputs.streams import UNSUSPICIOUS, Decompressed, Readable
from ingest.logs.inputs.tarballs import is_tar, read_tar
from ingest.logs.inputs.zips import BEGINS, read_zip
from service.batches.sources.copies import keep_config, keep_log, label
from service.batches.sources.found import FoundJobs, check_limits, collect_jobs, shown_path
from service.batches.sources.grouping import JobFiles, group_files
from service.batches.sources.spool import BatchSpool
from service.schemas.diagnosis import EndState, ExitCode, Outcome, SignalName
from service.schemas.errors import InvalidRequestError, TooLargeError
from service.schemas.records import JobSpec
from service.settings import Settings

# A line of JSON holds a log as text; larger ones come as files.
LONGEST_LINE = 64 << 20
_PEEKED = 1 << 16
# Each becomes a file of its own; a line of 64 MiB could name millions.
MAX_CONFIGS = 100


class SentFile(Protocol):
    """A file that was sent: the client's name of it, only ever a label, and what it holds, at its begin."""

    @property
    def name(self) -> str:
        """The client's name of it."""

    @property
    def file(self) -> BinaryIO:
        """What it holds; can seek."""


@dataclass(frozen=True)
class NamedFile:
    """A file by a name of ours."""

    name: str
    file: BinaryIO


class SentJob(BaseModel):
    """A line of an upload in JSON lines."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(default="", max_length=1000)
    log: str = Field(min_length=1)
    config: str | Annotated[dict[str, str], Field(max_length=MAX_CONFIGS)] = ""
    nodes: PositiveInt | None = None
    gpus: PositiveInt | None = None
    gpu_hours: NonNegativeFloat | None = None
    started: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    node_names: tuple[str, ...] = Field(default=(), max_length=10_000)
    exit_code: ExitCode = None
    signal: SignalName = None
    state: EndState = None

    @property
    def outcome(self) -> Outcome:
        """How the job ended, as far as its line says."""
        return Outcome(exit_code=self.exit_code, signal=self.signal, state=self.state)

    @property
    def configs(self) -> dict[str, str]:
        """The configurations by name; a bare text may be any of them."""
        return (
            self.config
            if isinstance(self.config, dict)
            else {"config.sh": self.config}
            if self.config
            else {}
        )


@dataclass
class _SentFiles:
    """What was sent, as it is taken apart: every file's opener by name, and what is left out."""

    settings: Settings
    spool: BatchSpool
    skipped: Skipped = field(default_factory=Skipped)
    logs: dict[str, Callable[[], Readable]] = field(default_factory=dict)
    configs: dict[str, Callable[[], Readable]] = field(default_factory=dict)
    archives: dict[str, Contents] = field(default_factory=dict)
    opened: list[Contents] = field(default_factory=list)

    @property
    def limits(self) -> JobLimits:
        most = self.settings.max_unpacked_mb << 20
        return replace(LIMITS, files=10 * self.settings.max_jobs, bytes=most, spool=most)

    def add(self, member: Member, *, config: bool) -> None:
        """Take a file, unless its name leads elsewhere."""
        name = member.name.replace("\\", "/")
        if name.startswith("/") or ".." in name.split("/"):
            self.skipped.add("unsafe_name", name)
            return
        name = "/".join(part for part in name.split("/") if part not in ("", "."))
        (self.configs if config else self.logs)[name] = member.open

    def close(self) -> None:
        for contents in self.opened:
            contents.close()


def find_jobs(uploads: Sequence[SentFile], spool: BatchSpool, settings: Settings) -> FoundJobs:
    """Take apart what was sent, keeping redacted copies.

    Raises InvalidRequestError, TooLargeError, DiskFullError.

    Where it raises, no copy stays. The files stay open: they are the caller's.
    """
    try:
        return _read(uploads, spool, settings)
    except BaseException:
        spool.discard()
        raise


def _read(uploads: Sequence[SentFile], spool: BatchSpool, settings: Settings) -> FoundJobs:
    if not uploads:
        raise InvalidRequestError(Message("errors.no-file-sent"))
    spool.limit(max(UNSUSPICIOUS, LIMITS.ratio * sum(upload.file.seek(0, 2) for upload in uploads)))
    only = uploads[0] if len(uploads) == 1 else None
    if only is not None and is_lines(only.file):
        return _lines(only, spool, settings)
    sent = _SentFiles(settings, spool)
    with closing(sent):
        if only is not None and (contents := _archive(only, sent)):
            for member in contents.logs:
                sent.add(member, config=False)
            for member in contents.configs:
                sent.add(member, config=True)
            _add_skipped(contents, sent)
        else:
            for upload in _named_apart(uploads):
                _file(upload, sent)
        name = shown_path(PurePosixPath((only or uploads[0]).name).name)
        found = group_files(sent.logs, sent.configs, name)
        check_limits(len(found), name, settings, sent.skipped.omitted)
        specs = [spec for job in found if (spec := _job(job, sent))]
        check_limits(len(specs), name, settings, sent.skipped.omitted)
        return collect_jobs(specs, sent.skipped.omitted)


def _named_apart(uploads: Sequence[SentFile]) -> Iterator[SentFile]:
    """Give each file a name of its own: a second `a.log` is `a (2).log`, and a job beside the first."""
    taken = {upload.name for upload in uploads}
    seen: set[str] = set()
    for upload in uploads:
        name = upload.name
        if name in seen:
            folder, slash, last = name.rpartition("/")
            stem, dot, ending = last.partition(".")
            tries = (f"{folder}{slash}{stem} ({number}){dot}{ending}" for number in count(2))
            name = next(made for made in tries if made not in taken)
        seen.add(name)
        taken.add(name)
        yield upload if name == upload.name else NamedFile(name, upload.file)


def is_collection(file: BinaryIO) -> bool:
    """Tell whether a file is an archive or JSON lines of jobs, rather than one log."""
    if is_lines(file):
        return True
    file.seek(0)
    stream = PeekedStream(BorrowedStream(file))
    codec = codec_of(stream.head)
    inner = PeekedStream(Decompressed(stream, codec, LIMITS.ratio)) if codec else stream
    file.seek(0)
    return stream.head.startswith(BEGINS) or is_tar(inner.head)


def is_lines(file: BinaryIO) -> bool:
    """Tell whether a file is JSON lines of jobs: its first line has a name and a log.

    A log in JSON has no name.
    """
    file.seek(0)
    head = file.read(_PEEKED).lstrip()
    file.seek(0)
    if not head.startswith(b"{"):
        return False
    try:
        first = json.loads(head.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        # Cut within the first log's text.
        return b"\n" not in head and b'"log"' in head and b'"name"' in head
    return isinstance(first, dict) and {"name", "log"} <= first.keys()


def _archive(upload: SentFile, sent: _SentFiles) -> Contents | None:
    """List what an archive holds; None where the file is none."""
    contents = Contents(sent.limits, Skipped())
    file = upload.file
    try:
        if not _is_listed(shown_path(upload.name), file, contents):
            return None
    except InputError as error:
        raise InvalidRequestError(str(error)) from error
    finally:
        file.seek(0)
    sent.opened.append(contents)
    return contents


def _is_listed(name: str, file: BinaryIO, contents: Contents) -> bool:
    """List a zip, a tar or a compressed tar into `contents`; False where the file is none of them."""
    file.seek(0)
    stream = PeekedStream(BorrowedStream(file))
    if stream.head.startswith(BEGINS):
        read_zip(name, file, contents)
        return True
    if is_tar(stream.head):
        file.seek(0)
        read_tar(name, stream, file, contents)
        return True
    codec = codec_of(stream.head)
    inner = PeekedStream(Decompressed(stream, codec, LIMITS.ratio)) if codec else None
    if inner is None or not is_tar(inner.head):
        return False
    read_tar(name, inner, None, contents)
    return True


def _add_skipped(contents: Contents, sent: _SentFiles) -> None:
    """Count the parts of an archive that were left out among those of the whole upload."""
    for reason, times in contents.skipped.counts.items():
        first, *more = contents.skipped.names[reason]
        sent.skipped.add(reason, first, times - len(more))
        for name in more:
            sent.skipped.add(reason, name)


def _file(upload: SentFile, sent: _SentFiles) -> None:
    """Take one of several files; an archive among them is one job's log of many parts."""
    kind = kind_of(upload.name.replace("\\", "/"))
    contents = _archive(upload, sent) if kind in (None, "nested_archive") else None
    if contents:
        _add_skipped(contents, sent)
        sent.archives[upload.name] = contents
    if kind in (None, CONFIG) or contents:
        sent.add(Member(upload.name, partial(_begin, upload.file)), config=kind == CONFIG)
    else:
        sent.skipped.add(str(kind), upload.name)


def _begin(file: BinaryIO) -> Readable:
    file.seek(0)
    return BorrowedStream(file)


def _job(job: JobFiles, sent: _SentFiles) -> JobSpec | None:
    copies = sent.spool.begin()
    for log in job.logs:
        parts = sent.archives[log].logs if log in sent.archives else [Member(label(log, job), sent.logs[log])]
        for part in parts:
            keep_log(part, copies, sent.skipped, sent.limits)
    if not copies.logs:
        return None
    for config in job.configs:
        keep_config(Member(label(config, job), sent.configs[config]), copies, sent.skipped)
    return JobSpec(name=shown_path(job.name), place=copies.place())


def _lines(upload: SentFile, spool: BatchSpool, settings: Settings) -> FoundJobs:
    name = shown_path(PurePosixPath(upload.name).name)
    skipped = Skipped()
    specs: list[JobSpec] = []
    for number, raw in _rows(upload.file):
        check_limits(len(specs) + 1, name, settings, {})
        try:
            sent = SentJob.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")
            skipped.add("not_valid", f"line {number} ({reason})")
            continue
        specs.append(_sent_job(sent, number, spool))
    check_limits(len(specs), name, settings, skipped.omitted)
    return collect_jobs(specs, skipped.omitted)


def _rows(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    for number in count(1):
        row = file.readline(LONGEST_LINE + 1)
        if len(row) > LONGEST_LINE:
            raise TooLargeError(
                Message("errors.line-longer-mib-send", number=number, longest_line=LONGEST_LINE >> 20)
            )
        if not row:
            return
        if row.strip():
            yield number, row


def _sent_job(sent: SentJob, number: int, spool: BatchSpool) -> JobSpec:
    copies = spool.begin()
    copies.log("job.log", [sent.log.encode("utf-8", "surrogatepass")])
    for name, text in sent.configs.items():
        copies.config(name, text.encode("utf-8", "surrogatepass"))
    given = sent.model_dump(include={"nodes", "gpus", "gpu_hours", "started", "ended"})
    return JobSpec(
        name=shown_path(sent.name or f"line {number}"),
        place=copies.place(),
        node_names=tuple(map(shown_path, sent.node_names)),
        outcome=sent.outcome.if_given,
        **given,
    )
