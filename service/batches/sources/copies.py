"""Take a job's files, which come as streams, into redacted copies; what cannot be read is told of."""

from __future__ import annotations

from contextlib import closing

from ingest.errors import BinaryInputError, BombInputError, EmptyInputError, InputError
from ingest.logs.inputs.members import CONFIG_BYTES, JobLimits, Member, Skipped
from ingest.logs.inputs.sources import LogSource
from service.batches.sources.grouping import JobFiles
from service.batches.sources.spool import SpooledJob


def label(name: str, job: JobFiles) -> str:
    """Name a file as it is named within its job."""
    return (
        name.removeprefix(f"{job.folder}/")
        if job.folder
        else name
        if job.folder == ""
        else name.rsplit("/", 1)[-1]
    )


def keep_log(member: Member, copies: SpooledJob, skipped: Skipped, limits: JobLimits) -> None:
    """Keep one log; raises TooLargeError, DiskFullError."""
    try:
        source = LogSource(member.label, member.open(), limits=limits)
    except (InputError, OSError):
        skipped.add("not_readable", member.label)
        return
    with closing(source):
        try:
            source.head()
        except InputError as error:
            skipped.add(_reason(error), member.label)
            return
        copies.log(member.name, source.chunks())
    for reason, told in source.omitted.items():
        skipped.add(reason, f"{member.label} ({told})")


def keep_config(member: Member, copies: SpooledJob, skipped: Skipped) -> None:
    """Keep a configuration, unless it is larger than those are; raises TooLargeError, DiskFullError."""
    try:
        with closing(member.open()) as stream:
            raw = b""
            while len(raw) <= CONFIG_BYTES and (piece := stream.read(CONFIG_BYTES + 1 - len(raw))):
                raw += piece
    except (InputError, OSError):
        skipped.add("not_readable", member.label)
        return
    if len(raw) > CONFIG_BYTES:
        skipped.add("configs", f"{member.label} (larger than {CONFIG_BYTES >> 20} MiB)")
        return
    copies.config(member.name, raw)


def _reason(error: InputError) -> str:
    kinds: tuple[tuple[type[InputError], str], ...] = (
        (EmptyInputError, "empty"),
        (BinaryInputError, "binary"),
        (BombInputError, "beyond_limit"),
    )
    return next((reason for kind, reason in kinds if isinstance(error, kind)), "not_readable")
