"""Threads share the heaps that a server has."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from service.app.heaps import HEAPS
from tests.warm import ROOT

# glibc tells its heaps as XML.
_MANY = """
import ctypes, sys, tempfile, threading
from service.app import heaps

c = ctypes.CDLL(None)
c.fdopen.restype = ctypes.c_void_p
c.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
c.fflush.argtypes = [ctypes.c_void_p]
if sys.argv[1] == "bound":
    heaps.bound_heaps()
together = threading.Barrier(30)

def work():
    together.wait()
    made = [bytes(5000) for _ in range(50)]
    together.wait()

threads = [threading.Thread(target=work) for _ in range(30)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with tempfile.TemporaryFile() as told:
    stream = c.fdopen(told.fileno(), b"w")
    c.malloc_info(0, stream)
    c.fflush(stream)
    told.seek(0)
    print(told.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="heaps are told by glibc alone")
def test_that_thirty_threads_share_two_heaps() -> None:
    """Else each of a server's threads keeps what it once needed at most."""

    def heaps(word: str) -> int:
        ended = subprocess.run(
            [sys.executable, "-c", _MANY, word],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            text=True,
        )
        return int(ended.stdout)

    assert heaps("bound") <= HEAPS < heaps("free")
