"""Fetch the texts that pointers name; a text that is not the labelled one is refused."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx

from corpus.library import read_yaml
from eval.errors import FetchError
from eval.fresh.rounds import HOSTS, ROUNDS, FreshLog, Pointer

# Gives the bytes of a pointer of a log's repository.
Source = Callable[[FreshLog, Pointer], bytes]
_SECONDS = 30.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let a command be told where rounds lie, and their texts: as `rounds` and `folder`."""
    parser.add_argument("--rounds", type=Path, default=ROUNDS, help="folder of rounds, yours or ours")
    parser.add_argument(
        "--from",
        dest="folder",
        type=Path,
        metavar="DIR",
        help="take a round's texts from files named by their SHA-256 instead of from the public host",
    )


@contextmanager
def opened(folder: Path | None) -> Iterator[Source]:
    """Take texts from a folder where one is given, else from the public host."""
    if folder is not None:
        yield from_folder(folder)
        return
    with httpx.Client(timeout=_SECONDS) as client:
        yield from_host(client)


def from_folder(folder: Path) -> Source:
    """Take texts from a folder whose files are named by the SHA-256 of what they hold."""

    def read(log: FreshLog, pointer: Pointer) -> bytes:
        try:
            return _checked((folder / pointer.sha256).read_bytes(), log, pointer)
        except OSError as error:
            raise FetchError(f"{log.id}: {folder} has no file {pointer.sha256}: {error}") from error

    return read


def from_host(client: httpx.Client, address: str | None = None) -> Source:
    """Take texts from the public host; the address is the template of hosts.yaml unless another is given."""
    template = address or str(read_yaml(HOSTS)["address"])

    def read(log: FreshLog, pointer: Pointer) -> bytes:
        url = template.format(repository=log.repository, commit=log.commit, path=quote(pointer.path))
        try:
            answer = client.get(url, follow_redirects=True).raise_for_status()
        except httpx.HTTPError as error:
            raise FetchError(f"{log.id}: {url} cannot be fetched: {error}") from error
        return _checked(answer.content, log, pointer)

    return read


def shown(text: bytes, pointer: Pointer) -> bytes:
    """Cut the lines that a pointer names; a carriage return ends no line."""
    if pointer.lines is None:
        return text
    first, last = pointer.lines
    return b"\n".join(text.split(b"\n")[first - 1 : last])


def _checked(text: bytes, log: FreshLog, pointer: Pointer) -> bytes:
    found = hashlib.sha256(text).hexdigest()
    if found != pointer.sha256:
        raise FetchError(f"{log.id}: {pointer.path} has the SHA-256 {found}: it is not what was labelled.")
    return text
