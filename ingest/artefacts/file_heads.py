"""Tell by a file's first bytes whether it is one that is read beside a log; every file of a job is asked."""

from __future__ import annotations

import re
from typing import Literal

PICKLES = tuple(bytes((0x80, version)) for version in (2, 3, 4, 5))
# So many of its first bytes tell what a file is.
HEAD = 4096

ArtefactKind = Literal["flight-recorder", "stacks", "status"]

# Keys of an entry since the first version; two of them near the beginning tell a dump from other pickles.
_KEYS = (
    b"record_id",
    b"profiling_name",
    b"input_sizes",
    b"time_created_ns",
    b"pg_config",
    b"collective_seq_id",
    b"version",
)
# py-spy's second line follows its first at once; what `ray stack` and shells say above is a line or two.
_PY_SPY = re.compile(
    rb"(?:[^\n]{0,300}\n){0,4}[^\n]{0,80}?Process \d{1,10}: [^\n]{0,2000}\n[^\n]{0,80}?Python v\d"
)
_PY_SPY_JSON = (b'"thread_id"', b'"owns_gil"', b'"frames"')
# What a scheduler or platform says of a job: words near the beginning, all of one row.
_STATUS = (
    (b'"State"', b'"Status"', b'"ExitCode"'),
    (b'"apiVersion"', b'"kind"', b'"metadata"'),
    (b'"apiVersion"', b'"items"', b'"kind"'),
    (b'"jobs"', b'"job_id"'),
    (b'"jobs"', b'"array_job_id"'),
    (b'"jobs"', b'"account"', b'"association"'),
)
# gdb that looks at a process; one that runs it writes a log.
_GDB = re.compile(rb"\s*(?:\[New LWP \d|Thread \d+ \((?:Thread 0x|LWP ))")
_FAULT = re.compile(rb"\s*(?:Timeout \(\d+:\d\d:\d\d[^\n]{0,20}\)!\n)?(?:Current thread|Thread) 0x[0-9a-f]+ ")
# faulthandler writes into a rank's own log, too: a file is a dump where it holds nothing else.
_FAULT_ROW = re.compile(
    rb'  File "|(?:Current thread|Thread) 0x|Timeout \(\d|  \.\.\.|  <no Python frame>|\s*$'
)


def is_dump(head: bytes) -> bool:
    """Tell by its first bytes, HEAD of them, whether a file is one that is read beside a log."""
    return artefact_kind(head) is not None


def artefact_kind(head: bytes) -> ArtefactKind | None:
    """Tell by its first bytes, HEAD of them, what a tool wrote; None where it may be anything."""
    begin = head.lstrip()[:1]
    if (head.startswith(PICKLES) or begin in (b"{", b"[")) and sum(key in head for key in _KEYS) >= 2:
        return "flight-recorder"
    if begin in (b"{", b"[") and any(all(word in head for word in words) for words in _STATUS):
        return "status"
    if begin == b"[" and all(key in head for key in _PY_SPY_JSON):
        return "stacks"
    if _PY_SPY.match(head) or _GDB.match(head) or (_FAULT.match(head) and _is_all_stack(head)):
        return "stacks"
    return None


def _is_all_stack(head: bytes) -> bool:
    rows = head.split(b"\n")
    return all(_FAULT_ROW.match(row) for row in (rows[:-1] if len(head) >= HEAD else rows))
