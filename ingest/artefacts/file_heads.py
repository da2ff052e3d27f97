"""Tell by a file's first bytes whether it is one that is read beside a log; every file of a job is asked."""

from __future__ import annotations

import re
import struct
from typing import Literal

from corpus import hardware_readings

PICKLES = tuple(bytes((0x80, version)) for version in (2, 3, 4, 5))
# So many of its first bytes tell what a file is.
HEAD = 4096

ArtefactKind = Literal["flight-recorder", "stacks", "status", "hardware", "memory", "ras", "series", "core"]

# The first bytes of a file in the ELF format (elf(5)): 64 bits, the order of bytes, and what kind of file.
_ELF, _ELF_64, _ELF_CORE = b"\x7fELF", 2, 4
_ORDERS = {1: "<", 2: ">"}

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
# Keys of a snapshot of GPU memory, and of its first segment or, where it has none, of its traces.
_MEMORY = (b"total_size", b"allocated_size", b"segment_type", b"device_traces", b"allocator_settings")
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
    (b'"TrainingJobStatus"', b'"SecondaryStatus"'),
    (b'"jobs"', b'"jobId"', b'"jobQueue"'),
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
# What NCCL's RAS answers, as text and as JSON.
_RAS = re.compile(rb"NCCL version [^\n]{1,200}\n(?:[^\n]{0,200}\n){0,6}Job summary\s*\n={5,}")
_RAS_JSON = (b'"nccl_version"', b'"communicators_count"', b'"communicators"')
# Numbers over steps: TensorBoard's first event, the state of transformers' trainer, W&B's summary.
_EVENTS = re.compile(rb".{12}[^\n]{0,40}brain\.Event:\d", re.DOTALL)
_SERIES = ((b'"log_history"', b'"global_step"'), (b'"_step"', b'"_runtime"', b'"_timestamp"'))
# A metric's file of MLflow (mlflow/store/tracking/file_store.py): time in milliseconds, value and step.
_MLFLOW = re.compile(rb"(?:\d{13} [-+.\w]{1,40} \d{1,12}\n){3}")
# Rows of JSON over steps; a row with words is a log's.
_NUMBER = rb'(?:[-+.\w]{1,40}|"(?:NaN|-?Infinity|[\dT:.+Z -]{8,40})")'
_ROW = re.compile(rb'\{(?:"[^"\\]{1,200}": ?' + _NUMBER + rb",? ?)+\}\s*")
_STEP = re.compile(rb'"(?:_|global_)?(?:step|iteration)": ?\d')


def is_step_rows(head: bytes) -> bool:
    """Tell whether a file begins with rows of JSON that hold a step and numbers, and no words."""
    rows = head.split(b"\n", 3)[:3]
    return len(rows) == 3 and all(_STEP.search(row) and _ROW.fullmatch(row) for row in rows)


def is_metric(head: bytes) -> bool:
    """Tell whether a file is one metric as MLflow keeps it."""
    return _MLFLOW.match(head) is not None


def core_order(head: bytes) -> str | None:
    """Give the order of bytes of a core file of 64 bits, as struct writes it; None for any other file."""
    if not head.startswith(_ELF) or len(head) < 64 or head[4] != _ELF_64:
        return None
    order = _ORDERS.get(head[5])
    return order if order and struct.unpack_from(f"{order}H", head, 16)[0] == _ELF_CORE else None


def is_dump(head: bytes) -> bool:
    """Tell by its first bytes, HEAD of them, whether a file is one that is read beside a log."""
    return artefact_kind(head) is not None


def is_also_log(head: bytes) -> bool:
    """Tell whether a dump is read as a log too: a report as text, which may stand at a log's beginning."""
    if is_step_rows(head):
        return True
    return artefact_kind(head) in ("hardware", "ras") and head.lstrip()[:1] not in (b"{", b"[")


def artefact_kind(head: bytes) -> ArtefactKind | None:
    """Tell by its first bytes, HEAD of them, what a tool wrote; None where it may be anything."""
    if core_order(head):
        return "core"
    begin = head.lstrip()[:1]
    if (head.startswith(PICKLES) or begin in (b"{", b"[")) and sum(key in head for key in _KEYS) >= 2:
        return "flight-recorder"
    if head.startswith(PICKLES) and sum(key in head for key in _MEMORY) >= 2:
        return "memory"
    if _RAS.search(head) or (begin == b"{" and all(word in head for word in _RAS_JSON)):
        return "ras"
    if _EVENTS.match(head) or is_metric(head) or is_step_rows(head):
        return "series"
    if begin == b"{" and any(all(word in head for word in words) for words in _SERIES):
        return "series"
    if begin in (b"{", b"[") and any(all(word in head for word in words) for words in _STATUS):
        return "status"
    if begin == b"[" and all(key in head for key in _PY_SPY_JSON):
        return "stacks"
    # A log may begin with a stack; a dump holds nothing else. The last row of a whole HEAD may be cut.
    rows = head.split(b"\n")[: -1 if len(head) >= HEAD else None]
    if _PY_SPY.match(head) or _GDB.match(head) or (_FAULT.match(head) and all(map(_FAULT_ROW.match, rows))):
        return "stacks"
    # What tools report of cards and ports, as corpus/hardware_readings.yaml tells them apart.
    return "hardware" if hardware_readings.load().of(head.decode("utf-8", "replace")) else None
