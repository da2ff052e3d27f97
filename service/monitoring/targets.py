"""Where the answer for a failed job goes: a webhook, Slack's incoming webhook, a whycrash service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from ingest.errors import InputError
from ingest.logs.inputs import sources
from ingest.redaction.redactor import Redactor
from service.composition.diagnosis_view import as_written
from service.monitoring import notifier
from service.schemas.diagnosis import Diagnosis
from service.schemas.records import JobSpec

Target = Callable[[Diagnosis, JobSpec], None]
LONGEST = 2800


def webhook_target(url: str) -> Target:
    """Send the diagnosis as it is, as JSON."""
    return lambda diagnosis, _spec: notifier.post_to_webhook(url, json.loads(diagnosis.to_json()))


def slack_target(url: str) -> Target:
    """Send a short message to an incoming webhook of Slack."""
    return lambda diagnosis, spec: notifier.post_to_webhook(
        url, {"text": message(diagnosis, spec), "unfurl_links": False}
    )


def service_target(url: str, key: str) -> Target:
    """Hand the job in at a whycrash service."""

    def send(_diagnosis: Diagnosis, spec: JobSpec) -> None:
        configs = [(Path(path).name, Path(path).read_bytes()) for path in spec.place.configs]
        logs = [(name, _chunks(path)) for name, path in _files(spec)]
        notifier.post_to_service(url, logs, configs, None, key, spec.outcome)

    return send


def _files(spec: JobSpec) -> Iterator[tuple[str, Path]]:
    for path in map(Path, spec.place.paths):
        if path.is_dir():
            yield from (
                (str(file.relative_to(path)), file)
                for file in sorted(path.rglob("*"))
                if file.is_file() and not file.is_symlink()
            )
        else:
            yield path.name, path


def _chunks(path: Path) -> Iterator[bytes]:
    """Give a file's bytes, opened with the first: a job may have more files than can be open at once."""
    try:
        yield from sources.from_path(path).chunks()
    except InputError:
        return  # a checkpoint or a core file among the logs was passed over here as well


def message(diagnosis: Diagnosis, spec: JobSpec) -> str:
    """Write the answer as a short message in Slack's own markup, in which a log's text is text."""
    rows = [f"*{escaped(diagnosis.headline)}*", f"{escaped(spec.name)}: {diagnosis.cause or 'no failure'}"]
    if (root := diagnosis.root) is not None:
        rows.append(f"> L{root.line} {escaped(root.text[:300])}")
    for change in diagnosis.changes[:3]:
        command = escaped(as_written(change)).replace("\u200b", "").replace("\n", " ")
        rows.append(f"• `{command}`  {escaped(change.why)}")
    return Redactor().clean("\n".join(rows))[:LONGEST]


def escaped(text: str) -> str:
    """Escape what Slack would read as a mention, a link or markup."""
    for sign, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, safe)
    return text.replace("*", "∗").replace("_", "_\u200b").replace("`", "ˋ")
