"""Read objects of a store piece by piece, the beginnings of the next ones ahead of time.

What takes long is the way there and back. Where reading breaks, it goes on from where it was.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from ingest.errors import DamagedArchiveError

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

Given = TypeVar("Given")


def again(ask: Callable[[], Given]) -> Given:
    """Ask, and ask again after each of PAUSES where the store fails."""
    for pause in PAUSES:
        try:
            return ask()
        except _FINAL:
            raise
        except Exception:  # noqa: BLE001 - each driver raises what its own packages do; the last is told
            time.sleep(pause)
    return ask()


class ObjectStream:
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
            self._held = again(self._next)
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
def reading(store: Any, paths: Sequence[str]) -> Iterator[Callable[[], ObjectStream]]:
    """Give what opens the logs, in their order: each call the next one, while those after it are begun."""
    waiting = iter(paths)
    begun: deque[ObjectStream] = deque()
    with ThreadPoolExecutor(AHEAD, thread_name_prefix="whycrash-objects") as pool:

        def open_next() -> ObjectStream:
            while len(begun) < AHEAD and (path := next(waiting, None)) is not None:
                begun.append(ObjectStream(store, path))
                begun[-1].begin(pool)
            return begun.popleft()

        try:
            yield open_next
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            for stream in begun:
                stream.close()
