"""Send the diagnosis of a failed job to a service, a webhook or Slack.

Redacted before it leaves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from corpus.message import Message
from ingest.redaction.redactor import Redactor
from service.monitoring.log_buffer import BufferStream
from service.schemas.diagnosis import Outcome
from service.schemas.errors import ServiceError

TIMEOUT = httpx.Timeout(30.0, read=180.0)


class NotificationError(ServiceError):
    """The answer could not be sent; it stands above, and the job's exit code is its own."""


def post_to_service(
    url: str,
    logs: Sequence[tuple[str, Iterator[bytes]]],
    configs: Sequence[tuple[str, bytes]] = (),
    snapshot: Path | None = None,
    key: str = "",
    outcome: Outcome | None = None,
) -> str:
    """Hand a job's logs in at a whycrash service, and give where its answer is; raises PostError."""
    clean = Redactor().clean
    files: list[tuple[str, tuple[str, Any]]] = [
        ("log", (name, BufferStream(Redactor().stream(chunks)))) for name, chunks in logs
    ]
    files += [("config", (path, clean(raw.decode("utf-8", "replace")).encode())) for path, raw in configs]
    if snapshot is not None:
        files.append(("telemetry", ("telemetry.json", snapshot.read_bytes())))
    base = url.rstrip("/")
    answer = _sent(f"{base}/v1/triage", key, files=files, data=outcome.fields if outcome else {})
    try:
        return f"{base}/?triage={answer.json()['id']}"
    except (ValueError, KeyError, TypeError) as error:
        raise NotificationError(Message("errors.answered-but-not-whycrash", base=base)) from error


def post_to_webhook(url: str, payload: dict[str, Any]) -> None:
    """Send a JSON object; raises PostError."""
    _sent(url, "", content=json.dumps(payload, ensure_ascii=False).encode())


def _sent(url: str, key: str, **body: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    if "content" in body:
        headers["content-type"] = "application/json"
    shown = "that address"
    with suppress(httpx.InvalidURL):
        shown = httpx.URL(url).host or shown  # a webhook's path is its secret
    try:
        # No redirect is followed: what is sent goes where it was said, or nowhere.
        answer = httpx.post(url, headers=headers, timeout=TIMEOUT, follow_redirects=False, **body)
    # A ValueError is a key that has letters which no header takes.
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        raise NotificationError(
            Message("errors.nothing-sent", shown=shown, name=type(error).__name__)
        ) from error
    if answer.status_code >= 300:
        detail = answer.reason_phrase
        with suppress(ValueError, KeyError, TypeError):
            detail = Redactor().clean(str(answer.json()["detail"]))[:300]
        raise NotificationError(
            Message("errors.answered", shown=shown, status_code=answer.status_code, detail=detail)
        )
    return answer
