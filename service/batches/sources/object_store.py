"""Jobs out of an object store, by its address: s3://, gs://, az://, oss://, http://; kept as redacted copies.

Asked through fsspec, whose driver for the store takes credentials from where the store's own tools take them.
They need no more rights than to list and to read. A folder at a time is listed, and logs are read piece by
piece, the beginnings of the next ones ahead of time: what takes long is the way there and back.
https://filesystem-spec.readthedocs.io/en/latest/api.html
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

from corpus.message import Message
from ingest.errors import DamagedArchiveError, InputError
from ingest.extras import advice
from ingest.logs.inputs.members import CONFIG, LIMITS, Member, Skipped, kind_of
from ingest.logs.inputs.sources import LogSource
from service.batches.sources.copies import keep_config, keep_log, label
from service.batches.sources.found import FoundJobs, check_limits, collect_jobs, shown_path
from service.batches.sources.grouping import JobFiles, group_files
from service.batches.sources.ray_history import split_sessions
from service.batches.sources.ray_jobs import STATUS_LOG
from service.batches.sources.spool import BatchSpool
from service.schemas.errors import InvalidRequestError
from service.schemas.records import JobSpec
from service.settings import Settings

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
# Seconds before a request that failed is made again.
PAUSES = (0.5, 2.0, 6.0)
BLOCK = 1 << 20
# So many logs are begun ahead of the one that is read, each with its first block.
AHEAD = 8
# Asking again does not help.
_FINAL = (
    FileNotFoundError,
    PermissionError,
    NotADirectoryError,
    ImportError,
    NotImplementedError,
    ValueError,
)
# Where drivers tell when an object was written.
_WRITTEN = ("LastModified", "last_modified", "mtime", "updated", "created")

Given = TypeVar("Given")


@dataclass(frozen=True)
class ObjectQuery:
    """What is asked for: jobs below an address, of which a log was written since a time."""

    url: str
    since: datetime | None = None


class _Object(NamedTuple):
    name: str
    path: str
    written: datetime | None


@dataclass
class _Listed:
    """Objects by their names below the address, and what is left out."""

    most: int
    logs: dict[str, _Object] = field(default_factory=dict)
    configs: dict[str, _Object] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=Skipped)
    seen: int = 0

    def add(self, found: _Object) -> None:
        """Take an object, if it is a log or a configuration by its name."""
        kind = kind_of(found.name)
        if ".." in found.name.split("/"):
            self.skipped.add("unsafe_name", found.name)
        elif kind in (None, CONFIG):
            (self.configs if kind == CONFIG else self.logs)[found.name] = found
        else:
            self.skipped.add(str(kind), found.name)


def find_jobs(asked: ObjectQuery, spool: BatchSpool, settings: Settings) -> FoundJobs:
    """Copy the logs of all jobs below an address; raises InvalidRequestError, TooLargeError, DiskFullError.

    Where it raises, no copy stays.
    """
    store, root = _opened(asked.url)
    try:
        return _read(store, root, asked, spool, settings)
    except BaseException:
        spool.discard()
        raise


def check_url(url: str) -> str:
    """Give an address's kind, such as `s3`; raises InvalidRequestError where it is of none that is known."""
    kind, mark, rest = url.partition("://")
    if not mark or not rest.strip("/") or kind not in DRIVERS or "::" in url:
        raise InvalidRequestError(
            Message("errors.object-store-no-address", url=shown_path(url), kinds=", ".join(DRIVERS))
        )
    return kind


def _opened(url: str) -> tuple[Any, str]:
    """Give a store's driver and the path within it."""
    kind = check_url(url)
    try:
        # Imported here: only this source needs it, and a light installation may lack it.
        import fsspec

        store, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) and error.name else DRIVERS[kind]
        raise InvalidRequestError(advice(missing if missing == "fsspec" else DRIVERS[kind])) from error
    except Exception as error:  # each driver raises what its own packages do
        raise _refused(url, error) from error
    return store, root.rstrip("/")


def _refused(url: str, error: Exception) -> InvalidRequestError:
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        said = "there is nothing of this name"
    return InvalidRequestError(
        Message("errors.object-store-not-read", url=shown_path(url), reason=shown_path(said))
    )


def _read(store: Any, root: str, asked: ObjectQuery, spool: BatchSpool, settings: Settings) -> FoundJobs:
    listed = _Listed(10 * settings.max_jobs)
    try:
        if asked.url.startswith("http") and not asked.url.endswith("/"):
            # A web server lists by links in a page; what is no folder is not searched for any.
            listed.add(_Object(root.rpartition("/")[2], root, None))
        else:
            _list(store, root, listed)
    except Exception as error:
        raise _refused(asked.url, error) from error
    where = shown_path(root.rpartition("/")[2])
    grouped = _wanted(group_files(listed.logs, listed.configs, where), asked, listed)
    ended = split_sessions(grouped, listed.logs, partial(_beginning, store, listed))
    for made in ended:
        if not made.has_failed:
            listed.skipped.add("not_failed", made.files.name)
    found = [made for made in ended if made.has_failed]
    check_limits(len(found), asked.url, settings, listed.skipped.omitted)
    most = settings.max_unpacked_mb << 20
    limits = changed(LIMITS, files=10 * settings.max_jobs, bytes=most, spool=most)
    specs: list[JobSpec] = []
    with _reading(store, [listed.logs[log].path for made in found for log in made.files.logs]) as open_next:
        for made in found:
            job, copies = made.files, spool.begin()
            for log in job.logs:
                keep_log(Member(label(log, job), open_next), copies, listed.skipped, limits)
            if made.end.message:
                copies.log(STATUS_LOG, [f"{made.end.message}\n".encode()])
            if not copies.logs:
                continue
            for config in job.configs:
                opener = partial(_Stream, store, listed.configs[config].path)
                keep_config(Member(label(config, job), opener), copies, listed.skipped)
            specs.append(
                JobSpec(
                    name=shown_path(job.name),
                    place=copies.place(),
                    started=made.end.started,
                    ended=made.end.ended,
                    outcome=made.end.outcome,
                )
            )
    check_limits(len(specs), asked.url, settings, listed.skipped.omitted)
    return collect_jobs(specs, listed.skipped.omitted)


def _wanted(jobs: Iterable[JobFiles], asked: ObjectQuery, listed: _Listed) -> list[JobFiles]:
    """Give the jobs that wrote a log since the time that is asked for, or at no time that is known."""
    found: list[JobFiles] = []
    for job in jobs:
        times = [written for log in job.logs if (written := listed.logs[log].written)]
        if asked.since is None or not times or max(times) >= asked.since:
            found.append(job)
        else:
            listed.skipped.add("older", job.name)
    return found


def _beginning(store: Any, listed: _Listed, name: str, most: int) -> bytes:
    """Give the beginning of an object, unpacked; empty where it holds no text, or is not given."""
    held = bytearray()
    try:
        with closing(LogSource(name, _Stream(store, listed.logs[name].path))) as source:
            for chunk in source.chunks():
                held += chunk
                if len(held) >= most:
                    break
    except InputError:
        return b""
    return bytes(held[:most])


# Listing.


def _list(store: Any, root: str, listed: _Listed) -> None:
    """List a folder and those in it, or the one object that the address names."""
    pending = [(root, 0)]
    while pending:
        folder, depth = pending.pop()
        for row in sorted(_again(partial(store.ls, folder, detail=True)), key=lambda row: str(row["name"])):
            if listed.seen >= listed.most:
                listed.skipped.add("beyond_limit", f"more than {listed.seen} objects")
                return
            path = str(row["name"]).rstrip("/")
            if path == folder and row["type"] == "directory":
                continue  # a mark that the folder is there
            listed.seen += 1
            name = path.removeprefix(root).strip("/") or path.rpartition("/")[2]
            if row["type"] != "directory":
                listed.add(_Object(name, path, time_written(row)))
            elif depth + 1 >= LIMITS.depth or kind_of(f"{name}/"):
                listed.skipped.add(kind_of(f"{name}/") or "too_deep", f"{name}/")
            else:
                pending.append((path, depth + 1))


def time_written(row: Mapping[str, Any]) -> datetime | None:
    """Give when an object was last written, as its store's driver tells it; None where it does not."""
    told = next((row[key] for key in _WRITTEN if row.get(key)), None)
    try:
        if isinstance(told, int | float):
            return datetime.fromtimestamp(told, UTC)
        found = datetime.fromisoformat(told) if isinstance(told, str) else told
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(found, datetime):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _again(ask: Callable[[], Given]) -> Given:
    """Ask, and ask again after each of PAUSES where the store fails."""
    for pause in PAUSES:
        try:
            return ask()
        except _FINAL:
            raise
        except Exception:  # noqa: BLE001 - each driver raises what its own packages do; the last is told
            time.sleep(pause)
    return ask()


# Reading.


class _Stream:
    """An object's bytes from its beginning; where reading breaks, it goes on from there."""

    def __init__(self, store: Any, path: str) -> None:
        self._store, self._path = store, path
        self._begun: Future[None] | None = None
        self._file: Any = None
        self._held = b""
        self._at = 0
        self._ended = False

    def begin(self, pool: ThreadPoolExecutor) -> None:
        """Ask for the first block, without waiting for it."""
        self._begun = pool.submit(self._fill)

    def read(self, size: int, /) -> bytes:
        """Give the next bytes; raises DamagedArchiveError where the store does not give them."""
        try:
            if self._begun is not None:
                begun, self._begun = self._begun, None
                begun.result()
            elif not self._held:
                self._fill()
        except Exception as error:
            raise DamagedArchiveError(
                f"the object store did not give all of it ({type(error).__name__})"
            ) from error
        piece, self._held = self._held[:size], self._held[size:]
        return piece

    def _fill(self) -> None:
        if not self._ended:
            self._held = _again(self._next)
            self._at += len(self._held)

    def _next(self) -> bytes:
        try:
            if self._file is None:
                # Without blocks a web server's answer is read as it comes: not all know ranges.
                block = 0 if self._path.startswith("http") else BLOCK
                self._file = self._store.open(self._path, "rb", block_size=block, cache_type="readahead")
                self._skip(self._at)
            piece: bytes = self._file.read(BLOCK)
        except BaseException:
            self.close()
            raise
        size = getattr(self._file, "size", None)
        self._ended = not piece or (size is not None and self._at + len(piece) >= size)
        return piece

    def _skip(self, count: int) -> None:
        try:
            if count:
                self._file.seek(count)
        except ValueError:  # a web server that knows no ranges: from the beginning again
            while count and (piece := self._file.read(min(count, BLOCK))):
                count -= len(piece)

    def close(self) -> None:
        """Let go of the object; it is opened again where it is read on."""
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def _reading(store: Any, paths: Sequence[str]) -> Iterator[Callable[[], _Stream]]:
    """Give what opens the logs, in their order: each call the next one, while those after it are begun."""
    waiting = iter(paths)
    begun: deque[_Stream] = deque()
    with ThreadPoolExecutor(AHEAD, thread_name_prefix="whycrash-objects") as pool:

        def open_next() -> _Stream:
            while len(begun) < AHEAD and (path := next(waiting, None)) is not None:
                begun.append(_Stream(store, path))
                begun[-1].begin(pool)
            return begun.popleft()

        try:
            yield open_next
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            for stream in begun:
                stream.close()
