"""A client of the service for programs: typed, small, and with the service's own errors as exceptions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter

from corpus.message import Message
from service.schemas.diagnosis import CaseHit, Diagnosis, Outcome
from service.schemas.errors import LateError, UnreachableError
from service.schemas.events import Event, FinalAnswer, TriageFailed, TurnAnswered
from service.schemas.failures import error_of
from service.schemas.records import BatchRecord, Crash, CrashState, FeedbackRecord, TriageRecord

M = TypeVar("M", bound=BaseModel)

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event)
# Longer than the server gives a triage by default, so that its own word comes first.
TIMEOUT = 150.0
Seen = Callable[[BatchRecord], None]


class Client:
    """Asks one server. A context manager; safe to use from several threads.

    Raises the errors of `service.schemas.errors` by what the server answers, UnreachableError where it does
    not.
    """

    def __init__(self, url: str = "http://127.0.0.1:8642", key: str = "", timeout: float = TIMEOUT) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=10.0),
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def triage(
        self,
        log: str | Path | Sequence[Path],
        *,
        configs: Sequence[Path] = (),
        telemetry: Path | None = None,
        name: str = "",
        language: str = "",
        model: bool = True,
        outcome: Outcome | None = None,
        idempotency_key: str = "",
    ) -> Diagnosis:
        """Say why a job died.

        `log` is a text, or the files that the job wrote, `outcome` how it ended as far as you know.
        """
        with _handed(log, configs, telemetry, name, language, model, outcome) as sent:
            return Diagnosis.model_validate_json(
                self._ask("POST", "/v1/triage", headers=_idempotency_header(idempotency_key), **sent)
            )

    def stream(
        self,
        log: str | Path | Sequence[Path],
        *,
        configs: Sequence[Path] = (),
        telemetry: Path | None = None,
        name: str = "",
        language: str = "",
        model: bool = True,
        outcome: Outcome | None = None,
    ) -> Iterator[Event]:
        """Say why a job died, event by event; raises what the last event tells where it is an error."""
        with _handed(log, configs, telemetry, name, language, model, outcome) as sent:
            yield from self._events("/v1/triage", **sent)

    def record(self, triage_id: str) -> TriageRecord:
        """Give a triage; raises NotFoundError."""
        return self._get(TriageRecord, f"/v1/triages/{triage_id}")

    def ask(self, triage_id: str, question: str) -> TurnAnswered:
        """Ask on about a triage; raises NotFoundError, ConflictError while it runs."""
        return TurnAnswered.model_validate_json(
            self._ask("POST", f"/v1/triages/{triage_id}/messages", json={"text": question})
        )

    def asking(self, triage_id: str, question: str) -> Iterator[Event]:
        """Ask on about a triage, event by event."""
        yield from self._events(f"/v1/triages/{triage_id}/messages", json={"text": question})

    def feedback(
        self, triage_id: str, *, right: bool, cause: str | None = None, fix: str = "", comment: str = ""
    ) -> FeedbackRecord:
        """Say what an answer was worth."""
        body = {"right": right, "cause": cause, "fix": fix, "comment": comment}
        return FeedbackRecord.model_validate_json(
            self._ask("POST", f"/v1/triages/{triage_id}/feedback", json=body)
        )

    def crashes(self, limit: int = 20) -> list[Crash]:
        """List crashes, that which came last first, each with how often it came and what was noted of it."""
        found = json.loads(self._ask("GET", "/v1/crashes", params={"limit": limit}))
        return [Crash.model_validate(item) for item in found["items"]]

    def note_crash(
        self, fingerprint: str, state: CrashState = "open", owner: str = "", fixed_by: str = ""
    ) -> Crash:
        """Note whether a crash is open, fixed or to be ignored, who looks after it, and what fixed it."""
        body = {"state": state, "owner": owner, "fixed_by": fixed_by}
        return Crash.model_validate_json(self._ask("PUT", f"/v1/crashes/{fingerprint}", json=body))

    def forget(self, triage_id: str) -> None:
        """Delete a triage."""
        self._ask("DELETE", f"/v1/triages/{triage_id}")

    def search(self, words: str, count: int = 5, language: str = "") -> list[CaseHit]:
        """Search cases, notes and past reports."""
        found = json.loads(
            self._ask("GET", "/v1/search", params={"q": words, "count": count, "lang": language})
        )
        return [CaseHit.model_validate(item) for item in found["items"]]

    def batch(
        self, files: Sequence[Path], *, name: str = "", language: str = "", idempotency_key: str = ""
    ) -> BatchRecord:
        """Hand in a batch: an archive, many files, or JSON lines."""
        with _opened([("log", path) for path in files]) as parts:
            fields = {"name": name, "language": language}
            return BatchRecord.model_validate_json(
                self._ask(
                    "POST",
                    "/v1/batches",
                    data=fields,
                    files=parts,
                    headers=_idempotency_header(idempotency_key),
                )
            )

    def batch_of(
        self, source: str, where: str = "", *, since: str | None = None, name: str = ""
    ) -> BatchRecord:
        """Hand in a batch that the server finds itself: `folder`, `ray`, `slurm`, `kubernetes`."""
        body = {"source": source, "where": where, "since": since, "name": name}
        return BatchRecord.model_validate_json(self._ask("POST", "/v1/batches", json=body))

    def progress(self, batch_id: str) -> BatchRecord:
        """Say how far a batch is."""
        return self._get(BatchRecord, f"/v1/batches/{batch_id}")

    def wait(
        self,
        batch_id: str,
        *,
        seen: Seen = lambda _record: None,
        timeout: float = 86_400.0,
        pause: float = 0.5,
    ) -> BatchRecord:
        """Wait until a batch is over, telling its progress; raises LateError."""
        ends = time.monotonic() + timeout
        while (record := self.progress(batch_id)).state == "running":
            seen(record)
            if time.monotonic() >= ends:
                raise LateError(
                    Message("errors.batch-not-over-after", batch_id=batch_id, seconds=f"{timeout:g}")
                )
            time.sleep(pause)
        seen(record)
        return record

    def results(self, batch_id: str) -> Iterator[Diagnosis]:
        """Give a batch's results as they are so far, job by job."""
        with (
            self._translated_errors(),
            self._http.stream("GET", f"/v1/batches/{batch_id}/results") as response,
        ):
            _check(response)
            yield from map(Diagnosis.model_validate_json, filter(None, response.iter_lines()))

    def summary(self, batch_id: str) -> dict[str, Any]:
        """Give a batch's summary: groups, what they cost, what would have saved most."""
        found: dict[str, Any] = json.loads(self._ask("GET", f"/v1/batches/{batch_id}/summary"))
        return found

    def cancel(self, batch_id: str) -> BatchRecord:
        """End a batch; what is done stays."""
        return BatchRecord.model_validate_json(self._ask("POST", f"/v1/batches/{batch_id}/cancel"))

    def delete_batch(self, batch_id: str) -> None:
        """Delete a batch with its results."""
        self._ask("DELETE", f"/v1/batches/{batch_id}")

    def _get(self, model: type[M], path: str) -> M:
        return model.model_validate_json(self._ask("GET", path))

    def _ask(self, method: str, path: str, **sent: Any) -> bytes:
        with self._translated_errors():
            response = self._http.request(method, path, **sent)
        _check(response)
        return response.content

    def _events(self, path: str, **sent: Any) -> Iterator[Event]:
        with (
            self._translated_errors(),
            self._http.stream("POST", path, params={"stream": "true"}, **sent) as response,
        ):
            _check(response)
            yield from _to_the_last(
                line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")
            )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException as error:
            raise LateError(Message("errors.server-not-answer-time")) from error
        except httpx.HTTPError as error:
            raise UnreachableError(
                Message("errors.cannot-asked", base_url=self._http.base_url, reason=error)
            ) from error


def _to_the_last(texts: Iterable[str]) -> Iterator[Event]:
    """Read events up to the one that ends an answer.

    Raises the error that the server tells, or that it told no end.
    """
    for text in texts:
        event = _EVENTS.validate_json(text)
        if isinstance(event, TriageFailed):
            raise error_of(event)
        yield event
        if isinstance(event, FinalAnswer | TurnAnswered):
            return
    raise UnreachableError(Message("errors.server-cut-answer-off"))


def _check(response: httpx.Response) -> None:
    if response.is_success:
        return
    try:
        told = json.loads(response.read())
    except ValueError:
        told = {}
    wait = response.headers.get("retry-after", "")
    # A problem's detail is an event's sentence, with the message that it is beside it.
    references = told.get("messages", {})
    failed = {
        "type": str(told.get("type", "")).rpartition(":")[2].title().replace("-", ""),
        "status": response.status_code,
        "error": str(told.get("detail") or Message("errors.server-answered", status=response.status_code)),
        "retry_after": float(wait) if wait.isdecimal() else None,
        "messages": {"error": references["detail"]} if "detail" in references else {},
    }
    raise error_of(TriageFailed.model_validate(failed))


def _idempotency_header(key: str) -> dict[str, str]:
    return {"idempotency-key": key} if key else {}


@contextmanager
def _handed(
    log: str | Path | Sequence[Path],
    configs: Sequence[Path],
    telemetry: Path | None,
    name: str,
    language: str,
    model: bool,
    outcome: Outcome | None,
) -> Iterator[Mapping[str, Any]]:
    """Make what is sent for a triage: always multipart, which takes logs of any size."""
    fields = {
        "name": name,
        "language": language,
        "model": "true" if model else "false",
        **(outcome.fields if outcome else {}),
    }
    paths = [] if isinstance(log, str) else [log] if isinstance(log, Path) else list(log)
    named = (
        [("log", path) for path in paths]
        + [("config", path) for path in configs]
        + ([("telemetry", telemetry)] if telemetry else [])
    )
    with _opened(named) as parts:
        if isinstance(log, str):
            # As a file: a field would be held in the server's memory.
            parts = [("log", (name or "pasted.log", log.encode())), *parts]
        yield {"data": fields, "files": parts}


@contextmanager
def _opened(named: Sequence[tuple[str, Path]]) -> Iterator[list[tuple[str, tuple[str, Any]]]]:
    files = [(field, path, path.open("rb")) for field, path in named]
    try:
        yield [(field, (path.name, file)) for field, path, file in files]
    finally:
        for _, _, file in files:
            file.close()
