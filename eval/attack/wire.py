"""Attacks by bytes: heads without end, two readings of one request, other names, bodies of any size."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress

from eval.attack.target import Attack, Target

MIB = 1 << 20
# What a flood of heads may cost the server's memory.
_MOST_MEMORY = 96 * MIB


def _head(target: Target, *rows: bytes, path: bytes = b"/healthz", method: bytes = b"GET") -> bytes:
    return b"\r\n".join(
        (method + b" " + path + b" HTTP/1.1", f"Host: 127.0.0.1:{target.port}".encode(), *rows, b"", b"")
    )


def _other_names(target: Target) -> str:
    """Reach the server by a name that was made to resolve to it, by two, and from another site's page."""
    own = f"127.0.0.1:{target.port}".encode()
    rows = (
        ("another Host", b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        ("no Host", b"GET /healthz HTTP/1.1\r\n\r\n", 421),
        ("ours first", b"GET /healthz HTTP/1.1\r\nHost: " + own + b"\r\nHost: evil.example\r\n\r\n", 400),
        ("ours last", b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nHost: " + own + b"\r\n\r\n", 400),
        ("a name in front", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 421),
        ("a user in front", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\n\r\n", 421),
        ("another origin", _head(target, b"Origin: http://evil.example", method=b"POST"), 403),
        ("an opaque origin", _head(target, b"Origin: null", method=b"POST"), 403),
        ("a cross-site form", _head(target, b"Sec-Fetch-Site: cross-site", method=b"POST"), 403),
    )
    fell = [f"{name}: {told}" for name, raw, status in rows if (told := target.status_of(raw, 5)) != status]
    return ", ".join(fell)


def _two_readings(target: Target) -> str:
    """Send requests that two servers in a row would read differently."""
    body = b"GET /v1/triages HTTP/1.1\r\nX: y\r\n\r\n"
    length = b"Content-Length: %d" % len(body)
    rows = (
        ("two lengths", _head(target, b"Content-Length: 5", length, method=b"POST") + body),
        ("length and chunks", _head(target, length, b"Transfer-Encoding: chunked", method=b"POST") + body),
        ("a signed length", _head(target, b"Content-Length: +5", method=b"POST") + b"hello"),
        ("a blank before the colon", _head(target, b"Content-Length : 5", method=b"POST") + b"hello"),
        ("a bare line end", _head(target, b"A: b\nContent-Length: 5", method=b"POST") + b"hello"),
        ("an unknown coding", _head(target, b"Transfer-Encoding: xchunked", method=b"POST") + body),
        ("no coding at all", _head(target, b"Transfer-Encoding: identity", method=b"POST") + body),
    )
    fell = []
    for name, raw in rows:
        told = target.exchange(raw, 5)
        if told.count(b"HTTP/1.1 ") != 1 or b"HTTP/1.1 2" in told:
            fell.append(f"{name}: {told[:40]!r}")
    return ", ".join(fell)


def _floods_of_heads(target: Target) -> str:
    """Send headers, a path, line ends and trailers without end, and look at the server's memory."""
    before = target.memory()
    many = b"".join(b"X-%d: %s\r\n" % (number, b"a" * 40) for number in range(200_000))
    rows = (
        ("many headers", _head(target, many[:-2]), (431, 0)),
        ("one long header", _head(target, b"X: " + b"a" * (8 * MIB)), (431, 0)),
        ("a long path", _head(target, path=b"/" + b"a" * (8 * MIB)), (414, 431, 0)),
        ("line ends", b"\r\n" * (4 * MIB), (400, 431, 0)),
        (
            "trailers",
            _head(target, b"Transfer-Encoding: chunked", method=b"POST", path=b"/v1/triage")
            + b"0\r\n"
            + many,
            (400, 401, 431, 0),
        ),
    )
    fell = [f"{name}: {told}" for name, raw, fits in rows if (told := target.status_of(raw)) not in fits]
    grown = target.memory() - before
    return ", ".join(fell + ([f"{grown // MIB} MiB more memory"] if grown > _MOST_MEMORY else []))


def _slow_heads(target: Target) -> str:
    """Hold six hundred connections whose heads never end; others are to be served meanwhile."""
    with ExitStack() as held:
        for _ in range(600):
            with suppress(OSError):
                connection = held.enter_context(
                    socket.create_connection(("127.0.0.1", target.port), timeout=5)
                )
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        began = time.monotonic()
        with target.client() as client:
            told = client.get("/healthz").status_code
        seconds = time.monotonic() - began
    return "" if told == 200 and seconds < 10 else f"{told} after {seconds:.0f} s"


def _endless_bodies(target: Target) -> str:
    """Announce ten gigabytes, and send a body in chunks that never ends."""
    token = f"Authorization: Bearer {target.tokens['triage']}".encode()
    kind = b"Content-Type: application/json"
    large = _head(target, token, kind, b"Content-Length: 10000000000", method=b"POST", path=b"/v1/triage")
    chunked = _head(target, token, kind, b"Transfer-Encoding: chunked", method=b"POST", path=b"/v1/triage")
    piece = b"100000\r\n" + b" " * MIB + b"\r\n"
    before = target.memory()
    told = {"announced": target.status_of(large), "in chunks": target.status_of(chunked + piece * 64, 30)}
    fell = [f"{name}: {status}" for name, status in told.items() if status != 413]
    grown = target.memory() - before
    return ", ".join(fell + ([f"{grown // MIB} MiB more memory"] if grown > 2 * _MOST_MEMORY else []))


ATTACKS = (
    Attack("Other names, two Hosts, other origins", _other_names),
    Attack("Requests with two readings", _two_readings),
    Attack("Heads without end", _floods_of_heads),
    Attack("Connections that send no head", _slow_heads),
    Attack("Bodies without end", _endless_bodies),
)
