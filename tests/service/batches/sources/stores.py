"""A store of objects in memory, whose requests may fail, and which tells what it was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from service.batches.sources import object_listing, object_reading


class UnreliableStore(MemoryFileSystem):
    """A store in memory whose next requests fail, so many as `left` says; `opened` names what was read."""

    protocol = "unreliable"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    opened: ClassVar[list[str]] = []
    cachable = False
    left = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("unreliable://")))

    def ls(self, path: str, detail: bool = True, **_more: object) -> Any:
        """List a folder."""
        self._fail()
        return super().ls(path, detail=detail)

    def _open(self, path: str, mode: str = "rb", *words: Any, **named: Any) -> Any:
        self._fail()
        if mode == "rb":
            type(self).opened.append(path)
        return super()._open(path, mode, *words, **named)

    def _fail(self) -> None:
        kind = type(self)
        if kind.left:
            kind.left -= 1
            raise ConnectionResetError("reset by peer")

    @classmethod
    def put(cls, name: str, content: bytes | str, written: datetime) -> None:
        """Write an object at a time."""
        cls().pipe_file(f"/{name}", content.encode() if isinstance(content, str) else content)
        cls.store[f"/{name}"].created = cls.store[f"/{name}"].modified = written


@contextmanager
def unreliable(patched: pytest.MonkeyPatch) -> Iterator[type[UnreliableStore]]:
    """Let unreliable:// be an address, asked again without a pause."""
    fsspec.register_implementation("unreliable", UnreliableStore, clobber=True)
    patched.setattr(object_listing, "DRIVERS", {"unreliable": "fsspec"})
    patched.setattr(object_reading, "PAUSES", (0.0, 0.0, 0.0))
    UnreliableStore.left = 0
    yield UnreliableStore
    UnreliableStore.opened.clear()
    UnreliableStore.store.clear()
    UnreliableStore.pseudo_dirs[:] = [""]
