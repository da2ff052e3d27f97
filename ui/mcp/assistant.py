"""What the tools do: an assistant's triage, in this process, keeping what further questions need."""

from __future__ import annotations

import difflib
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from corpus.errors import CorpusError
from corpus.library import Library
from corpus.message import Message, is_chinese
from corpus.schema import Case, Language, SettingSpec
from ingest.errors import IngestError, MissingInputError
from ingest.logs.inputs import jobs, sources
from ingest.logs.inputs.jobs import JobSource
from service.batches.sources import folder
from service.llm.conversation import Conversation
from service.llm.conversation import Turn as Turned
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage, read_config
from service.schemas.diagnosis import CaseHit, Outcome
from service.schemas.errors import InvalidRequestError, NotFoundError, ServiceError
from service.settings import Settings
from ui.mcp.answers import (
    CaseChange,
    CaseText,
    Found,
    Lang,
    OtherName,
    Setting,
    TriageAnswer,
    Turn,
    shortened,
)

# What may go wrong that the assistant can do something about.
ERRORS = (CorpusError, IngestError, ServiceError, OSError)
# Triages whose logs' reports are kept for further questions.
KEPT = 20
_NEAR = 6
# What the kernel shows there is no job's, and some of it has no end.
_SYSTEM = ("/proc", "/sys")


class Assistant:
    """Answers an assistant's calls, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._triage = Triage(settings)
        self._talks: OrderedDict[str, Conversation] = OrderedDict()
        self._turn = threading.Lock()

    def warm(self) -> None:
        """Load what a triage needs, so that the first call need not."""
        with self._turn:
            _ = self._triage.library, self._triage.reader, self._triage.index

    def explain(
        self,
        text: str,
        paths: Sequence[str],
        configs: Sequence[str],
        config_text: str,
        config_name: str,
        lang: Lang,
        ask_model: bool,
        outcome: Outcome | None = None,
    ) -> TriageAnswer:
        """Triage one job's output; raises an error of ERRORS that says what to do."""
        source = _source(text, paths)
        files = []
        for config in configs:
            path = _readable(str(Path(config)))
            if not path.is_file():
                raise MissingInputError(Message("errors.no-file", path=path))
            files.append(read_config(path))
        if config_text:
            files.append(ConfigFile.of(config_name or "run.sh", config_text))
        with self._turn:
            read = self._triage.read(source, lang, files, outcome=outcome)
            triage_context = self._triage.diagnose(replace(read, reopen=partial(_source, text, paths)))
            final = triage_context.first
            if ask_model and self._settings.model:
                for stage in self._triage.explain(triage_context):
                    final = getattr(stage, "diagnosis", final)
            # Questions are about the answer that was given.
            self._talks[final.id] = self._triage.conversation(
                replace(triage_context, first=final), with_model=bool(self._settings.model)
            )
            while len(self._talks) > KEPT:
                self._talks.popitem(last=False)
            return shortened(final)

    def ask(self, triage: str, question: str) -> Turn:
        """Answer a question about a triage of this session; raises NotFoundError."""
        if not question.strip():
            raise InvalidRequestError(Message("errors.question-empty"))
        with self._turn:
            talk = self._talks.get(triage)
            if talk is None:
                raise NotFoundError(Message("errors.no-triage-session-call", triage=repr(triage)))
            turned = next(piece for piece in talk.ask(question) if isinstance(piece, Turned))
            return Turn(
                answer=turned.text,
                constraints=list(turned.constraints),
                diagnosis=shortened(turned.diagnosis),
            )

    def search(self, words: str, count: int, lang: Lang) -> Found:
        """Search cases, notes and past reports."""
        if not words.strip():
            raise InvalidRequestError(Message("errors.say-look"))
        language = _language(lang, words)
        with self._turn:
            found = self._triage.retriever.search(words, count)
        return Found(
            cases=[
                _hit(item.owner, item.score, self._library, language) for item in found if item.kind == "case"
            ]
        )

    def case(self, case_id: str, lang: Lang) -> CaseText:
        """Give one case; raises UnknownCaseError, which names near ones."""
        return _case_text(self._library.case(case_id), self._library, _language(lang))

    def causes(self) -> list[dict[str, str]]:
        """List the causes that an answer may name."""
        return [
            {"id": cause.id, "category": cause.category, "title": cause.title.en, "meaning": cause.means.en}
            for cause in self._library.causes.values()
        ]

    def setting(self, framework: str, key: str, version: str, lang: Lang) -> Setting:
        """Look a setting up."""
        library = self._library
        known = library.keys.keys()
        if framework not in known:
            near = difflib.get_close_matches(framework.lower(), known, 3)
            hint = f"did you mean {', '.join(near)}?" if near else f"it has {', '.join(sorted(known))}."
            raise InvalidRequestError(
                Message("errors.catalogue-no-framework", framework=repr(framework), hint=hint)
            )
        spec = library.setting(framework, key, version or None)
        if spec is None:
            return _unknown(library, framework, key, version)
        return _described(library, spec, key, version, _language(lang))

    @property
    def _library(self) -> Library:
        return self._triage.library


def _source(text: str, paths: Sequence[str]) -> JobSource:
    if bool(text.strip()) == bool(paths):
        raise InvalidRequestError(Message("errors.give-log-text-paths"))
    if text.strip():
        source = sources.from_text(text)
        return JobSource(source.name, source.omitted, single=source)
    return jobs.open_jobs([_readable(path) for path in paths])


def _readable(path: str) -> Path:
    """Give a path that reading comes to an end of.

    A pipe, a device or this process's own input would keep all further calls waiting. Raises
    InvalidRequestError.
    """
    given = Path(os.path.expanduser(path))  # noqa: PTH111 - Path's raises where there is no such user
    real = os.path.realpath(given)
    is_system = real == "/" or any(folder.is_under(real, system) for system in _SYSTEM)
    # Not by Path, which raises where a name is too long.
    is_readable = os.path.isfile(real) or os.path.isdir(real)  # noqa: PTH112, PTH113
    if is_system or (os.path.lexists(real) and not is_readable):
        raise InvalidRequestError(Message("errors.no-job-output-name", path=path))
    return given


def _language(lang: Lang, words: str = "") -> Language:
    return "zh" if lang == "zh" or (not lang and is_chinese(words)) else "en"


def _hit(case_id: str, score: float, library: Library, language: Language) -> CaseHit:
    case = library.cases[case_id]
    return CaseHit(
        id=case_id,
        title=case.title.to(language),
        score=round(score, 4),
        urls=tuple(item.url for item in case.sources),
    )


def _case_text(case: Case, library: Library, language: Language) -> CaseText:
    changes = [
        CaseChange(
            framework=change.framework,
            kind=change.kind,
            key=change.key,
            to=library.settings_named(change.to, language),
            versions=change.versions,
            why=change.why.to(language),
            costs=change.costs.to(language) if change.costs else "",
        )
        for change in case.changes
    ]
    return CaseText(
        id=case.id,
        title=case.title.to(language),
        cause=case.cause,
        action=case.action,
        frameworks=case.frameworks,
        text=case.body.to(language),
        changes=changes,
        checks=[check.to(language) for check in case.checks],
        sources=[source.url for source in case.sources],
    )


def _unknown(library: Library, framework: str, key: str, version: str) -> Setting:
    """Say that there is no such setting: none at all, or none at this version."""
    at_others = library.setting(framework, key)
    names = list(library.names(framework, key, version or None)) if at_others else []
    keys = library.keys.get(framework, ())
    # Settings are also looked for by their last name: people leave out, or get wrong, what stands before it.
    ends = {name.rsplit(".", 1)[-1]: name for name in keys}
    close = difflib.get_close_matches(key, keys, _NEAR)
    close += [ends[name] for name in difflib.get_close_matches(key.rsplit(".", 1)[-1], ends, _NEAR)]
    return Setting(
        exists=False,
        framework=framework,
        key=key,
        asked_version=version,
        names=names,
        near=list(dict.fromkeys(close))[:_NEAR],
        versions=at_others.versions if at_others else "",
        aliases=_aliases(at_others) if at_others else [],
    )


def _described(library: Library, spec: SettingSpec, key: str, version: str, language: Language) -> Setting:
    default = "" if spec.default is None else str(spec.default)
    return Setting(
        exists=True,
        framework=spec.framework,
        key=key,
        asked_version=version,
        near=[],
        names=list(library.names(spec.framework, key, version or None)) or [spec.key],
        type=spec.type,
        default=default,
        choices=[str(choice) for choice in spec.choices],
        min=spec.min,
        max=spec.max,
        unit=spec.unit or "",
        versions=spec.versions,
        aliases=_aliases(spec),
        spelled=spec.spelled,
        effect=spec.effect.to(language),
        costs=spec.costs.to(language) if spec.costs else "",
    )


def _aliases(spec: SettingSpec) -> list[OtherName]:
    return [OtherName(key=alias.key, versions=alias.versions) for alias in spec.aliases]
