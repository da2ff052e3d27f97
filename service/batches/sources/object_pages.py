"""The listing of one folder of an object store, page by page, so that no folder is held whole.

S3, Google's, Azure's and Alibaba's stores are asked for pages in the order of names, each from where the page
before ended: where a page fails, it alone is asked again. Drivers of other stores give a folder in one piece.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
https://cloud.google.com/storage/docs/json_api/v1/objects/list
https://learn.microsoft.com/rest/api/storageservices/list-blobs
https://www.alibabacloud.com/help/en/oss/developer-reference/listobjectsv2
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

from service.batches.sources.object_files import ObjectFile, time_written
from service.batches.sources.object_reading import again

# Most that a page holds; more S3 does not give.
PAGE = 1000
_FOLDER = "directory"

_Row = Mapping[str, Any]


class StorePage(NamedTuple):
    """A part of what lies in one folder of a store: objects, and the paths of the folders in it."""

    files: list[ObjectFile]
    folders: list[str]


class _ListedFolder(NamedTuple):
    """A folder to be listed: its store's driver, its bucket or container, and how the names in it begin."""

    store: Any
    bucket: str
    prefix: str

    def row(self, name: str, size: int | None = None, written: object = None) -> _Row:
        """Give an object or, where its name ends so, a folder."""
        kind = _FOLDER if name.endswith("/") else "file"
        return {"name": f"{self.bucket}/{name}", "type": kind, "size": size, "LastModified": written}


class _Told(NamedTuple):
    """A page as a store gives it, and what to ask for the next one with; empty where it is the last."""

    rows: Iterable[_Row]
    following: str = ""


def read_pages(store: Any, root: str, folder: str) -> Iterator[StorePage]:
    """List one folder in the order of names; raises what the store's driver does."""
    found = False
    ask = next((ask for name, ask in _PAGED.items() if hasattr(store, name)), None)
    for rows in _pages(ask, store, folder) if ask else _one_piece(store, folder):
        found = True
        yield _page(rows, root, folder)
    if not found:
        # Nothing lies below the name: it is one object's, or nobody's, which the driver knows how to say.
        yield from (_page(rows, root, folder) for rows in _one_piece(store, folder))


def _page(rows: Sequence[_Row], root: str, folder: str) -> StorePage:
    page = StorePage([], [])
    for row in rows:
        path = str(row["name"]).rstrip("/")
        if row["type"] != _FOLDER:
            name = path.removeprefix(root).strip("/") or path.rpartition("/")[2]
            page.files.append(ObjectFile(name, path, time_written(row), int(row.get("size") or 0)))
        elif path != folder:  # else a mark that the folder is there
            page.folders.append(path)
    return page


def _one_piece(store: Any, folder: str) -> Iterator[Sequence[_Row]]:
    rows = sorted(again(partial(store.ls, folder, detail=True)), key=lambda row: str(row["name"]))
    yield from (rows[place : place + PAGE] for place in range(0, len(rows), PAGE))


def _pages(ask: Callable[[_ListedFolder, str], _Told], store: Any, folder: str) -> Iterator[Sequence[_Row]]:
    bucket, _, prefix = folder.partition("/")
    asked = _ListedFolder(store, bucket, f"{prefix.rstrip('/')}/" if prefix else "")
    # An object of the folder's own name marks that the folder is there.
    mark = f"{bucket}/{asked.prefix}"
    following = ""
    while True:
        told = again(partial(ask, asked, following))
        if rows := [row for row in told.rows if row["name"] != mark]:
            yield sorted(rows, key=lambda row: str(row["name"]).rstrip("/"))
        if not told.following:
            return
        following = told.following


def _s3(folder: _ListedFolder, following: str) -> _Told:
    more = {"ContinuationToken": following} if following else {}
    told = folder.store.call_s3(
        "list_objects_v2", Bucket=folder.bucket, Prefix=folder.prefix, Delimiter="/", MaxKeys=PAGE, **more
    )
    rows = [folder.row(each["Key"], each["Size"], each["LastModified"]) for each in told.get("Contents", ())]
    rows += [folder.row(each["Prefix"]) for each in told.get("CommonPrefixes", ())]
    return _Told(rows, told["NextContinuationToken"] if told.get("IsTruncated") else "")


def _google(folder: _ListedFolder, following: str) -> _Told:
    more = {"pageToken": following} if following else {}
    told = folder.store.call(
        "GET",
        "b/{}/o",
        folder.bucket,
        prefix=folder.prefix,
        delimiter="/",
        maxResults=PAGE,
        json_out=True,
        **more,
    )
    rows = [folder.row(each["name"], each["size"], each["updated"]) for each in told.get("items", ())]
    rows += map(folder.row, told.get("prefixes", ()))
    return _Told(rows, told.get("nextPageToken", ""))


def _azure(folder: _ListedFolder, following: str) -> _Told:
    container = folder.store.service_client.get_container_client(folder.bucket)
    pages = container.walk_blobs(
        name_starts_with=folder.prefix, include=["metadata"], results_per_page=PAGE
    ).by_page(following or None)

    async def asked() -> list[Any]:
        page = await anext(pages, None)
        return [] if page is None else [each async for each in page]

    try:
        # The driver's own loop, in its own thread, is the one that the store's client belongs to.
        found = asyncio.run_coroutine_threadsafe(asked(), folder.store.loop).result()
    except Exception as error:
        # No such container: the driver says so in its own words, once it is asked.
        if getattr(error, "status_code", None) == HTTPStatus.NOT_FOUND:
            return _Told(())
        raise
    rows = [
        folder.row(each.name, each.get("size"), each.get("last_modified"))
        for each in found
        if not _is_folder_mark(each)
    ]
    return _Told(rows, pages.continuation_token or "")


def _is_folder_mark(blob: Any) -> bool:
    """Tell whether a blob only says that a folder is there, as stores with real folders have it."""
    told = {name.lower(): value for name, value in (blob.get("metadata") or {}).items()}
    return told.get("hdi_isfolder") == "true"


def _alibaba(folder: _ListedFolder, following: str) -> _Told:
    told = folder.store._call_oss(
        "list_objects_v2",
        bucket=folder.bucket,
        prefix=folder.prefix,
        delimiter="/",
        continuation_token=following,
        max_keys=PAGE,
    )
    rows = [folder.row(each.key, each.size, each.last_modified) for each in told.object_list]
    rows += map(folder.row, told.prefix_list)
    return _Told(rows, told.next_continuation_token if told.is_truncated else "")


# Which page each store is asked for, by what its driver alone has.
_PAGED: Mapping[str, Callable[[_ListedFolder, str], _Told]] = {
    "call_s3": _s3,
    "service_client": _azure,
    "_call_oss": _alibaba,
    "call": _google,
}
