"""`whycrash watch`: triage jobs as they fail."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.text import Text

from corpus.message import Message
from service.batches.sources import kubernetes_api
from service.composition.diagnosis_view import as_written
from service.monitoring import ended_jobs, targets
from service.monitoring.ended_jobs import WatchedPlace
from service.monitoring.known_jobs import KnownJobs
from service.monitoring.targets import Target
from service.monitoring.watcher import Watcher
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis
from service.schemas.errors import InvalidRequestError, SettingsError
from service.schemas.records import JobSpec
from service.settings import Settings
from ui.cli import signals
from ui.cli.codes import EXPLAINED, MISUSE
from ui.cli.console import check_language, err, load_settings, out, progress
from ui.cli.run import KEY_VARIABLE

SLACK_VARIABLE = "WHYCRASH_SLACK_WEBHOOK"


@dataclass(frozen=True)
class WatchOptions:
    """What is watched, how often, and who is told."""

    ray: str = ""
    api: str = ""
    query: str = ""
    job_label: str = ""
    users: str = ""
    every: float = 30.0
    settle: float = 60.0
    since_hours: float = 0.0
    webhook: str = ""
    slack: bool = False
    post: str = ""
    as_json: bool = False
    once: bool = False
    lang: str = ""


def run(what: str, options: WatchOptions, stop: threading.Event | None = None) -> int:
    """Watch until stopped."""
    check_language(options.lang)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s")
    settings = load_settings()
    place, told = _place(what, options, settings), _targets(options)
    known = KnownJobs(settings.home, place.name)
    if options.since_hours:
        known.since = datetime.now(UTC) - timedelta(hours=options.since_hours)
    with progress() as report:
        triage = Triage(settings, report)
        triage.index  # noqa: B018 - opening it builds it
    signals.orderly()
    watcher = Watcher(triage, place, known, told, _json if options.as_json else _row, options.lang)
    if not options.once:
        err().print(f"watching {place.name}, each {options.every:g} s; ctrl-C stops", markup=False)
    stop = stop or threading.Event()
    while True:
        watcher.run_once()
        if options.once or stop.wait(options.every):
            return EXPLAINED if watcher.reached else MISUSE


def _place(what: str, options: WatchOptions, settings: Settings) -> WatchedPlace:
    places: dict[str, Callable[[], WatchedPlace]] = {
        "ray": lambda: ended_jobs.find_on_ray(
            options.ray or settings.ray_dashboard or "http://127.0.0.1:8265", settings
        ),
        "kubernetes": lambda: ended_jobs.find_in_kubernetes(
            options.api or f"https://{kubernetes_api.IN_CLUSTER[0]}", settings
        ),
        "slurm": lambda: ended_jobs.find_in_slurm(options.users, settings, options.api),
        "loki": lambda: ended_jobs.find_in_loki(
            _address(options, "loki"), options.query, options.job_label, options.settle, settings
        ),
        "elasticsearch": lambda: ended_jobs.find_in_elasticsearch(
            _address(options, "elasticsearch"), options.query, options.job_label, options.settle, settings
        ),
    }
    if "://" in what:
        return ended_jobs.find_in_objects(what, options.settle, settings)
    return places.get(what, lambda: ended_jobs.find_in_folder(Path(what), options.settle))()


def _address(options: WatchOptions, what: str) -> str:
    if not options.api:
        raise InvalidRequestError(Message("errors.watch-takes-api", what=what))
    return options.api


def _targets(options: WatchOptions) -> list[Target]:
    found: list[Target] = []
    for name, address in (("--webhook", options.webhook), ("--post", options.post)):
        if address and not address.startswith(("http://", "https://")):
            # Else found out when the first job fails, perhaps at night.
            raise SettingsError(Message("errors.takes-address-begins-http", name=name, address=repr(address)))
    if options.webhook:
        found.append(targets.webhook_target(options.webhook))
    if options.slack:
        if not os.environ.get(SLACK_VARIABLE):
            raise SettingsError(Message("errors.slack-takes-address-slack", slack_variable=SLACK_VARIABLE))
        found.append(targets.slack_target(os.environ[SLACK_VARIABLE]))
    if options.post:
        found.append(targets.service_target(options.post, os.environ.get(KEY_VARIABLE, "")))
    return found


def _json(diagnosis: Diagnosis, _spec: JobSpec) -> None:
    sys.stdout.write(json.dumps(json.loads(diagnosis.to_json()), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _row(diagnosis: Diagnosis, spec: JobSpec) -> None:
    first = as_written(diagnosis.first_cure) if diagnosis.first_cure else ""
    row = (
        Text(f"{datetime.now(UTC):%H:%M:%S}  ", style="dim")
        .append(spec.name, style="cyan")
        .append(f"  {diagnosis.headline}")
    )
    out().print(row.append(f"  → {first}" if first else "", style="green"), soft_wrap=True)
