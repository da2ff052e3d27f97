"""`whycrash run`: run a job unchanged, and say why it failed when it does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.message import Message
from service.monitoring import job
from service.monitoring.job import JobExit
from service.monitoring.log_buffer import BufferStream, LogBuffer
from service.monitoring.sampler import TelemetrySampler
from service.schemas.errors import SettingsError

if TYPE_CHECKING:
    from ingest.logs.inputs.jobs import JobSource
    from service.pipeline.triage import ReadJob, Triage
    from service.schemas.diagnosis import Diagnosis, Outcome
    from service.settings import Settings

KEY_VARIABLE = "WHYCRASH_KEY"
LANGUAGES = ("", "en", "zh")


@dataclass(frozen=True)
class RunOptions:
    """What is to be done beside the job."""

    configs: tuple[Path, ...] = ()
    good: Path | None = None
    post: str = ""
    out: Path | None = None
    every: float = 15.0
    lang: str = ""
    quiet: bool = False


def run(command: Sequence[str], options: RunOptions) -> int:
    """Run the job; gives its exit code, or dies of the signal that it died of.

    Raises ServiceError before it for options that cannot be.
    """
    _check(options)
    copy = LogBuffer()
    ended: JobExit | None = None
    try:
        with TelemetrySampler(options.every) as sampling:
            ended = job.run_job(command, copy.write)
            sampling.stop()
            _afterwards(command, ended, copy, sampling.latest, options)
    # Whatever goes wrong after the job, its own end is what counts: nobody reads us any more, or waits for
    # the answer.
    except (KeyboardInterrupt, SystemExit):
        if ended is None:
            raise
    except Exception as error:
        if ended is None:
            raise
        with suppress(Exception, SystemExit):
            from ui import sentences
            from ui.cli.console import language

            unexplained = (
                "whycrash: the job's end could not be explained: "
                f"{sentences.error_sentence(error, language(options.lang))}"
            )
            _say(unexplained)
    finally:
        copy.close()
    return job.exit_like(ended)


def _check(options: RunOptions) -> None:
    """Refuse before the job begins what would be found wrong hours later, when it has failed."""
    lost = next((path for path in options.configs if not path.is_file()), None)
    if lost is not None:
        raise SettingsError(
            Message("errors.folder-give-file", path=lost)
            if lost.is_dir()
            else Message("errors.no-file", path=lost)
        )
    if options.out and (options.out.is_dir() or not options.out.absolute().parent.is_dir()):
        raise SettingsError(Message("errors.cannot-written-give-file", out=options.out))
    if options.post and not options.post.startswith(("http://", "https://")):
        raise SettingsError(
            Message("errors.takes-address-begins-http", name="--post", address=repr(options.post))
        )
    if options.lang not in LANGUAGES:
        raise SettingsError(Message("errors.lang-takes-en-zh", lang=repr(options.lang)))


def _afterwards(
    command: Sequence[str], ended: JobExit, copy: LogBuffer, snapshot: Path | None, options: RunOptions
) -> None:
    if ended.problem:
        _say(f"whycrash: {ended.problem}")
    elif ended.failed:
        _explain(command, ended, copy, snapshot, options)
    elif options.good:
        _keep_good(copy, options.good)


def _say(text: str) -> None:
    # Imported here, as below: a job that ends well should not have waited for any of it.
    from ui.cli.console import err

    err().print(text, markup=False)


def _source(command: Sequence[str], copy: LogBuffer) -> JobSource:
    from ingest.logs.inputs.jobs import JobSource
    from ingest.logs.inputs.sources import LogSource
    from ingest.redaction.redactor import Redactor

    name = Redactor().clean(os.path.basename(command[0]))[:100]  # noqa: PTH119 - a word, no path of ours
    source = LogSource(name, BufferStream(copy.chunks()))
    return JobSource(name, source.omitted, single=source)


def _explain(
    command: Sequence[str], ended: JobExit, copy: LogBuffer, snapshot: Path | None, options: RunOptions
) -> None:
    from service.pipeline.triage import Triage
    from ui.cli.answer import render
    from ui.cli.console import err, load_settings, progress

    settings = load_settings()
    if not options.quiet:
        _say(f"\nwhycrash: the job failed after {ended.seconds:.0f} s: {ended.describe}.")
    dropped = (
        f"{copy.dropped_bytes >> 20} MiB from the middle of the output were not kept."
        if copy.dropped_bytes
        else ""
    )
    for told in filter(None, (copy.broken, dropped)):
        _say(f"whycrash: {told}")
    with progress() as report:
        triage = Triage(settings, report)
        read = _read(triage, command, copy, ended.outcome, options)
        final = _answered(triage, settings, read, snapshot)
    if not options.quiet:
        render(final, err())
    if options.out:
        options.out.write_text(final.to_json(indent=2) + "\n", encoding="utf-8")
    if options.post:
        _post(final, copy, ended.outcome, snapshot, options)


def _read(
    triage: Triage, command: Sequence[str], copy: LogBuffer, outcome: Outcome, options: RunOptions
) -> ReadJob:
    """Read the job's output; its code lies on this machine."""
    from ingest.source_code.source_roots import job_roots
    from service.pipeline.triage import read_config

    good = triage.healthy_templates(options.good) if options.good and options.good.exists() else None
    files = [read_config(path) for path in options.configs]
    read = triage.read(_source(command, copy), options.lang, files, good, outcome)
    return replace(read, roots=job_roots(command[0], str(Path.cwd()), os.environ))


def _answered(triage: Triage, settings: Settings, read: ReadJob, snapshot: Path | None) -> Diagnosis:
    from service.telemetry import snapshot as snapshots
    from ui.cli import explain

    machine = snapshots.load_snapshot(snapshot) if snapshot else None
    triage_context = triage.diagnose(read, machine)
    return explain.spoken(triage, triage_context, None) if settings.model else triage_context.first


def _keep_good(copy: LogBuffer, path: Path) -> None:
    """Keep what a healthy run prints, for the day when it does not end well."""
    from ingest.errors import EmptyInputError
    from service.pipeline.triage import Triage
    from ui.cli.console import load_settings

    try:
        templates = Triage(load_settings()).reader.templates(_source(["run"], copy))
    except EmptyInputError:
        return
    if templates.failed_at:
        _say(
            f"whycrash: the job ended well, but line {templates.failed_at} tells of a failure; {path} was "
            "left as it was."
        )
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    templates.save(path)


def _post(
    final: Diagnosis, copy: LogBuffer, outcome: Outcome, snapshot: Path | None, options: RunOptions
) -> None:
    from service.monitoring import notifier

    configs = [(path.name, path.read_bytes()) for path in options.configs]
    try:
        logs = [(final.source, copy.chunks())]
        kept = notifier.post_to_service(
            options.post, logs, configs, snapshot, os.environ.get(KEY_VARIABLE, ""), outcome
        )
        _say(f"whycrash: kept at {kept}")
    except notifier.NotificationError as error:
        _say(f"whycrash: {error}")
