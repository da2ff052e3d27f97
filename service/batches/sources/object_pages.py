"""The listing of one folder of an object store, page by page, so that no folder is held whole.

S3 and what speaks as it does is asked for pages in the order of names, each from the last name of the page
before: where a page fails, it alone is asked again. Drivers of other stores give a folder in one piece.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
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


def read_pages(store: Any, root: str, folder: str) -> Iterator[StorePage]:
    """List one folder in the order of names; raises what the store's driver does."""
    found = False
    for rows in _s3_pages(store, folder) if hasattr(store, "call_s3") else _one_piece(store, folder):
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


def _s3_pages(store: Any, folder: str) -> Iterator[Sequence[_Row]]:
    bucket, _, prefix = folder.partition("/")
    prefix = f"{prefix.rstrip('/')}/" if prefix else ""
    asked: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/", "MaxKeys": PAGE}
    while True:
        told = again(partial(store.call_s3, "list_objects_v2", **asked))
        folders = [f"{bucket}/{row['Prefix'].rstrip('/')}" for row in told.get("CommonPrefixes", ())]
        rows = [*_objects(told, bucket, prefix), *({"name": name, "type": _FOLDER} for name in folders)]
        if rows:
            yield sorted(rows, key=lambda row: str(row["name"]))
        if not told.get("IsTruncated"):
            return
        asked["ContinuationToken"] = told["NextContinuationToken"]


def _objects(told: _Row, bucket: str, prefix: str) -> Iterator[_Row]:
    for row in told.get("Contents", ()):
        # An object of the folder's own name marks that the folder is there.
        if row["Key"] != prefix:
            yield {
                "name": f"{bucket}/{row['Key']}",
                "type": _FOLDER if row["Key"].endswith("/") else "file",
                "size": row["Size"],
                "LastModified": row["LastModified"],
            }
