"""Take a job's files, which come as streams, into redacted copies; what cannot be read is told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import httpx

from ingest.errors import BinaryInputError, BombInputError, DamagedArchiveError, EmptyInputError, InputError
from ingest.logs.inputs.members import CONFIG_BYTES, JobLimits, Member, Skipped
from ingest.logs.inputs.sources import LogSource
from service.batches.sources.grouping import JobFiles
from service.batches.sources.spool import SpooledJob, nothing


class PieceStream:
    """What a server gives in pieces, read as a file is; `giver` is how an error calls the server.

    `check` is called with each piece, and raises where it is to end: a server may give a byte a second.
    """

    def __init__(self, pieces: Iterator[bytes], giver: str, check: Callable[[], None] = nothing) -> None:
        self._pieces = pieces
        self._giver = giver
        self._check = check
        self._held = b""

    def read(self, size: int, /) -> bytes:
        """Give the next bytes; raises DamagedArchiveError where the connection broke."""
        try:
            while not self._held and (piece := next(self._pieces, None)) is not None:
                self._held = piece
                self._check()
        except (httpx.HTTPError, ValueError) as error:
            raise DamagedArchiveError(
                f"{self._giver} did not give all of it ({type(error).__name__})"
            ) from error
        piece, self._held = self._held[:size], self._held[size:]
        return piece

    def close(self) -> None:
        """Leave the connection to its owner."""


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
