"""The kernel's log: the lines that speak of a GPU, of memory, of a disk or of a link that failed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ingest.logs.clock import parse_time
from ingest.logs.lines import printable
from ingest.redaction.redactor import Redactor
from service.telemetry.snapshot import Kernel, KernelEvent, KernelKind, known, unavailable

TIMEOUT_S = 10.0
MAX_LINES = 20000
MAX_EVENTS = 500
MAX_TEXT = 240


@dataclass(frozen=True, slots=True)
class KernelLineFormat:
    """What a line of the kernel says when something happened, in the format of the kernel or driver."""

    kind: KernelKind
    expression: re.Pattern[str]


_FORMATS: tuple[tuple[KernelKind, str], ...] = (
    # The driver's nv-report-err: "NVRM: Xid (PCI:0000:3b:00): 79, pid=..., name=..., text".
    (
        "xid",
        (
            r"NVRM: Xid \((?:PCI:)?(?P<device>[0-9a-fA-F:.]+)\): (?P<code>\d{1,4})\b(?:, "
            r"pid=(?P<pid>\d{1,9}))?(?:, name=(?P<process>[^,\s]+))?"
        ),
    ),
    ("sxid", r"SXid \((?:PCI:)?(?P<device>[0-9a-fA-F:.]+)\): (?P<code>\d{1,6})\b"),
    ("gpu-lost", r"NVRM:.{0,80}GPU (?:at )?(?P<device>[0-9a-fA-F:.]+)?.{0,80}fallen off the bus"),
    (
        "nvlink",
        (
            r"(?:NVRM|nvidia-nvlink|nvidia-nvswitch\d*):.{0,120}(?:NVLink|link).{0,60}(?:fatal|failed|is "
            r"down|inactive)"
        ),
    ),
    # mm/oom_kill.c: the victim, and the constraint's line that names the same task.
    (
        "oom-kill",
        (
            r"(?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process (?P<pid>\d{1,9}) "
            r"\((?P<process>[^)]{1,40})\)"
        ),
    ),
    ("oom-kill", r"oom-kill:constraint=\S+.{0,300}task=(?P<process>[^,]{1,40}),pid=(?P<pid>\d{1,9})"),
    (
        "machine-check",
        (
            r"mce: \[Hardware Error\]|EDAC .{0,60}\bUE\b|Machine check events logged|Hardware Error\]: "
            r".{0,80}(?:Fatal|Uncorrected)"
        ),
    ),
    (
        "pcie-error",
        (
            r"(?:AER: .{0,80}(?:Uncorrect|Fatal)|pcieport (?P<device>[0-9a-f:.]+): .{0,80}(?:Link "
            r"Down|severity=Uncorrect))"
        ),
    ),
    (
        "io-error",
        (
            r"(?:I/O error, dev (?P<device>\w+)|Remounting filesystem read-only|EXT4-fs error|XFS "
            r".{0,60}(?:corruption|shutdown)|nvme\w*: .{0,60}(?:timeout|reset controller))"
        ),
    ),
    (
        "link-down",
        (
            r"(?:(?P<device>mlx5_\d+|ib\d+|eth\d+|en[opsx]\w+|bond\d+).{0,60}(?:[Ll]ink (?:is )?[Dd]own|port "
            r"down|NIC Link is Down))"
        ),
    ),
    ("hung-task", r"INFO: task (?P<process>\S{1,40}):(?P<pid>\d{1,9}) blocked for more than \d+ seconds"),
    ("segfault", r"(?P<process>\S{1,40})\[(?P<pid>\d{1,9})\]: segfault at "),
)
MARKS: tuple[KernelLineFormat, ...] = tuple(
    KernelLineFormat(kind, re.compile(expression)) for kind, expression in _FORMATS
)

# `[13370.431632] ...` as dmesg prints it, or with a level before it.
_SINCE_BOOT = re.compile(r"^(?:<\d+>)?\[\s*(?P<seconds>\d{1,10}\.\d{1,6})\]")
# `[Fri Nov 21 15:02:11 2026] ...` as dmesg -T, `2026-11-21T15:02:11+0000 node kernel: ...` as journalctl -o
# short-iso, `Nov 21 15:02:11 node kernel: ...` as syslog.
_CLOCK = re.compile(
    r"^\[?(?P<clock>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: \d{4})?)"
)
_ZONED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("journalctl", "-k", "-o", "short-iso", "--no-pager", "-q", "-n", str(MAX_LINES)),
    ("dmesg",),
)


def parse_kernel_log(
    text: str, boot_time: float | None = None, year: int | None = None, utc_offset_s: float = 0.0
) -> Kernel:
    """Read the log's text.

    Times since boot need `boot_time`; clocks without a zone are local, `utc_offset_s` ahead.
    """
    clean = Redactor().clean
    events: list[KernelEvent] = []
    since: float | None = None
    for row in text.splitlines():
        if since is None:
            since = _time(row, boot_time, year, utc_offset_s)
        if may_be_event(row) and (event := _event(row, _time(row, boot_time, year, utc_offset_s))):
            events.append(
                event.model_copy(
                    update={"text": clean(printable(event.text)), "process": clean(printable(event.process))}
                )
            )
    return Kernel(since=since, events=known(tuple(_without_repeats(events))[-MAX_EVENTS:]))


def _time(row: str, boot_time: float | None, year: int | None, utc_offset_s: float) -> float | None:
    if match := _SINCE_BOOT.match(row):
        return None if boot_time is None else round(boot_time + float(match["seconds"]), 3)
    match = _CLOCK.match(row)
    when = parse_time(match["clock"], year) if match else None
    if match is None or when is None:
        return None
    return when if _ZONED.search(match["clock"]) else when - utc_offset_s


@lru_cache(maxsize=MAX_LINES)
def may_be_event(row: str) -> bool:
    """Tell whether a line says that something happened.

    A machine that is watched shows nearly the same lines each time.
    """
    return any(mark.expression.search(row) for mark in MARKS)


def _event(row: str, at: float | None) -> KernelEvent | None:
    for mark in MARKS:
        if match := mark.expression.search(row):
            told = match.groupdict()
            code, pid = told.get("code"), told.get("pid")
            return KernelEvent(
                kind=mark.kind,
                at=at,
                code=int(code) if code else None,
                device=told.get("device") or "",
                pid=int(pid) if pid else None,
                process=told.get("process") or "",
                text=row[:MAX_TEXT],
            )
    return None


def _without_repeats(events: Iterable[KernelEvent]) -> list[KernelEvent]:
    """Keep of the lines of one event the first: an OOM kill is told by its constraint and by its victim."""
    seen: dict[tuple[object, ...], KernelEvent] = {}
    for event in events:
        moment = round(event.at) if event.at is not None else event.text
        key = (event.kind, event.code, event.pid, event.device, moment if event.pid is None else "")
        seen.setdefault(key, event)
    return list(seen.values())


def read_kernel_log(
    boot_time: float | None,
    year: int,
    utc_offset_s: float,
    commands: Sequence[Sequence[str]] = COMMANDS,
    timeout_s: float = TIMEOUT_S,
) -> Kernel:
    """Read this machine's log with the first command that may."""
    reasons = []
    for command in commands:
        text, why = _run(command, timeout_s)
        if text.strip():
            return parse_kernel_log(text, boot_time, year, utc_offset_s)
        reasons.append(f"{command[0]}: {why or 'it shows nothing'}")
    return Kernel(events=unavailable("; ".join(reasons) or "no command to read it"))


def _run(command: Sequence[str], timeout_s: float) -> tuple[str, str]:
    try:
        done = subprocess.run(  # noqa: S603 - a command of the table above
            command, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer in {timeout_s:g} s"
    except OSError as error:
        return "", str(error.strerror or error)
    if done.returncode != 0:
        return "", done.stderr.decode("utf-8", "replace").strip()[:160] or f"exit code {done.returncode}"
    return done.stdout.decode("utf-8", "replace"), ""
