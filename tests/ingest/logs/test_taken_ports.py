"""A listener that is refused its address because another has it, whatever the program says it with."""

from __future__ import annotations

from tests.factories import ReadLog, traceback
from tests.tables import each_row

GRPC = "set GRPC_VERBOSITY=debug environment variable to see detailed error message."
CORE = '"No address added out of total 1 resolved","file_line":395,"os_error":"{why}","syscall":"bind"'
THROWN = (
    "terminate called after throwing an instance of 'boost::system::system_error'\n  what():  bind: {why}\n"
)
JAVA = 'Exception in thread "main" java.net.BindException: {why}\n\tat sun.nio.ch.Net.bind0(Native Method)\n'
UVICORN = "ERROR:    [Errno {number}] error while attempting to bind on address ('0.0.0.0', 8000): {why}\n"
TAKEN = "Address already in use"


@each_row(
    "text, cause",
    [
        (traceback(f"RuntimeError: Failed to bind to address [::]:7001; {GRPC}"), "port-in-use"),
        (f"E0826 01:00:01.1 7 server.cc:40] {{{CORE.format(why=TAKEN)}}}\n", "port-in-use"),
        (UVICORN.format(number=98, why=TAKEN.lower()), "port-in-use"),
        ("2026/01/02 03:04:05 listen tcp :8080: bind: address already in use\n", "port-in-use"),
        ("Error: Address already in use (os error 98)\n", "port-in-use"),
        ("Error: listen EADDRINUSE: address already in use :::3000\n", "port-in-use"),
        (JAVA.format(why=TAKEN), "port-in-use"),
        (THROWN.format(why=TAKEN + " [system:98]") + "Aborted (core dumped)\n", "port-in-use"),
        ("[2026-01-02 03:04:05 +0000] [7] [ERROR] Connection in use: ('0.0.0.0', 8000)\n", "port-in-use"),
        ("Error: Socket '0.0.0.0:8000' already in use\n", "port-in-use"),
        (
            traceback("OSError: [WinError 10048] Only one usage of each socket address is permitted"),
            "port-in-use",
        ),
        # Who may not listen there, or has no such address, need not look for another listener.
        (THROWN.format(why="Permission denied [system:13]") + "Aborted (core dumped)\n", "native-crash"),
        (f"E0826 01:00:01.1 7 server.cc:40] {{{CORE.format(why='Permission denied')}}}\n", None),
    ],
)
def test_that_a_refused_bind_is_a_taken_port_whatever_the_program(
    text: str, cause: str | None, read: ReadLog
) -> None:
    root = read(text).root
    assert (root and root.cause) == cause
