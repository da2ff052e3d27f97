"""Lines that are records: JSON of containers, journals and structured loggers, and `key="value"` lines.

Grammar: Docker's json-file driver, systemd.journal-fields(7), Google's LogEntry, structlog, logrus.
"""

from __future__ import annotations

import json
import re
from typing import Any

_MESSAGE = ("log", "message", "msg", "event", "MESSAGE", "textPayload")
_TIME = (
    "time",
    "timestamp",
    "ts",
    "@timestamp",
    "asctime",
    "_SOURCE_REALTIME_TIMESTAMP",
    "__REALTIME_TIMESTAMP",
)
_LEVEL = ("level", "levelname", "severity", "lvl")
_OTHER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("node", ("hostname", "_HOSTNAME", "host")),
    ("pid", ("process", "_PID", "pid")),
    ("rank", ("rank", "global_rank")),
)
_JOURNAL_MICROSECONDS = re.compile(r"\d{16}")
# What tells a structured logger's line from prose that happens to hold an equals sign.
_PAIRS = re.compile(r"(?:time|ts|timestamp|level|lvl|severity)=")
_PAIR = re.compile(r'(?<![\w.@])(?P<key>[\w.@]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>\S*)) ?')


def unwrap_record(text: str, fields: dict[str, str]) -> str | None:
    """Give the message of a record and note in `fields` what else it says.

    None where the line is no record.
    """
    if text.startswith('{"'):
        return _json(text, fields)
    if text.startswith("MESSAGE="):
        return text[8:]
    if text[:1] not in "tls" or not _PAIRS.match(text):
        return None
    pairs = {
        match["key"]: match["quoted"] if match["quoted"] is not None else match["bare"]
        for match in _PAIR.finditer(text)
    }
    return _message({key: value.replace('\\"', '"') for key, value in pairs.items()}, fields)


def _json(text: str, fields: dict[str, str]) -> str | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    payload = record.get("jsonPayload")
    return _message({**record, **payload} if isinstance(payload, dict) else record, fields)


def _message(record: dict[str, Any], fields: dict[str, str]) -> str | None:
    message = next((record[key] for key in _MESSAGE if isinstance(record.get(key), str)), None)
    time, level = _first(record, _TIME), _first(record, _LEVEL).upper()
    if _JOURNAL_MICROSECONDS.fullmatch(time):
        time = f"{time[:10]}.{time[10:]}"
    # A program's own data may have a key of that name; a record says when or how grave, or from which stream.
    if message is None or not (time or level or "stream" in record):
        return None
    _keep(fields, "time", time)
    _keep(fields, "level", level)
    for name, keys in _OTHER:
        _keep(fields, name, _first(record, keys))
    # A record's message may have several lines; the first says what it is.
    return str(message).rstrip("\r\n").split("\n", 1)[0]


def _first(record: dict[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(record[key]) for key in keys if isinstance(record.get(key), str | int | float)), "")


def _keep(fields: dict[str, str], key: str, value: str) -> None:
    if value and not fields.get(key):
        fields[key] = value
