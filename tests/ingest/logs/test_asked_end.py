"""Who is told to end takes its engines along: what they say then is no failure, what was said before is."""

from __future__ import annotations

from tests.factories import OOM, ReadLog, prefixed, traceback
from tests.tables import each_row

SERVER, ENGINE = "(APIServer pid=11) INFO 05-04 10:20:31 ", "(EngineCore pid=12) INFO 05-04 10:20:31 "
UP = "INFO:     Application startup complete.\n"
ASKED = f"{SERVER}[launcher.py:100] [shutdown] API server: shutdown triggered\n"
ASKED_BEFORE = "INFO 05-04 10:20:31 [launcher.py:80] Shutting down FastAPI HTTP server.\n"
SIGNALLED = f"{ENGINE}[core.py:1178] [shutdown] EngineCore: trigger received signal=SIGTERM\n"
DEAD = traceback("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.")
SERVED = (
    '[2026-04-17 00:38:58] INFO:     127.0.0.1:548 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    "[2026-04-17 00:39:10] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
)
DRAINED = "[2026-04-17 00:39:14] Gracefully exiting... Remaining number of requests {}. remaining_rids=[].\n"
CLOSED = "INFO:     Shutting down\nINFO:     Application shutdown complete.\n"


@each_row(
    "text",
    [
        UP + ASKED + SIGNALLED + DEAD + CLOSED,
        UP + SIGNALLED + ASKED + DEAD + CLOSED,
        UP + ASKED + CLOSED + DEAD,
        UP + ASKED_BEFORE + DEAD + CLOSED,
        SERVED + DRAINED.format(0),
    ],
)
def test_that_an_engine_which_its_server_ends_when_told_to_is_no_failure(text: str, read: ReadLog) -> None:
    report = read(text)
    assert report.root is None
    assert report.log_end.kind == "closed"
    assert {event.role for event in report.events} <= {"teardown"}


CRASHED = "[2026-04-17 00:39:11] Subprocess detokenizer (pid=345) crashed with exit code {}. Triggering it.\n"
QUIT = "[2026-04-17 00:39:11] SIGQUIT received. signum=None, frame=None. It means one child failed.\n"


def test_that_a_child_which_the_asking_signal_ends_has_not_failed(read: ReadLog) -> None:
    assert read(UP + SERVED + CRASHED.format(-15) + QUIT).root is None
    assert read(UP + SERVED + CRASHED.format(-9) + QUIT).root is not None
    assert read(UP + CRASHED.format(-15) + QUIT).root is not None


def test_that_an_interrupt_of_an_asked_end_is_no_failure(read: ReadLog) -> None:
    interrupt = traceback("KeyboardInterrupt: MQLLMEngine terminated")
    assert read(UP + ASKED_BEFORE + interrupt + CLOSED).root is None
    assert read(UP + interrupt + CLOSED).root is not None


@each_row(
    "text",
    [
        # The engine died first, and the server went down because of it, told to or not.
        UP + DEAD + ASKED + CLOSED,
        SERVED + DRAINED.format(3) + DEAD,
        UP + DEAD + CLOSED,
        UP + SIGNALLED + DEAD + CLOSED,
        # Nobody saw it come to its end.
        UP + ASKED + DEAD,
        # A failure of its own, while it ends.
        UP + ASKED + prefixed("(EngineCore pid=12) ", traceback(OOM)) + CLOSED,
        # A later run of the same file.
        UP + ASKED + CLOSED + 20 * "INFO: loading\n" + UP + DEAD + CLOSED,
    ],
)
def test_that_what_fails_before_or_besides_the_end_stands(text: str, read: ReadLog) -> None:
    assert read(text).root is not None
