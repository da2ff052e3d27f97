"""Multipart bodies: the same whatever pieces they come in, within limits, with no name on the disk."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.api import uploads
from service.api.uploads import MultipartLimits, MultipartUpload
from service.persistence import spool as spools
from service.persistence.spool import Spool
from service.schemas.errors import InvalidRequestError, RequestError, TooLargeError
from tests.service.api.loops import ran
from tests.tables import each_row

KIND = 'multipart/form-data; boundary="frontier"'


def body(*parts: tuple[str, str | None, bytes]) -> bytes:
    """Write a multipart body: names, file names, contents."""
    told = b""
    for name, file, content in parts:
        named = f'; filename="{file}"' if file is not None else ""
        told += (
            f'--frontier\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode()
            + content
            + b"\r\n"
        )
    return told + b"--frontier--\r\n"


def read(
    pieces: Sequence[bytes],
    spool: Spool,
    limits: MultipartLimits = MultipartLimits(),  # noqa: B008 - a frozen value
    kind: str = KIND,
) -> MultipartUpload:
    """Read a body that comes in pieces."""

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def threaded(work: Callable[[], Any]) -> Any:
        return await asyncio.to_thread(work)

    return ran(uploads.read_multipart(kind, chunks(), spool, limits, threaded))


def cut(raw: bytes, places: Sequence[int]) -> list[bytes]:
    """Cut bytes at places."""
    edges = [0, *sorted({min(place, len(raw)) for place in places}), len(raw)]
    return [raw[begin:end] for begin, end in pairwise(edges)]


@given(st.binary(max_size=300), st.text("abc\r\n-", max_size=40), st.lists(st.integers(0, 600), max_size=30))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_that_a_body_reads_the_same_in_any_pieces(content: bytes, text: str, places: list[int]) -> None:
    """Also where a boundary is cut in two, and what is like one stands inside."""
    raw = body(("log", "a.log", content), ("name", None, text.encode()))
    with Spool() as spool, Spool() as other:
        upload, whole = read(cut(raw, places), spool), read([raw], other)
        assert upload.named("log")[0].file.read() == content
        assert upload.fields == {"name": text}
        assert upload.digest == whole.digest


@each_row(
    ("raw", "kind", "limits", "error"),
    [
        (body(("log", "a", b"x"))[:-12], KIND, MultipartLimits(), InvalidRequestError),
        (b"nonsense", KIND, MultipartLimits(), InvalidRequestError),
        (b"", KIND, MultipartLimits(), InvalidRequestError),
        (body(("log", "a", b"x")), "multipart/form-data", MultipartLimits(), InvalidRequestError),
        (
            body(("log", "a", b"x")),
            "multipart/form-data; boundary=" + "x" * 300,
            MultipartLimits(),
            InvalidRequestError,
        ),
        (body(*[("log", "a", b"x")] * 4), KIND, MultipartLimits(files=3), TooLargeError),
        (body(("a", None, b"x" * 101)), KIND, MultipartLimits(field_bytes=100), TooLargeError),
        (body(("a", None, b"x"), ("a", None, b"y")), KIND, MultipartLimits(), InvalidRequestError),
        (
            body(*[(str(number), None, b"x") for number in range(4)]),
            KIND,
            MultipartLimits(fields=3),
            InvalidRequestError,
        ),
        (
            b"--frontier\r\nX-A: " + b"y" * 20_000 + b"\r\n\r\nx\r\n--frontier--\r\n",
            KIND,
            MultipartLimits(),
            RequestError,
        ),
        (
            b"--frontier\r\n" + b"X-A: y\r\n" * 100 + b"\r\nx\r\n--frontier--\r\n",
            KIND,
            MultipartLimits(),
            RequestError,
        ),
        (
            b"--frontier\r\nContent-Type: text/plain\r\n\r\nx\r\n--frontier--\r\n",
            KIND,
            MultipartLimits(),
            InvalidRequestError,
        ),
    ],
)
def test_that_a_body_beyond_the_limits_is_refused(
    raw: bytes, kind: str, limits: MultipartLimits, error: type[RequestError]
) -> None:
    """Cut off, too many parts, too long headers: an error that says so."""
    with Spool() as spool, pytest.raises(error):
        read([raw], spool, limits, kind)


def test_that_an_upload_has_no_name_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be opened through its number while the request lasts, and is gone with it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Spool() as spool:
        read([body(("log", "a.log", b"x" * 3_000_000))], spool)
        path = spool.paths[0]
        assert path.read_bytes() == b"x" * 3_000_000
        assert list(tmp_path.iterdir()) == []
    assert not os.path.lexists(path) or path.read_bytes() != b"x" * 3_000_000


@given(st.lists(st.binary(max_size=200), max_size=8), st.lists(st.integers(0, 2000), max_size=20))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_that_many_files_in_one_are_read_each_by_itself(contents: list[bytes], places: list[int]) -> None:
    """From any place on, as often as one likes."""
    raw = body(*[("log", f"{number}.log", content) for number, content in enumerate(contents)])
    with Spool(packed=True) as spool:
        upload = read(cut(raw, places), spool)
        assert len(spool.opened) == min(1, len(contents))
        for _ in range(2):
            assert [file.file.read() for file in upload.named("log")] == contents
            for file, content in zip(upload.named("log"), contents, strict=True):
                assert file.file.seek(0, os.SEEK_END) == len(content)
                file.file.seek(len(content) // 2)
                assert file.file.read(3) == content[len(content) // 2 :][:3]
                file.file.seek(0)


@each_row(
    ("given_name", "kept"),
    [
        ("a.log", "a.log"),
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\logs\\a.log", "C_/logs/a.log"),
        ("/etc/passwd", "etc/passwd"),
        ("", "file"),
        ("..", "file"),
        ("a\x00\x1b[31mb", "a_31mb"),
        ("训练.log", "训练.log"),
        ("x" * 500, "x" * 120),
        (".hidden", ".hidden"),
    ],
)
def test_that_a_files_name_is_a_harmless_label(given_name: str, kept: str) -> None:
    """It leads nowhere and says nothing to a terminal."""
    assert spools.safe_name(given_name) == kept


def test_that_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As 507, by the one limit of a process's files that a test can set."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    try:
        with Spool() as spool, pytest.raises(RequestError) as caught:
            read([body(("log", "a.log", b"x" * 3_000_000))], spool)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.status == 507
