"""List an object store by its address: s3://, gs://, az://, oss://, http://.

Asked through fsspec, whose driver for the store takes credentials from where the store's own tools take them.
They need no more rights than to list and to read. A page of a folder at a time is listed.
https://filesystem-spec.readthedocs.io/en/latest/api.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from corpus.message import Message
from ingest.errors import InputError
from ingest.extras import advice
from ingest.logs.inputs.members import CONFIG, LIMITS, Skipped, kind_of
from ingest.logs.inputs.sources import LogSource
from service.batches.sources.found import shown_path
from service.batches.sources.object_files import ObjectFile
from service.batches.sources.object_pages import read_pages
from service.batches.sources.object_reading import ObjectStream
from service.schemas.errors import InvalidRequestError

# fsspec's driver for each kind of address. Others are not asked: among them are the files of this machine,
# and addresses that wrap others.
DRIVERS: Mapping[str, str] = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "oss": "ossfs",
    "http": "aiohttp",
    "https": "aiohttp",
}


@dataclass
class ObjectListing:
    """Objects by their names below the address, `most` of them, and what is left out."""

    most: int
    logs: dict[str, ObjectFile] = field(default_factory=dict)
    configs: dict[str, ObjectFile] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)
    seen: int = 0

    def add(self, found: ObjectFile) -> None:
        """Take an object, if it is a log or a configuration by its name."""
        kind = kind_of(found.name)
        if ".." in found.name.split("/"):
            self.skipped.add("unsafe_name", found.name)
        elif kind in (None, CONFIG):
            (self.configs if kind == CONFIG else self.logs)[found.name] = found
        else:
            self.skipped.add(str(kind), found.name)

    def is_full(self) -> bool:
        """Tell whether no more objects are taken, and note it."""
        if self.seen >= self.most:
            self.skipped.add("beyond_limit", f"more than {self.seen} objects")
        return self.seen >= self.most

    def last_written(self, names: Iterable[str]) -> datetime | None:
        """Give when the last of these logs was written; None where nothing tells."""
        return max((told for name in names if (told := self.logs[name].written)), default=None)

    def fingerprint(self, job: str, names: Iterable[str]) -> str:
        """Give what is equal for the same logs of the same job; empty where no time tells them apart."""
        logs = list(names)
        last = self.last_written(logs)
        return f"{job}|{last.isoformat()}|{sum(self.logs[log].size for log in logs)}" if last else ""


def check_url(url: str) -> str:
    """Give an address's kind, such as `s3`; raises InvalidRequestError where it is of none that is known."""
    kind, mark, rest = url.partition("://")
    if not mark or not rest.strip("/") or kind not in DRIVERS or "::" in url:
        raise InvalidRequestError(
            Message("errors.object-store-no-address", url=shown_path(url), kinds=", ".join(DRIVERS))
        )
    return kind


def open_store(url: str) -> tuple[Any, str]:
    """Give a store's driver and the path within it; raises InvalidRequestError."""
    kind = check_url(url)
    try:
        # Imported here: only this source needs it, and a light installation may lack it.
        import fsspec

        store, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) and error.name else DRIVERS[kind]
        raise InvalidRequestError(advice(missing if missing == "fsspec" else DRIVERS[kind])) from error
    except Exception as error:  # each driver raises what its own packages do
        raise refused(url, error) from error
    return store, root.rstrip("/")


def refused(url: str, error: Exception) -> InvalidRequestError:
    """Make the error of a store that did not give what it was asked."""
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        said = "there is nothing of this name"
    return InvalidRequestError(
        Message("errors.object-store-not-read", url=shown_path(url), reason=shown_path(said))
    )


def list_below(store: Any, root: str, begin: str, listed: ObjectListing) -> None:
    """List a folder and those in it, or the one object that the path names, until `listed` is full."""
    pending = [(begin, 0)]
    while pending:
        folder, depth = pending.pop()
        for page in read_pages(store, root, folder):
            for file in page.files:
                if listed.is_full():
                    return
                listed.seen += 1
                listed.add(file)
            for path in page.folders:
                if listed.is_full():
                    return
                listed.seen += 1
                name = path.removeprefix(root).strip("/")
                if depth + 1 >= LIMITS.depth or kind_of(f"{name}/"):
                    listed.skipped.add(kind_of(f"{name}/") or "too_deep", f"{name}/")
                else:
                    pending.append((path, depth + 1))


def reader_of(store: Any, listed: ObjectListing) -> Callable[[str, int], bytes]:
    """Give what reads the beginning of an object, unpacked; empty where it holds no text, or is not given."""

    def beginning(name: str, most: int) -> bytes:
        held = bytearray()
        try:
            with closing(LogSource(name, ObjectStream(store, listed.logs[name].path))) as source:
                for chunk in source.chunks():
                    held += chunk
                    if len(held) >= most:
                        break
        except InputError:
            return b""
        return bytes(held[:most])

    return beginning
