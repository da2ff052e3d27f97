"""Uploads as a client sends them, and what came of them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ingest.logs.inputs import jobs
from service.batches.sources.found import FoundJobs

DIED = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
SECRET = "export HF_TOKEN=" + "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"


@dataclass(frozen=True)
class Sent:
    """An upload that is held in memory."""

    name: str
    file: io.BytesIO


def sent(name: str, raw: bytes | str) -> Sent:
    """Make an upload."""
    return Sent(name, io.BytesIO(raw.encode() if isinstance(raw, str) else raw))


def zipped(files: Mapping[str, str]) -> bytes:
    """Pack files into a zip."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return held.getvalue()


def tarred(files: Mapping[str, str], mode: str = "w:gz", links: Mapping[str, str] | None = None) -> bytes:
    """Pack files, and links by the name that they lead to, into a tar."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=mode) as archive:  # type: ignore[call-overload]
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return held.getvalue()


def held(found: FoundJobs) -> dict[str, dict[str, str]]:
    """Read each job's files as a worker does: their texts by name, configurations with them."""
    read: dict[str, dict[str, str]] = {}
    for spec in found.specs:
        with jobs.open_jobs([Path(path) for path in spec.place.paths]) as source:
            texts = {Path(part.name).name: b"".join(part.chunks()).decode() for part in source.parts()}
            texts |= {name: raw.decode() for name, raw in source.configs}
        read[spec.name] = texts
    return read
