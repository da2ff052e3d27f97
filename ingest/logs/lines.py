"""Take one raw line apart: who printed it, when, on which rank, and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Wider than what is shown, so that a secret that the shown part would cut is seen whole and masked first.
MAX_TEXT = 6000

# Each row takes one kind of prefix off the front; rows are tried again and again until none fits, since
# prefixes nest: Kubernetes' time, Slurm's label, Ray's actor and the logger's own head on one line.
_PREFIXES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("cri", re.compile(r"(?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) [FP] ")),
    ("pod", re.compile(r"\[pod/(?P<node>[\w.-]+)/[\w.-]+\] ")),
    ("ray", re.compile(
        r"\((?P<actor>[A-Za-z_][\w.:<> -]*?)(?: rank=(?P<rank>\d+))? pid=(?P<pid>\d+)(?:, ip=(?P<node>[\w.:-]+))?\) ")),
    ("daemon", re.compile(r"\((?P<actor>raylet|gcs_server|autoscaler|dashboard|log_monitor|plasma_store|driver)(?:, ip=(?P<node>[\w.:-]+)| [^)]{0,20})?\) ")),
    ("rank", re.compile(r"\[(?:rank|default)(?P<rank>\d{1,5})\]:? ?")),
    ("slurm", re.compile(r"\s{0,4}(?P<rank>\d{1,5}): ")),
    ("glog", re.compile(
        r"\[?(?P<level>[IWEF])(?:\d{3,4}|\d{8})? (?P<time>\d\d:\d\d:\d\d(?:\.\d+)?)\s+\d*\s*(?P<where>[\w./-]+:\d+)\] ")),
    ("raylet", re.compile(
        r"\[(?P<time>\d{4}-\d\d-\d\d [\d:,.]+)(?: (?P<level>[IWEFC]))? (?P<pid>\d+)(?: \d+)?\](?: \((?P<actor>[\w-]+)\))? (?P<where>[\w./-]+:\d+):? ")),
    ("vllm", re.compile(
        r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? \[(?P<where>[\w./-]+:\d+)\] ?")),
    ("time", re.compile(
        r"[\[(]?(?P<time>\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)[\])]?(?:,| -|:)?(?: |\t|$)")),
    ("syslog", re.compile(
        r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<node>[\w.-]+) (?=[\w.-]+(?:\[\d+\])?:)(?:[\w.-]+(?:\[\d+\])?: )")),
    ("dmesg", re.compile(r"\[(?P<time>\s*\d+\.\d{6}|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})\] ")),
    ("level", re.compile(r"\[?(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL)\]?(?: -|:)? (?=\S)")),
    ("host", re.compile(r"(?P<node>(?:worker|node|host|gpu|ip)[\w-]*\d): ")),
)


@dataclass(frozen=True, slots=True)
class Line:
    r"""One line, or one `\r` segment of it.

    `text` is the whole segment without escapes, `body` what stands after the prefixes. Each of the other
    fields is empty where the line does not say it.
    """

    number: int
    text: str
    body: str
    actor: str = ""
    pid: str = ""
    node: str = ""
    rank: str = ""
    time: str = ""
    level: str = ""

    @property
    def source(self) -> str:
        """Name the stream that printed the line; equal for lines of one process."""
        parts = [self.actor] if self.actor else []
        parts += [f"{key}={value}" for key, value in (("rank", self.rank), ("pid", self.pid), ("ip", self.node)) if value]
        return " ".join(parts)


def parse(raw: bytes, number: int, column: int | None = None) -> Line:
    r"""Parse a raw line; of a line redrawn with `\r`, the part that holds byte `column`, else the last."""
    segment, at = _segment(raw, column)
    text = _clipped(segment, at)
    fields: dict[str, str] = {}
    body = text
    for _ in range(6):
        rest = _peel(body, fields)
        if rest is None:
            break
        body = rest
    return Line(number, text, body, **{key: value for key, value in fields.items() if key != "where"})


def _peel(body: str, fields: dict[str, str]) -> str | None:
    for _, expression in _PREFIXES:
        match = expression.match(body)
        if match and match.end():
            for key, value in match.groupdict(default="").items():
                if value and not fields.get(key):
                    fields[key] = value.strip()
            return body[match.end():]
    return None


def _segment(raw: bytes, column: int | None) -> tuple[bytes, int]:
    if b"\r" not in raw:
        return raw, column or 0
    if column is None:
        filled = [part for part in raw.split(b"\r") if part.strip()]
        return (filled[-1] if filled else b""), 0
    begin = raw.rfind(b"\r", 0, column) + 1
    end = raw.find(b"\r", column)
    return raw[begin : len(raw) if end < 0 else end], column - begin


def _clipped(segment: bytes, at: int) -> str:
    if len(segment) > MAX_TEXT:
        # The middle of the cut is the match, so that what was found is also what is shown.
        begin = max(0, min(at - MAX_TEXT // 2, len(segment) - MAX_TEXT))
        segment = segment[begin : begin + MAX_TEXT]
    text = segment.decode("utf-8", "replace")
    return printable(text).rstrip()


def printable(text: str, keep: str = "\t") -> str:
    """Give text without control characters and marks of direction, which a terminal or page would act on."""
    if text.isprintable():
        return text
    return "".join(char for char in text if char in keep or char.isprintable())
