"""The server's log as a JSON object a line, with the trace that a line belongs to."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from service.signals import tracing


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one; a stack stays in one field."""
        told = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        parts = tracing.current().split("-")
        if len(parts) == 4:
            told |= {"trace_id": parts[1], "span_id": parts[2]}
        if record.exc_info:
            told["stack"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)
