"""Object stores over names in their order, which give a folder in pages: as each store's driver is asked."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

HOUR_AGO = datetime.now(UTC) - timedelta(hours=1)
SIZE = 9
BUCKET = "b"


class NamesPage(NamedTuple):
    """A page: names of objects, of folders with their slash, and the token of the next page."""

    objects: list[str]
    folders: list[str]
    following: str


class PagedStore:
    """`left` of its next pages fail, `asked` are the tokens of all that were asked for."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(names)
        self.asked: list[str] = []
        self.left = 0

    def ls(self, path: str, **_more: object) -> list[dict[str, Any]]:
        """Say that nothing lies below a name."""
        raise FileNotFoundError(path)

    def give(self, bucket: str, prefix: str, token: str, most: int) -> NamesPage:
        """Give one page of a folder."""
        assert bucket == BUCKET
        self.asked.append(token)
        if self.left:
            self.left -= 1
            raise ConnectionResetError("reset by peer")
        place, last = (bisect_left(self._names, f"{prefix}{end}") for end in ("", chr(0x10FFFF)))
        place = int(token or place)
        page = NamesPage([], [], "")
        while place < last and len(page.objects) + len(page.folders) < most:
            first, mark, _ = self._names[place].removeprefix(prefix).partition("/")
            if mark:
                page.folders.append(f"{prefix}{first}/")
                place = bisect_left(self._names, f"{prefix}{first}0")  # what comes after the slash
            else:
                page.objects.append(f"{prefix}{first}")
                place += 1
        return page._replace(following=str(place) if place < last else "")


class S3Paged(PagedStore):
    """As s3fs."""

    def call_s3(self, method: str, **asked: Any) -> dict[str, Any]:
        """Give one page of a folder, as `list_objects_v2` does."""
        assert (method, asked["Delimiter"]) == ("list_objects_v2", "/")
        token = asked.get("ContinuationToken", "")
        page = self.give(asked["Bucket"], asked["Prefix"], token, asked["MaxKeys"])
        return {
            "Contents": [{"Key": name, "Size": SIZE, "LastModified": HOUR_AGO} for name in page.objects],
            "CommonPrefixes": [{"Prefix": name} for name in page.folders],
            "IsTruncated": bool(page.following),
            "NextContinuationToken": page.following,
        }


class GooglePaged(PagedStore):
    """As gcsfs, whose fields are absent where they are empty."""

    def call(self, method: str, path: str, bucket: str, **asked: Any) -> dict[str, Any]:
        """Give one page of a folder, as Google's objects are listed."""
        assert (method, path, asked["delimiter"], asked["json_out"]) == ("GET", "b/{}/o", "/", True)
        page = self.give(bucket, asked["prefix"], asked.get("pageToken", ""), asked["maxResults"])
        items = [
            {"name": name, "size": str(SIZE), "updated": HOUR_AGO.isoformat().replace("+00:00", "Z")}
            for name in page.objects
        ]
        told = {"items": items, "prefixes": page.folders, "nextPageToken": page.following}
        return {name: value for name, value in told.items() if value}


class AlibabaPaged(PagedStore):
    """As ossfs, whose times are seconds."""

    def _call_oss(self, method: str, **asked: Any) -> SimpleNamespace:
        assert (method, asked["delimiter"]) == ("list_objects_v2", "/")
        page = self.give(asked["bucket"], asked["prefix"], asked["continuation_token"], asked["max_keys"])
        return SimpleNamespace(
            object_list=[
                SimpleNamespace(key=name, size=SIZE, last_modified=int(HOUR_AGO.timestamp()))
                for name in page.objects
            ],
            prefix_list=page.folders,
            is_truncated=bool(page.following),
            next_continuation_token=page.following,
        )


class AzurePaged(PagedStore):
    """As adlfs, whose client works in a loop of its own thread; `marks` are blobs that stand for folders."""

    def __init__(self, names: Iterable[str], marks: Iterable[str] = ()) -> None:
        super().__init__(names)
        self._marks = set(marks)
        self.is_there = True
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    @property
    def service_client(self) -> SimpleNamespace:
        """What gives the client of a container."""
        return SimpleNamespace(
            get_container_client=lambda bucket: SimpleNamespace(
                walk_blobs=lambda **asked: SimpleNamespace(
                    by_page=lambda token: _AzurePages(self, bucket, asked, token or "")
                )
            )
        )

    def blob(self, name: str) -> _Blob:
        """Describe a blob."""
        told = {"Hdi_isfolder": "true"} if name in self._marks else None
        return _Blob(name, {"size": SIZE, "last_modified": HOUR_AGO, "metadata": told})


class _Blob(NamedTuple):
    name: str
    told: dict[str, Any]

    def get(self, name: str) -> Any:
        """Give a property; None where there is none."""
        return self.told.get(name)


class _NotFoundError(Exception):
    status_code = 404


class _AzurePages:
    def __init__(self, store: AzurePaged, bucket: str, asked: dict[str, Any], token: str) -> None:
        self._store, self._bucket, self._asked = store, bucket, asked
        self.continuation_token: str | None = token

    async def __anext__(self) -> AsyncIterator[_Blob]:
        assert asyncio.get_running_loop() is self._store.loop
        if not self._store.is_there:
            raise _NotFoundError
        prefix, most = self._asked["name_starts_with"], self._asked["results_per_page"]
        page = self._store.give(self._bucket, prefix, self.continuation_token or "", most)
        self.continuation_token = page.following or None

        async def blobs() -> AsyncIterator[_Blob]:
            for name in page.objects:
                yield self._store.blob(name)
            for name in page.folders:
                yield _Blob(name, {})

        return blobs()
