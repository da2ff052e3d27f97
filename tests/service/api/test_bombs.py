"""Archives that unpack to far more than they are, or hold more than anybody needs."""

from __future__ import annotations

import gzip
import io
import time
import zipfile
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from tests.service.api.conftest import Open
from tests.service.api.test_triages import LOG
from tests.waiting import PATIENCE


def _zip_bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("a.log", LOG)
        archive.writestr("b.log", b"0" * (200 << 20))
    return packed.getvalue()


def _gzip_bomb() -> bytes:
    return gzip.compress(b"0" * (200 << 20), 9)


def _nested() -> bytes:
    inner = _zip_bomb()
    for _ in range(5):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("inner.zip", inner)
            archive.writestr("a.log", LOG)
        inner = packed.getvalue()
    return inner


BOMBS = [("bomb.zip", _zip_bomb), ("bomb.log.gz", _gzip_bomb)]


@pytest.mark.parametrize(
    ("name", "make"),
    [("nested.zip", _nested), *(pytest.param(*bomb, marks=pytest.mark.long) for bomb in BOMBS)],
)
def test_that_a_bomb_is_read_within_limits(open_app: Open, name: str, make: Callable[[], bytes]) -> None:
    """It is answered or refused in little time."""
    raw = make()
    with open_app(max_unpacked_mb=16) as client:
        began = time.monotonic()
        answer = client.post("/v1/triage", files=[("log", (name, raw))])
        assert answer.status_code in (200, 413, 422)
        assert time.monotonic() - began < PATIENCE / 2


@pytest.mark.parametrize(("name", "make"), [BOMBS[0], pytest.param(*BOMBS[1], marks=pytest.mark.long)])
def test_that_a_bomb_as_a_batch_is_refused(open_app: Open, name: str, make: Callable[[], bytes]) -> None:
    """Or taken without what is too much; no more than the limit is put on the disk."""
    raw = make()
    with open_app(max_unpacked_mb=16) as client:
        answer = client.post("/v1/batches", files=[("log", (name, raw))])
        assert answer.status_code in (202, 413, 422)
        if answer.status_code == 202:
            assert answer.json()["left_out"]


def test_that_too_many_jobs_are_refused(client: TestClient, open_app: Open) -> None:
    """With the limit in the sentence."""
    with open_app(max_jobs=3) as small:
        answer = small.post("/v1/batches", files=[("log", (f"job{number}.log", LOG)) for number in range(5)])
        assert answer.status_code == 413
        assert "3" in answer.json()["detail"]
