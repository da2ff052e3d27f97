"""A real web server on loopback: bodies that do not end, clients that are slow or leave, a server that
stops.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from starlette.responses import StreamingResponse

from service.api import app_state, serving, streams
from service.api.app import create_app
from service.api.connections import BoundedProtocol
from service.api.intake import MIB, BodyRateLimits
from service.app.triage_service import TriageService
from tests.ports import free_port
from tests.service.api.conftest import Serve, settings_at
from tests.service.api.serving import Address, received, served, wait_for
from tests.service.api.test_triages import KILLED, LOG
from tests.waiting import PATIENCE

HEAD = "POST /v1/triage HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BOUNDARY = "frontier"
PART = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="log"; filename="big.log"\r\n\r\n'.encode()
MULTIPART = f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
GIB = 1 << 30


def test_that_ten_gigabytes_are_refused_before_they_come(serve: Serve) -> None:
    """Where the length is told, not a byte is read."""
    with serve(max_upload_mb=8) as address, address.connect() as connection:
        connection.sendall(f"{HEAD}{MULTIPART}Content-Length: {10 * GIB}\r\n\r\n".encode())
        told = received(connection)
    assert told.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in told.lower()


def test_that_a_body_without_end_is_cut_off_at_the_limit(serve: Serve) -> None:
    """Where no length is told, it is counted as it comes, and nothing beyond the limit is taken."""
    sent = 0
    with serve(max_upload_mb=8) as address, address.connect() as connection:
        connection.sendall(f"{HEAD}{MULTIPART}Transfer-Encoding: chunked\r\n\r\n".encode())
        connection.sendall(f"{len(PART):x}\r\n".encode() + PART + b"\r\n")
        piece = b"10000\r\n" + b"x" * 65535 + b"\n\r\n"
        try:
            while sent < 10 * GIB:
                connection.sendall(piece)
                sent += 65536
        except (BrokenPipeError, ConnectionResetError):
            pass
        with httpx.Client(base_url=address.url) as client:
            assert client.get("/healthz").status_code == 200
    # The rest stood in the buffers of the two sockets.
    assert sent < 64 << 20


@pytest.mark.parametrize("kind", ["json", "multipart"])
def test_that_a_large_body_is_told_413(serve: Serve, kind: str) -> None:
    """As a problem that names the limit."""
    text = "x" * (3 << 20)
    sent = {"json": {"text": text}} if kind == "json" else {"files": [("log", ("a.log", text))]}
    with serve(max_upload_mb=2) as address, httpx.Client(base_url=address.url) as client:
        answer = client.post("/v1/triage", **sent)
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:whycrash:error:too-large")
    assert "2 MiB" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("pace", "pieces", "pause"),
    [
        (BodyRateLimits(idle=0.5, grace=60.0), [PART], 0.0),
        (BodyRateLimits(idle=5.0, grace=0.5, rate=1000.0), [PART] + [b"-"] * 40, 0.05),
    ],
)
def test_that_a_client_that_sends_too_slowly_is_told_so(
    serve: Serve, pace: BodyRateLimits, pieces: list[bytes], pause: float
) -> None:
    """Nothing for a while, or a byte now and then: 408, and the connection ends."""
    with serve(pace=pace) as address, address.connect() as connection:
        connection.sendall(f"{HEAD}{MULTIPART}Content-Length: 100000\r\n\r\n".encode())
        for piece in pieces:
            connection.sendall(piece)
            if select.select([connection], [], [], pause)[0]:
                break
        assert received(connection).startswith(b"HTTP/1.1 408 ")


def test_that_a_refused_body_is_not_read_to_its_end(serve: Serve) -> None:
    """After an error the connection ends, or a client could go on sending as slowly as it likes."""
    with serve() as address, address.connect() as connection:
        connection.sendall(f"{HEAD}Content-Type: text/plain\r\nContent-Length: 100000\r\n\r\nx".encode())
        assert received(connection).startswith(b"HTTP/1.1 415 ")


def test_that_headers_that_never_end_are_not_waited_for(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that dribbles headers, or says nothing at all, is closed; others are served meanwhile."""
    monkeypatch.setattr(BoundedProtocol, "head_timeout", 0.5)
    with serve() as address, address.connect() as silent, address.connect() as dribbling:
        dribbling.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A")
        with httpx.Client(base_url=address.url) as client:
            assert client.get("/healthz").status_code == 200
        assert received(silent) == received(dribbling) == b""


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        (
            b"POST /v1/triage HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n0\r\n\r\n"
        ),
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
)
def test_that_what_is_no_request_is_refused(serve: Serve, raw: bytes) -> None:
    """Two lengths, two hosts, no HTTP at all: an error of the client's, and the server goes on."""
    with serve() as address:
        with address.connect() as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            told = received(connection)
        assert not told or b" 4" in told.partition(b"\r\n")[0]
        with httpx.Client(base_url=address.url) as client:
            assert client.get("/healthz").status_code == 200


def test_that_events_are_sent_as_they_happen_and_silence_is_filled(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first event comes before the last is made."""
    with serve() as address, httpx.Client(base_url=address.url) as client:
        with client.stream(
            "POST", "/v1/triage", params={"stream": "true"}, files=[("log", ("a.log", KILLED * 20))]
        ) as answer:
            rows = answer.iter_lines()
            assert next(rows) == "id: 1"
            first = time.monotonic()
            assert [row for row in rows if row.startswith("event: ")][-1] == "event: final"
        assert time.monotonic() > first


def test_that_a_comment_is_sent_while_nothing_happens(
    serve: Serve, triage_service: TriageService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies close connections that say nothing."""
    monkeypatch.setattr(streams, "HEARTBEAT", 0.05)
    with (
        serve() as address,
        httpx.Client(base_url=address.url, timeout=PATIENCE) as client,
        _stopped(triage_service) as go_on,
    ):
        threading.Timer(0.5, go_on).start()
        text = client.post("/v1/triage?stream=true", json={"text": LOG}).text
    assert ": still at it" in text
    assert "event: final" in text


def test_that_a_client_that_does_not_take_its_answer_is_left(
    triage_service: TriageService, api_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer is not held for ever for somebody who reads nothing of it."""
    ended = threading.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 65536
                await asyncio.sleep(0)
        finally:
            ended.set()

    monkeypatch.setattr(BoundedProtocol, "reading", 0.3)
    settings = settings_at(api_home, port=0)
    app = create_app(settings, triage_service)
    app.add_route("/v1/endless", lambda _request: StreamingResponse(pieces()))
    with served(app, settings) as address, address.connect() as connection:
        connection.sendall(b"GET /v1/endless HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert ended.wait(PATIENCE)


def test_that_a_request_has_a_deadline(
    serve: Serve, triage_service: TriageService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the work does, the client is told in time: whole as 504, streamed as the last event."""
    monkeypatch.setattr(app_state, "GRACE", 0.0)
    with (
        serve(request_deadline=1.0) as address,
        httpx.Client(base_url=address.url, timeout=PATIENCE) as client,
        _stopped(triage_service),
    ):
        assert client.post("/v1/triage", json={"text": LOG}).status_code == 504
        streamed = client.post("/v1/triage?stream=true", json={"text": LOG}).text
    assert "event: error" in streamed
    assert '"status":504' in streamed


@contextmanager
def _stopped(triage_service: TriageService) -> Iterator[Callable[[], None]]:
    """Stop the one worker in its tracks; what is given lets it go on."""
    wait_for(lambda: not triage_service.pool.failure)
    (pid,) = triage_service.pool.pids
    os.kill(pid, signal.SIGSTOP)

    def go_on() -> None:
        os.kill(pid, signal.SIGCONT)

    try:
        yield go_on
    finally:
        go_on()


def test_that_the_answer_is_kept_where_the_client_left(serve: Serve) -> None:
    """Who was cut off while it was worked on finds the triage in the list."""
    with serve() as address, httpx.Client(base_url=address.url) as client:
        with client.stream(
            "POST", "/v1/triage?stream=true", json={"text": LOG, "name": "left.log"}
        ) as answer:
            assert "event: report" in answer.iter_lines()
        wait_for(lambda: _states(client, "left.log") == ["done"])


def _states(client: httpx.Client, name: str) -> list[str]:
    found = client.get("/v1/triages", params={"q": name}).json()["items"]
    return [item["state"] for item in found]


@pytest.mark.parametrize("stream", [True, False])
def test_that_a_triage_whose_client_left_before_its_turn_holds_up_nobody(
    serve: Serve, triage_service: TriageService, stream: bool
) -> None:
    """It leaves the queue, says so in the list, and its idempotency key is free.

    The one that was begun goes on to its end.
    """
    name = f"abandoned-{stream}.log"
    raw = json.dumps({"text": LOG, "name": name, "stream": stream})
    asked = (
        f"{HEAD}Content-Type: application/json\r\nIdempotency-Key: {name}\r\nContent-Length: "
        f"{len(raw)}\r\n\r\n{raw}"
    ).encode()
    with (
        serve() as address,
        httpx.Client(base_url=address.url, timeout=PATIENCE) as client,
        ThreadPoolExecutor(1) as threads,
        _stopped(triage_service) as go_on,
    ):
        begun = threads.submit(client.post, "/v1/triage", json={"text": LOG})
        wait_for(lambda: triage_service.pool.waiting == 1)
        with address.connect() as connection:
            connection.sendall(asked)
            wait_for(lambda: triage_service.pool.waiting == 2)
        wait_for(lambda: triage_service.pool.waiting == 1)
        wait_for(lambda: _states(client, name) == ["failed"])
        go_on()
        assert begun.result().status_code == 200
        again = client.post(
            "/v1/triage", content=raw, headers={"content-type": "application/json", "idempotency-key": name}
        )
        assert again.status_code == 200
        assert "idempotency-replayed" not in again.headers
        assert _states(client, name) == ["done", "failed"]


def test_that_a_full_house_refuses_before_the_body_comes(
    api_busy: Address, triage_service: TriageService
) -> None:
    """A large body is not waited for.

    A small one is taken, so that its connection serves the next request too.
    """
    small = f"{HEAD}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    large = f"{HEAD}Content-Type: application/json\r\nContent-Length: {MIB}\r\n\r\n".encode()
    with (
        httpx.Client(base_url=api_busy.url, timeout=PATIENCE) as client,
        ThreadPoolExecutor(2) as threads,
        _stopped(triage_service),
    ):
        asked = [threads.submit(client.post, "/v1/triage", json={"text": LOG}) for _ in range(2)]
        wait_for(lambda: triage_service.pool.waiting == 2)
        with api_busy.connect() as connection:
            connection.sendall(small)
            assert b" 429 " in connection.recv(65536)
            connection.sendall(large)
            told = received(connection)
    assert told.startswith(b"HTTP/1.1 429 ")
    assert b"retry-after: " in told.lower()
    assert {one.result().status_code for one in asked} == {200}


def test_that_an_upload_that_is_cut_by_the_servers_end_may_come_again(
    triage_service: TriageService,
    api_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A problem that says so and a line in the log, no stack."""
    # Packages that other tests of the same process load may have turned it off or raised its level.
    logging.getLogger("whycrash.requests").disabled = False
    caplog.set_level(logging.WARNING, logger="whycrash.requests")
    monkeypatch.setattr(serving, "LEAVING", 1)
    settings = settings_at(api_home, port=0)
    app = create_app(settings, triage_service)
    with served(app, settings) as address:
        connection = address.connect()
        connection.sendall(f"{HEAD}{MULTIPART}Content-Length: 100000\r\n\r\n".encode() + PART)
        wait_for(lambda: app.state.app_state.admission.uploads.taken)
    with connection:
        told = received(connection)
    assert told.startswith(b"HTTP/1.1 503 ")
    assert b"urn:whycrash:error:stopping" in told
    assert "was cut: the server is stopping" in caplog.text
    assert "Traceback" not in caplog.text


def test_that_overload_is_told_at_once_and_passes(api_busy: Address, triage_service: TriageService) -> None:
    """One worker, one place to wait: of twenty at once two are answered, the rest told when to come again,
    and then all is well.
    """
    with httpx.Client(base_url=api_busy.url, timeout=PATIENCE) as client, ThreadPoolExecutor(20) as threads:

        def ask(_number: int) -> tuple[int, str, float]:
            began = time.monotonic()
            answer = client.post("/v1/triage", json={"text": LOG})
            return answer.status_code, answer.headers.get("retry-after", ""), time.monotonic() - began

        with _stopped(triage_service) as go_on:
            asked = [threads.submit(ask, number) for number in range(20)]
            wait_for(lambda: sum(one.done() for one in asked) == 18)
            refused = [one.result() for one in asked if one.done()]
            go_on()
        statuses = sorted(one.result()[0] for one in asked)
        assert statuses == [200] * 2 + [429] * 18
        assert all(wait.isdecimal() for _, wait, _ in refused)
        assert client.post("/v1/triage", json={"text": LOG}).status_code == 200


@pytest.fixture
def api_busy(
    triage_service: TriageService, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Address]:
    """A server whose queue has one place."""
    monkeypatch.setattr(triage_service.pool, "queue_size", 1)
    # Places to hand in are plenty, so that it is the queue that refuses.
    with serve(queue=40) as address:
        yield address


SERVER = """
import sys
from pathlib import Path
from service.api import serving
from service.api.app import create_app
from service.settings import Settings

if __name__ == "__main__":
    settings = Settings(home=Path(sys.argv[1]), port=int(sys.argv[2]), embedding_model="hash", workers=1)
    serving.server(create_app(settings), settings).run()
"""


@contextmanager
def _process(home: Path, port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    script = folder / "serve_it.py"
    script.write_text(SERVER)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(
        [sys.executable, script, home, str(port)], env=environment, start_new_session=True
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            wait_for(lambda: _is_up(client))
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.mark.long
def test_that_a_server_killed_in_mid_answer_says_so_when_it_is_back(api_home: Path, tmp_path: Path) -> None:
    """The triage it was at is in the list as failed or done, never as running for ever.

    What was done before is there.
    """
    port = free_port()
    home = tmp_path / "home"
    shutil.copytree(api_home, home, ignore=shutil.ignore_patterns("whycrash.db*"))
    url = f"http://127.0.0.1:{port}"
    with _process(home, port, tmp_path) as process, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        done = client.post("/v1/triage", json={"text": LOG}).json()["id"]
        with client.stream(
            "POST", "/v1/triage?stream=true", files=[("log", ("big.log", KILLED * 2000))]
        ) as answer:
            rows = answer.iter_lines()
            begun = next(
                json.loads(row.removeprefix("data: "))["id"] for row in rows if row.startswith("data: ")
            )
            os.killpg(process.pid, signal.SIGKILL)
            with pytest.raises(httpx.HTTPError):
                list(rows)
    with _process(home, port, tmp_path), httpx.Client(base_url=url, timeout=PATIENCE) as client:
        assert client.get(f"/v1/triages/{done}").json()["state"] == "done"
        assert client.get(f"/v1/triages/{begun}").json()["state"] in ("running", "failed", "done")
        assert client.post("/v1/triage", json={"text": LOG}).status_code == 200


@pytest.mark.long
def test_that_a_server_stops_when_it_is_told_to(api_home: Path, tmp_path: Path) -> None:
    """SIGTERM: within seconds, and its workers with it."""
    port = free_port()
    with _process(api_home, port, tmp_path) as process:
        process.terminate()
        assert process.wait(timeout=PATIENCE) in (0, -signal.SIGTERM)
        wait_for(lambda: not _is_group_alive(process.pid))


def _dense() -> bytes:
    """Make 58 kB of gzip that unpack to a row after a row that may hold a secret."""
    return gzip.compress(b"cookie: \n" * (60 << 17), 9)


def test_that_a_hostile_upload_is_ended_at_its_deadline(serve: Serve) -> None:
    """What takes secrets out of it is asked after each piece whether there is time left.

    Nothing of the batch remains.
    """
    with (
        serve(request_deadline=1.0) as address,
        httpx.Client(base_url=address.url, timeout=PATIENCE) as client,
    ):
        answer = client.post("/v1/batches", files=[("log", ("a.log.gz", _dense()))])
        assert (answer.status_code, answer.json()["type"]) == (504, "urn:whycrash:error:late")
        assert client.get("/v1/batches").json()["items"] == []


@pytest.mark.long
def test_that_a_server_stops_amid_a_hostile_upload(api_home: Path, tmp_path: Path) -> None:
    """SIGTERM while secrets are taken out of an upload: it ends all the same."""
    port, home = free_port(), tmp_path / "home"
    shutil.copytree(api_home, home, ignore=shutil.ignore_patterns("whycrash.db*", "batches"))
    with _process(home, port, tmp_path) as process, ThreadPoolExecutor(1) as thread:
        sent = thread.submit(_send, port, _dense())
        wait_for(lambda: list(home.glob("batches/*/spool/*/*")) or sent.done())
        assert not sent.done()
        process.terminate()
        assert process.wait(timeout=PATIENCE) in (0, -signal.SIGTERM)
        assert sent.result() in (0, 500, 503)
        wait_for(lambda: not _is_group_alive(process.pid))


def _send(port: int, raw: bytes) -> int:
    address = f"http://127.0.0.1:{port}"
    with suppress(httpx.HTTPError), httpx.Client(base_url=address, timeout=PATIENCE) as client:
        return client.post("/v1/batches", files=[("log", ("a.log.gz", raw))]).status_code
    return 0


@pytest.mark.long
def test_that_work_whose_client_left_is_ended(serve: Serve, api_home: Path) -> None:
    """The copies that were begun are gone long before the upload could be read."""
    before = set(api_home.glob("batches/*/spool"))
    with serve(request_deadline=3600.0) as address:
        with (
            pytest.raises(httpx.TimeoutException),
            httpx.Client(base_url=address.url, timeout=httpx.Timeout(60, read=3)) as client,
        ):
            client.post("/v1/batches", files=[("log", ("a.log.gz", _dense()))])
        wait_for(lambda: set(api_home.glob("batches/*/spool")) <= before, 20)


def _is_group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
