"""Answer in this process, without a server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Literal

from ingest.errors import MissingInputError
from ingest.logs.inputs import jobs, sources
from ingest.logs.inputs.jobs import JobSource
from ingest.logs.inputs.sources import LogSource
from ingest.redaction.extra import use_extra
from service import settings
from service.llm.stages import FinalStage
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import Diagnosis, Outcome

Log = str | os.PathLike[str] | Sequence[os.PathLike[str]]
Config = os.PathLike[str] | Sequence[os.PathLike[str]]

# One reader serves all calls, and they take turns: scanning and searching keep state between lines.
_TURN = Lock()
_triage = lru_cache(maxsize=1)(Triage)


def explain(
    log: Log,
    *,
    config: Config = (),
    language: Literal["", "en", "zh"] = "",
    model: bool = True,
    outcome: Outcome | None = None,
) -> Diagnosis:
    """Say why a job died, as `whycrash explain` does.

    `log` is the text of a log (str), or where it lies: the path (`Path`) of a file, folder or archive, or
    several paths of one job. `config` names launch scripts and configurations that a patch may change;
    without it, those that lie beside the logs are used. `language` of the answer: that of the log where
    empty. With a model set (`WHYCRASH_MODEL`) and `model`, the model explains beside the rules. `outcome` is
    how the job ended, as far as the caller knows.

    The settings are the command's: `WHYCRASH_*` variables and `whycrash.toml`. The first call opens or builds
    the index (seconds); later ones take what it opened. Safe to call from several threads; calls take turns.

    Raises `ingest.errors.InputError` where the log or a configuration cannot be read,
    `service.schemas.errors.SettingsError` where a setting is wrong.
    """
    if language not in ("", "en", "zh"):
        raise ValueError(f"language is {language!r}; it takes en, zh, or nothing.")
    paths = _paths(config)
    if absent := [path for path in paths if not path.is_file()]:
        raise MissingInputError(f"There is no file {absent[0]}.")
    files = [read_config(path) for path in paths]
    chosen = settings.load_settings()
    with closing(_opened(log)) as source, _TURN:
        use_extra(chosen.redact_extra)
        triage = _triage(chosen)
        read = triage.read(source, language, files, outcome=outcome)
        found = triage.diagnose(replace(read, reopen=partial(_opened, log)))
        if not (model and chosen.model):
            return found.first
        stages = triage.explain(found)
        return next(stage.diagnosis for stage in stages if isinstance(stage, FinalStage))


def _opened(log: Log) -> LogSource | JobSource:
    if not isinstance(log, str):
        return jobs.open_jobs(_paths(log))
    # A text without a space is no log. It is a path that was meant to be read, and must not be answered as a
    # text.
    if log and not any(map(str.isspace, log)):
        raise MissingInputError(
            f"{log!r} is taken as the text of a log, and is none; give Path({log!r}) to have a file read."
        )
    return sources.from_text(log)


def _paths(given: os.PathLike[str] | Sequence[os.PathLike[str]]) -> list[Path]:
    return [Path(given)] if isinstance(given, os.PathLike) else [Path(path) for path in given]
