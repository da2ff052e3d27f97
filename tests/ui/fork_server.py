"""Run commands in processes forked from one that has imported the program.

A start costs some ten milliseconds in place of most of a second. Each command is a process of its own all the
same, with its streams, environment, folder and exit code, and ends as any other does. What is told by how the
interpreter starts (`PYTHON*` variables, closed streams) needs a start of its own.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from ingest import chinese_words
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
# The variable that names the folder in which the tests keep what they compile.
COMPILED = "TESTS_COMPILED"
_MOST = 1 << 16
_SAMPLE = ROOT / "eval/incidents/w-tinyzero-h20-cublas-sigfpe/log.txt"


class ForkServer:
    """The process that forks, as those who ask see it: one command at a time.

    `peak_kib` and `cpu_s` are what the last command used; the pages of the process that it was forked from
    count among its own.
    """

    def __init__(self) -> None:
        self.peak_kib, self.cpu_s = 0, 0.0
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(PATIENCE)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.ui.fork_server", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                # A process with threads cannot be forked.
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "OPENBLAS_NUM_THREADS": "1",
                    "OMP_NUM_THREADS": "1",
                },
                stdin=subprocess.DEVNULL,
            )

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], folder: Path, given: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `whycrash` with these arguments to its end."""
        asked = json.dumps({"words": list(words), "environment": dict(environment), "folder": str(folder)})
        assert len(asked) < _MOST
        assert len(given) < _MOST  # what a pipe holds, so that nobody need write while the command reads
        with TemporaryFile() as out, TemporaryFile() as err:
            source, feed = os.pipe()
            try:
                with os.fdopen(feed, "wb") as written:
                    written.write(given)
                socket.send_fds(self._socket, [asked.encode()], [source, out.fileno(), err.fileno()])
            finally:
                os.close(source)
            try:
                code, self.peak_kib, self.cpu_s = json.loads(self._socket.recv(_MOST))
            except TimeoutError:
                self._process.kill()
                raise
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(words, code, out.read(), err.read())

    def close(self) -> None:
        """End the process."""
        self._socket.close()
        self._process.wait()


@cache
def server() -> ForkServer:
    """Give the server of this process, which ends with it."""
    made = ForkServer()
    atexit.register(made.close)
    return made


def _warm_up(home: Path) -> None:
    """Answer once: what each command would read and compile of the knowledge is there for all that follow.

    Nothing of it belongs to the home, which is read alone; no thread is left that a fork would lose.
    """
    from ingest.logs.inputs import sources
    from service.pipeline.triage import Triage
    from service.settings import Settings

    triage = Triage(Settings(home=home, embedding_model="hash"))
    triage.diagnose(triage.read(sources.from_path(_SAMPLE), "", [], None, None), None)
    gc.freeze()


def _keep_dictionary(table: Path) -> None:
    """Have all commands share the words that an index is written with, which take two seconds to make.

    The first command that asks for them leaves them for all others; nothing of them is in this process.
    """
    make = chinese_words._dictionary

    def kept() -> chinese_words.WordFrequencies:
        if not table.exists():
            part = table.with_suffix(f".{os.getpid()}")
            make().write(part)
            part.replace(table)
        return chinese_words.WordFrequencies.read(table)

    chinese_words._dictionary = kept


def _serve(asking: socket.socket) -> None:
    """Fork for each command that is asked for; returns in the process that is to run one."""
    is_warm = False
    while True:
        asked, streams, _, _ = socket.recv_fds(asking, _MOST, 3)
        if not asked:
            os._exit(0)
        home = Path(json.loads(asked)["environment"].get("WHYCRASH_HOME", ""))
        if not is_warm and (home / "cache").is_dir() and (home / "index").is_dir():
            _warm_up(home)
            is_warm = True
        if os.fork() == 0:
            break
        for descriptor in streams:
            os.close(descriptor)
        _, status, used = os.wait4(-1, 0)
        ended = os.waitstatus_to_exitcode(status), used.ru_maxrss, used.ru_utime + used.ru_stime
        asking.send(json.dumps(ended).encode())
    asking.close()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    wanted = json.loads(asked)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    sys.argv = ["whycrash", *wanted["words"]]


if __name__ == "__main__":
    # What its commands import when they are called, and what each would compile, is here already.
    from corpus import message
    from ingest.redaction.prefilter import load_prefilter, save_prefilter
    from ui.cli import batch, corpus, explain, ingest, run, search  # noqa: F401
    from ui.cli.main import main

    save_prefilter(Path(os.environ[COMPILED]))
    load_prefilter()
    # Beside the folder, which is that of a home.
    _keep_dictionary(Path(os.environ[COMPILED]).parents[1] / "chinese.words")
    for name in message.files():
        message.rows(name)
    # A child would copy each page of what is here whose objects its collector walks through.
    gc.set_threshold(500_000)
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    main()
