"""One job's output as a whole.

A log, a folder of them (a Ray session, a file a rank), an archive, or a pipe.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from corpus.message import Message
from ingest.artefacts.file_heads import HEAD, is_also_log, is_dump
from ingest.errors import (
    ArchiveInputError,
    BinaryInputError,
    BrokenArchiveError,
    EmptyInputError,
    InputError,
    PartialInputError,
)
from ingest.logs.inputs.archives import Contents, read_folder
from ingest.logs.inputs.compression import codec_of
from ingest.logs.inputs.encodings import encoding_of
from ingest.logs.inputs.files import (
    GrowingFile,
    PeekedStream,
    check_given,
    open_found,
    open_given,
    regular_size,
)
from ingest.logs.inputs.members import CONFIG_BYTES, LIMITS, MAX_CONFIGS, JobLimits, Member, Skipped, order
from ingest.logs.inputs.sources import Budget, LogSource, refuse_binary, standard_input
from ingest.logs.inputs.streams import UNSUSPICIOUS, Decompressed
from ingest.logs.inputs.tarballs import is_tar, read_tar
from ingest.logs.inputs.zips import BEGINS, read_zip

# What is wrong with a part of a job, in the words of `omitted`.
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (EmptyInputError, "empty"),
    (BinaryInputError, "binary"),
    (ArchiveInputError, "nested_archive"),
    (BrokenArchiveError, "damaged_archive"),
    (PartialInputError, "damaged_archive"),
    (OSError, "not_readable"),
)


@dataclass
class JobSource:
    """All that one job wrote, its parts in order: the driver's log first, then by natural sort.

    `configs` are the job's own scripts and settings, by name, `notebooks` the files of those that were read
    as logs. `omitted` says what was left out and why, and
    is complete when the last part was read, as `series` is: the numbers that files beside the logs hold, by
    name and step.
    """

    name: str
    omitted: dict[str, int | str] = field(default_factory=dict)
    configs: list[tuple[str, bytes]] = field(default_factory=list)
    notebooks: list[tuple[str, bytes]] = field(default_factory=list, repr=False)
    members: list[Member] = field(default_factory=list, repr=False)
    limits: JobLimits = field(default=LIMITS, repr=False)
    budget: Budget | None = field(default=None, repr=False)
    single: LogSource | None = field(default=None, repr=False)
    on_close: list[Callable[[], None]] = field(default_factory=list, repr=False)
    skipped: Skipped = field(default_factory=Skipped, repr=False)
    artefacts: list[Member] = field(default_factory=list, repr=False)
    series: dict[str, dict[int, float]] = field(default_factory=dict, repr=False)

    def parts(self) -> Iterator[LogSource]:
        """Yield each readable file, open; it is closed when the next is asked for.

        Raises InputError where nothing can be read; a damaged part only ends itself.
        """
        try:
            yield from [self.single] if self.single else self._parts()
        finally:
            self.notebooks += self.single.notebooks if self.single else []
            self.close()

    def _parts(self) -> Iterator[LogSource]:
        count = 0
        for member in self.members:
            source = self._opened(member)
            if source is None:
                continue
            count += 1
            yield from self._closed_after_use(source)
        for told in self._told_by_artefacts():
            count += 1
            yield from self._closed_after_use(told)
        if not count:
            raise _nothing(self.name, self.skipped)

    def _told_by_artefacts(self) -> Iterable[LogSource]:
        if not self.artefacts:
            return ()
        # Few jobs have any, and an answer does not wait for what reads them.
        from ingest.logs.inputs.artefacts import read_artefacts

        return read_artefacts(self.artefacts, self.skipped, self.series)

    def _closed_after_use(self, source: LogSource) -> Iterator[LogSource]:
        """Give a log until the next one is asked for, and note what it left out."""
        try:
            yield source
        finally:
            source.close()
            self.notebooks += source.notebooks
            for reason, told in source.omitted.items():
                self.skipped.add(reason, f"{source.name} ({told})")

    def _opened(self, member: Member) -> LogSource | None:
        if self.budget and self.budget.left <= 0:
            self.skipped.add("beyond_limit", member.label)
            return None
        source = None
        try:
            source = LogSource(member.label, member.open(), limits=self.limits, budget=self.budget)
            head = source.head()[:HEAD]
            if is_dump(head):
                self.artefacts.append(member)
                if not is_also_log(head):
                    source.close()
                    return None
        except (InputError, OSError) as error:
            if source is not None:
                source.close()
            if isinstance(error, BinaryInputError):
                # Pickles are told apart when they are read.
                self.artefacts.append(member)
                return None
            reason = _reason(error)
            self.skipped.add(reason, member.label)
            return None
        return source

    def close(self) -> None:
        """Close the archive."""
        if self.single:
            self.single.close()
        while self.on_close:
            self.on_close.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_job(path: Path, limits: JobLimits = LIMITS) -> JobSource:
    """Open a log, a folder of logs, or an archive of them.

    Raises InputError where there is nothing to read.
    """
    name = str(path)
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where a name is too long
        return _job(name, limits, lambda contents: read_folder(path, contents))
    raw = open_given(path)
    size = regular_size(raw)
    stream = PeekedStream(GrowingFile(raw, size))
    if size is not None and stream.head.startswith(BEGINS):
        return _job(name, limits, lambda contents: read_zip(name, raw, contents), size, raw.close)
    if size is not None and is_tar(stream.head):
        raw.seek(0)
        return _job(name, limits, lambda contents: read_tar(name, stream, raw, contents), size, raw.close)
    head = stream.head
    if size is not None and (codec := codec_of(head)):
        head = PeekedStream(Decompressed(stream, codec, limits.ratio)).head
        raw.seek(0)
        stream = PeekedStream(GrowingFile(raw, size))
    if size is not None and is_dump(head):
        raw.close()
        member = Member(path.name, partial(_reopened, path))
        is_log = is_also_log(head)
        return _job(
            name, limits, lambda contents: (contents.logs if is_log else contents.artefacts).append(member)
        )
    return _streamed(name, stream, limits)


def open_jobs(paths: Sequence[Path], limits: JobLimits = LIMITS) -> JobSource:
    """Open several files or folders as one job's output; raises InputError where one is not there."""
    if len(paths) == 1:
        return open_job(paths[0], limits)
    home = os.path.commonpath([path.absolute().parent for path in paths])
    return _job(f"{home} ({len(paths)} files)", limits, lambda contents: _gather(paths, home, contents))


def open_named(files: Sequence[tuple[str, Path]], name: str, limits: JobLimits = LIMITS) -> JobSource:
    """Open files as one job's output under names that are not those of their paths.

    Raises InputError where one is not there.
    """

    def find(contents: Contents) -> None:
        for label, path in files:
            check_given(path)
            contents.add(label, partial(_reopened, path))

    return _job(name, limits, find)


def _reopened(path: Path) -> GrowingFile:
    raw = open_given(path)
    return GrowingFile(raw, regular_size(raw))


def _gather(paths: Sequence[Path], home: str, contents: Contents) -> None:
    for path in paths:
        if os.path.isdir(path):  # noqa: PTH112 - as above
            read_folder(path, contents)
        else:
            check_given(path)
            contents.add(os.path.relpath(path, home), partial(open_found, str(path)))


def open_stdin(limits: JobLimits = LIMITS) -> JobSource:
    """Read standard input: a log, a tar, or either compressed.

    Raises InputError where there is nothing to read.
    """
    return _streamed("stdin", standard_input(), limits)


def _streamed(name: str, stream: PeekedStream, limits: JobLimits) -> JobSource:
    """Open what can be read once: a tar or a log, compressed or not."""
    codec = codec_of(stream.head)
    inner = PeekedStream(Decompressed(stream, codec, limits.ratio)) if codec else stream
    if is_tar(inner.head):
        return _job(name, limits, lambda contents: read_tar(name, inner, None, contents), None, inner.close)
    source = LogSource(name, inner, limits=limits)
    try:
        source.head()
    except InputError:
        source.close()
        raise
    return JobSource(name, source.omitted, limits=limits, single=source)


def _job(
    name: str,
    limits: JobLimits,
    find: Callable[[Contents], None],
    size: int | None = None,
    close: Callable[[], None] | None = None,
) -> JobSource:
    contents = Contents(limits, Skipped())
    job = JobSource(name, contents.skipped.omitted, limits=limits, skipped=contents.skipped)
    if close:
        job.on_close.append(close)
    try:
        find(contents)
        job.on_close.append(contents.close)
        job.configs = _configs(contents)
        job.members = sorted(contents.logs, key=lambda member: order(member.name))
        job.artefacts = contents.artefacts
        if not (job.members or job.artefacts):
            raise _nothing(name, contents.skipped)
    except InputError:
        job.close()
        raise
    most = limits.bytes if size is None else min(limits.bytes, max(UNSUSPICIOUS, limits.ratio * size))
    job.budget = Budget(most)
    return job


def _configs(contents: Contents) -> list[tuple[str, bytes]]:
    """Read the job's own configs; those that stand near the top are likelier to be its own."""
    found = sorted(contents.configs, key=lambda member: (member.name.count("/"), member.name))
    for member in found[MAX_CONFIGS:]:
        contents.skipped.add("configs", member.name)
    read = ((member, _config(member, contents.skipped)) for member in found[:MAX_CONFIGS])
    return [(member.label, text) for member, text in read if text]


def _beginning(member: Member) -> bytes:
    """Read as much of a configuration as may be kept, and a byte more where there is more."""
    text = b""
    with closing(member.open()) as stream:
        while len(text) <= CONFIG_BYTES and (piece := stream.read(CONFIG_BYTES + 1 - len(text))):
            text += piece
    return text


def _config(member: Member, skipped: Skipped) -> bytes:
    try:
        text = _beginning(member)
        refuse_binary(member.label, text)
    except (InputError, OSError) as error:
        skipped.add(_reason(error), member.label)
        return b""
    if len(text) > CONFIG_BYTES:
        skipped.add("configs", f"{member.label} (larger than {CONFIG_BYTES >> 20} MiB)")
        return b""
    encoding = encoding_of(text)
    return text.decode(encoding, "replace").encode("utf-8", "replace") if encoding else text


def _reason(error: Exception) -> str:
    return next(word for kind, word in _REASONS if isinstance(error, kind))


def _nothing(name: str, skipped: Skipped) -> EmptyInputError:
    there = f"It holds {skipped}." if skipped.omitted else Message("files.holds-nothing")
    return EmptyInputError(Message("errors.holds-no-log-read", name=name, there=there))
