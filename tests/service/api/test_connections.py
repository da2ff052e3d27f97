"""Heads of requests that do not end, or hold too much: told so, and never kept beyond a bound."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from service.api import connections
from service.api.connections import HEAD_BYTES, MOST_HEADERS, PIPELINED, URL_BYTES, BoundedProtocol
from tests.service.api.conftest import Serve
from tests.service.api.serving import Address, received, wait_for

# Servers and processes of their own: `make test-all` runs them.
pytestmark = pytest.mark.long

MIB = 1 << 20
HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SMALL = b"".join(b"x%d: y\r\n" % number for number in range(10_000))
CHUNKED = (
    b"POST /v1/triage HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: "
    b"chunked\r\n\r\n"
)
# What is sent first, what is then sent without end, and what may be answered; nothing is a connection that
# was cut.
ENDLESS: dict[str, tuple[bytes, bytes, tuple[bytes, ...]]] = {
    "many small headers": (HEAD, SMALL, (b"431",)),
    "one header": (HEAD + b"X-A: ", b"a" * 65536, (b"431",)),
    "a header's name": (HEAD, b"a" * 65536, (b"431", b"400")),
    "a folded header": (HEAD + b"X-A: b\r\n", b" c\r\n" * 10_000, (b"431", b"400")),
    "blanks before a value": (HEAD + b"X-A:", b" " * 65536, (b"431",)),
    "the path": (b"GET /", b"a" * 65536, (b"414",)),
    "the query": (b"GET /healthz?", b"a=b&" * 10_000, (b"414",)),
    "line ends before a request": (b"", b"\r\n" * 10_000, (b"431",)),
    "a method": (b"", b"GET" * 10_000, (b"400",)),
    # The answer to what came before may be on its way already.
    "trailers": (CHUNKED + b"0\r\n", SMALL, (b"431", b"401", b"422", b"")),
    "one trailer": (CHUNKED + b"0\r\nX-A: ", b"a" * 65536, (b"431", b"401", b"422", b"")),
    "a chunk's extension": (CHUNKED + b"5;", b"a" * 65536, (b"431", b"401", b"422", b"")),
}
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


def _sent_on(address: Address, head: bytes, piece: bytes, most: int) -> bytes:
    """Send without end, up to `most` bytes; gives the status that came back, empty where none did."""
    told = b""
    with address.connect() as connection:
        try:
            connection.sendall(head)
            for _ in range(most // len(piece)):
                connection.sendall(piece)
        except OSError:
            pass  # the server has had enough
        with suppress(OSError):
            told = received(connection)
    return told[9:12]


@pytest.fixture(scope="module")
def process(api_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Address, int]]:
    """A server in a process of its own, whose memory can be read."""
    script = tmp_path_factory.mktemp("heads") / "serve_it.py"
    script.write_text(SERVER)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = Address("127.0.0.1", probe.getsockname()[1])
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen([sys.executable, script, api_home, str(address.port)], env=environment) as started:
        try:
            wait_for(lambda: _is_up(address))
            yield address, started.pid
        finally:
            started.terminate()


def _is_up(address: Address) -> bool:
    try:
        return httpx.get(f"{address.url}/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def _memory(pid: int) -> int:
    """Give how much memory a process holds, in bytes."""
    pages = Path("/proc", str(pid), "statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_that_endless_heads_are_told_so_and_take_no_memory(process: tuple[Address, int]) -> None:
    """Each 30 MiB: before there was a bound, ten times that much was kept of small headers.

    Others are served after.
    """
    address, pid = process
    before = _memory(pid)
    wrong = []
    for name, (head, piece, statuses) in ENDLESS.items():
        told = _sent_on(address, head, piece, 30 * MIB)
        grown = (_memory(pid) - before) / MIB
        # What the client still sends is not read any more, so that the answer may be lost on its way.
        if told not in (*statuses, b"") or grown > 60:
            wrong.append((name, told, grown))
    assert wrong == []
    assert httpx.get(f"{address.url}/healthz").status_code == 200


def test_that_many_at_once_take_no_memory_either(process: tuple[Address, int]) -> None:
    """Forty, 10 MiB each; the highest that is seen meanwhile counts."""
    address, pid = process
    before = highest = _memory(pid)
    with ThreadPoolExecutor(40) as threads:
        asked = [threads.submit(_sent_on, address, HEAD, SMALL, 10 * MIB) for _ in range(40)]
        while not all(one.done() for one in asked):
            highest = max(highest, _memory(pid))
            threading.Event().wait(0.02)
    assert (highest - before) / MIB < 80
    assert httpx.get(f"{address.url}/healthz").status_code == 200


def test_that_a_head_is_answered_by_what_is_in_it(serve: Serve) -> None:
    """Up to the bounds it is taken; beyond them it is told which, and the connection ends."""
    line = b"GET /healthz HTTP/1.1\r\n"
    host = b"Host: 127.0.0.1\r\n"
    heads = {
        "most headers": (line + host + b"x: y\r\n" * (MOST_HEADERS - 1), b"200"),
        "one header more": (line + host + b"x: y\r\n" * MOST_HEADERS, b"431"),
        "large headers": (line + host + b"x: " + b"y" * (HEAD_BYTES - 1000) + b"\r\n", b"200"),
        "too large headers": (line + host + b"x: " + b"y" * HEAD_BYTES + b"\r\n", b"431"),
        "too large headers together": (
            line + host + (b"x: " + b"y" * (HEAD_BYTES // 4) + b"\r\n") * 4,
            b"431",
        ),
        "chunked": (line + host + b"Transfer-Encoding: Chunked\r\n\r\n0\r\n", b"200"),
        **{
            f"coding {coding!r}": (line + host + b"Transfer-Encoding: " + coding + b"\r\n", b"501")
            for coding in (b"xchunked", b"identity", b"gzip", b"gzip, chunked")
        },
        "long query": (b"GET /healthz?" + b"q" * (URL_BYTES - 100) + b" HTTP/1.1\r\n" + host, b"200"),
        "too long query": (b"GET /healthz?" + b"q" * URL_BYTES + b" HTTP/1.1\r\n" + host, b"414"),
        "two hosts": (line + host + b"Host: localhost\r\n", b"400"),
        "the same host twice": (line + host + b"hOST: 127.0.0.1\r\n", b"400"),
    }
    with serve() as address:
        found = {}
        for name, (head, _) in heads.items():
            with address.connect() as connection:
                connection.sendall(
                    head + b"Connection: close\r\n\r\n" if name != "most headers" else head + b"\r\n"
                )
                found[name] = connection.recv(65536)[9:12]
    assert found == {name: status for name, (_, status) in heads.items()}


def test_that_who_opens_many_connections_keeps_nobody_out(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where too many have sent no head yet, the one that has tried longest goes.

    Above all connections, the new one does.
    """
    monkeypatch.setattr(BoundedProtocol, "heads", 5)
    with serve() as address:
        silent = [address.connect() for _ in range(12)]
        for connection in silent[:7]:
            assert _is_ended(connection)
        assert httpx.get(f"{address.url}/healthz").status_code == 200
        monkeypatch.setattr(BoundedProtocol, "connections_at_once", 0)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{address.url}/healthz")
        for connection in silent:
            connection.close()


def _is_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_that_line_ends_between_requests_hold_no_connection(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They begin no request, and each of them would put off the end of an idle connection."""
    monkeypatch.setattr(BoundedProtocol, "head_timeout", 0.5)
    with serve() as address, address.connect() as connection:
        connection.sendall(HEAD + b"\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            piece = connection.recv(65536)
            assert piece
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200")
        connection.sendall(b"\r\n")
        assert received(connection) == b""


def test_that_requests_that_wait_on_one_connection_are_bounded(serve: Serve) -> None:
    """Thousands fit into one packet; the connection of who sends so many ends, and the server goes on."""
    with serve() as address:
        with address.connect() as connection:
            connection.sendall((HEAD + b"\r\n") * 1000)
            try:
                told = received(connection)
            except ConnectionResetError:
                told = b""
        assert told.count(b"HTTP/1.1 200") <= PIPELINED + 1
        with address.connect() as connection:
            connection.sendall((HEAD + b"\r\n") * (PIPELINED - 1) + HEAD + b"Connection: close\r\n\r\n")
            assert received(connection).count(b"HTTP/1.1 200") == PIPELINED


def test_that_no_answer_is_put_into_another_ones_midst(serve: Serve) -> None:
    """What follows a request and is none ends the connection, whose answer may be lost.

    It is not told as a part of it.
    """
    with serve() as address, address.connect() as connection:
        connection.sendall(HEAD + b"\r\n" + b"\x00 no request \r\n\r\n")
        try:
            told = received(connection)
        except ConnectionResetError:
            told = b""
    assert told.count(b"HTTP/1.1") <= 1


def test_that_the_clocks_of_connections_are_stopped_with_them(serve: Serve) -> None:
    """Else each would be kept for its whole time: the waiting ones are known by name, and none is left."""
    with serve() as address:
        for _ in range(5):
            with address.connect() as connection:
                connection.sendall(HEAD + b"Connection: close\r\n\r\n")
                received(connection)
        wait_for(lambda: not any(connections.OPEN_HEADS.values()))
