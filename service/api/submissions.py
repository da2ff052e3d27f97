"""What is handed in for a triage, as JSON or as multipart: one Submission, with its files in a spool."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import anyio.to_thread
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from corpus.message import Message
from service.api import problems, uploads
from service.api.bodies import MAX_CONFIG, SWITCHES, ConfigText, TriageRequest
from service.api.intake import MIB, too_large
from service.api.uploads import MultipartUpload
from service.app.admission import Admission
from service.patching.patches import ConfigFile
from service.persistence.spool import Spool, SpooledUpload, safe_name
from service.schemas.errors import InvalidRequestError, MediaTypeError, RequestError
from service.telemetry import snapshot
from service.telemetry.snapshot import Snapshot
from service.workers.tasks import Submission

JSON = "application/json"
MULTIPART = "multipart/form-data"
# More than this comes as a file: JSON has to be held in memory, several times.
MOST_JSON = 16 * MIB
# Larger bodies are parsed in a thread; for smaller ones the way there costs more.
_QUICK = 1 << 16
_WHOLE = re.compile(r"-?\d{1,12}", re.ASCII)
# Each file is open as long as it is worked on.
LIMITS = uploads.MultipartLimits(files=256, fields=16, field_bytes=MOST_JSON)
_FILES = frozenset({"log", "config", "telemetry"})


@dataclass(frozen=True)
class ParsedSubmission:
    """A submission, whether its answer is to stream, and what tells it from others."""

    submission: Submission
    stream: bool
    digest: str


async def read_submission(request: Request, spool: Spool) -> ParsedSubmission:
    """Read what was handed in; raises InvalidRequestError, MediaTypeError, TooLargeError."""
    kind = uploads.media_type(request.headers.get("content-type", ""))
    if kind == JSON:
        raw = await read_small_body(request)
        return await run_in_threadpool(_of_json, raw) if len(raw) > _QUICK else _of_json(raw)
    if kind == MULTIPART:
        upload = await multipart(request, spool, LIMITS)
        return await run_in_threadpool(_of_upload, upload)
    raise MediaTypeError(Message("errors.send", one=JSON, other=MULTIPART))


async def refuse_early(request: Request, admission: Admission) -> None:
    """Raise BusyError where there is no room for one more.

    It is raised before a large body comes, or a small one is understood.
    """
    try:
        admission.check_room()
    except RequestError:
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) <= _QUICK:
            # It is on its way already, and to take it costs less than the new connection that the client
            # would need.
            await request.body()
        raise


async def read_small_body(request: Request) -> bytes:
    """Read a JSON body; raises TooLargeError."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > MOST_JSON:
            raise too_large(MOST_JSON)
    return bytes(raw)


async def multipart(request: Request, spool: Spool, limits: uploads.MultipartLimits) -> MultipartUpload:
    """Read a multipart body into a spool."""
    return await uploads.read_multipart(
        request.headers["content-type"], request.stream(), spool, limits, anyio.to_thread.run_sync
    )


def _of_json(raw: bytes) -> ParsedSubmission:
    try:
        body = TriageRequest.model_validate_json(raw)
    except ValidationError as error:
        raise invalid(error) from error
    configs = tuple(ConfigFile.of(safe_name(item.name), item.text) for item in body.configs)
    made = Submission(
        body.name or "pasted text",
        text=body.text,
        configs=configs,
        telemetry=body.telemetry,
        language=body.language,
        model=body.model,
        outcome=body.outcome,
    )
    return ParsedSubmission(made, body.stream, sha256(raw).hexdigest())


def invalid(error: ValidationError) -> InvalidRequestError:
    """Tell what is wrong with a body, never what it held."""
    return InvalidRequestError(
        "; ".join(
            problems.fields(error.errors(include_input=False, include_context=False, include_url=False))[:5]
        )
    )


def _of_upload(upload: MultipartUpload) -> ParsedSubmission:
    if unknown := {name for name, _ in upload.files} - _FILES:
        raise InvalidRequestError(
            Message("errors.no-file-field", unknown=repr(min(unknown)), files=", ".join(sorted(_FILES)))
        )
    logs = upload.named("log")
    body = _checked(upload, has_logs=bool(logs))
    machine = _telemetry(upload)
    names = tuple(safe_name(file.name) for file in logs)
    called = names[0] if names else "pasted text"
    if len(names) > 1:
        called += f" and {len(names) - 1} more"
    made = Submission(
        body.name or called,
        text="" if logs else body.text,
        paths=tuple(file.path for file in logs),
        names=names,
        configs=tuple(_config(file) for file in upload.named("config")),
        telemetry=machine,
        language=body.language,
        model=body.model,
        outcome=body.outcome,
    )
    return ParsedSubmission(made, body.stream, upload.digest)


def _checked(upload: MultipartUpload, *, has_logs: bool) -> TriageRequest:
    """Check the fields by the rules that hold for JSON."""
    values: dict[str, object] = {name: value for name, value in upload.fields.items() if name != "telemetry"}
    for name in ("model", "stream"):
        if name in values:
            values[name] = parse_switch(name, upload.fields[name])
    for name in ("exit_code", "signal", "state"):
        # A form sends an empty field where nothing is known, and has no numbers.
        given = upload.fields.get(name, "").strip()
        if not given:
            values.pop(name, None)
        elif name in values:
            values[name] = int(given) if name == "exit_code" and _WHOLE.fullmatch(given) else given
    if has_logs:
        if "text" in values:
            raise InvalidRequestError(Message("errors.send-log-file-text"))
        values["text"] = "-"
    if "configs" in values:
        raise InvalidRequestError(Message("errors.send-configurations-files-field"))
    try:
        return TriageRequest.model_validate(values)
    except ValidationError as error:
        raise invalid(error) from error


def parse_switch(name: str, text: str) -> bool:
    """Read a field that is true or false; raises InvalidRequestError."""
    try:
        return SWITCHES[text]
    except KeyError:
        raise InvalidRequestError(Message("errors.takes-true-false", name=name)) from None


def _config(file: SpooledUpload) -> ConfigFile:
    if file.size > MAX_CONFIG:
        raise too_large(MAX_CONFIG)
    raw = file.file.read()
    text = raw.decode("utf-8", "replace")
    return ConfigFile.of(
        ConfigText(name=safe_name(file.name), text="").name, text, exact=text.encode() == raw
    )


def _telemetry(upload: MultipartUpload) -> Snapshot | Literal["live"] | None:
    files = upload.named("telemetry")
    text = upload.fields.get("telemetry", "")
    if text == "live":
        return "live"
    if not (files or text):
        return None
    if len(files) > 1 or (files and files[0].size > snapshot.MAX_BYTES):
        raise too_large(snapshot.MAX_BYTES)
    return snapshot.parse_snapshot(files[0].file.read() if files else text, "telemetry")
