"""What the renderings of a diagnosis show, decided once: terminal, page and Slack only lay it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from corpus.keys import levels, pattern
from corpus.message import words
from corpus.schema import Action, ChangeKind, Language, Scalar
from ingest.logs.lines import message_of
from service.composition import phrases, shortening
from service.composition.curves import curve_words
from service.remediation.guesses import is_advised
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import (
    Alternative,
    CaseHit,
    Diagnosis,
    Evidence,
    ProcedureStep,
    ProposedChange,
    Standing,
    Telemetry,
    Verdict,
)
from service.schemas.source_places import ReadStatement, SourcePlace

# Changes that come first where no patch says which do.
AT_ONCE = 2
# A cause that is less likely than this is shown in amber.
DOUBTFUL = 0.7
_CITED = re.compile(r"\s*\[case:[^\]\s]+\]")
# How configurations write that a setting has no value: Python, YAML 1.2 (10.3.2) and JSON, an empty variable.
_NOT_SET = frozenset({"", "None", "null", "Null", "NULL", "~"})


# Levels of a path that tell a reader his file, and conditions that a reader follows.
_LEVELS, _MOST_CONDITIONS = 3, 3
# Characters of a row that a message announces.
_ROW_BELOW = 110

# A log that only stops is told from one that shows a good end.
ShownVerdict = Verdict | Literal["open-end"]


class Assignment(Protocol):
    """A setting and the value that it should have."""

    @property
    def key(self) -> str:
        """The setting."""

    @property
    def kind(self) -> str:
        """What kind of change it is."""

    @property
    def to(self) -> Scalar:
        """The value."""


def in_words(change: Assignment, sign: str = "=") -> str:
    """Give a change in one line; a command, or words on how to choose a value, are no assignment."""
    apart = ": " if is_guidance(change.to) or change.kind in ("command", "code") else sign
    return f"{change.key}{apart}{change.to}"


def as_written(change: Assignment) -> str:
    """Give a change as a file or a command line of the job has it: `--enforce-eager`, `A=1`, `torch>=2.6`."""
    value = str(change.to)
    if isinstance(change.to, bool) and change.kind != "setting":
        value = value.lower()
    if change.kind == "command":
        return value if change.key in value else f"{change.key} {value}".strip()
    if is_guidance(change.to) or change.kind == "code":
        return f"{change.key}: {value}"
    if change.kind == "package":
        apart = "" if value[:1] in tuple("<>=!~") else "==" if value[:1].isdigit() else ": "
        return f"{change.key}{apart}{value}"
    if change.kind == "flag" or change.key.startswith("-"):
        apart = " " if change.kind == "flag" else "="
        return change.key if change.to is True else f"{change.key}{apart}{value}"
    return f"{change.key}={value}" if change.kind == "env" else f"{change.key} = {value}"


def percent(probability: float) -> str:
    """Give a probability in whole percent, without the sign."""
    return f"{100 * probability:.0f}"


def likely_words(confidence: float | None, verdict: ShownVerdict, language: Language) -> str:
    """Say how likely a named cause is; empty where none is named or that is not known."""
    if confidence is None or verdict not in ("diagnosed", "ambiguous"):
        return ""
    return words("diagnosis.likely", language, percent=percent(confidence))


def source_words(place: SourcePlace, language: Language) -> str:
    """Say where a line is told in a framework's source, and which settings were checked there."""
    found = words(
        "diagnosis.source-place",
        language,
        package=place.package,
        version=place.version,
        path=place.path,
        line=place.source_line,
        symbol=place.symbol,
    )
    if not place.settings:
        return found
    checked = words("diagnosis.source-checks", language, settings=", ".join(place.settings))
    return f"{found} · {checked}"


def statement_words(read: ReadStatement, language: Language) -> tuple[str, ...]:
    """Say which statement stands at a call in the code on the machine, and what led there, a row each."""
    # From its package on, or its last levels.
    path = re.split(r"(?:site|dist)-packages/", read.path)[-1]
    if path == read.path:
        path = "/".join(path.split("/")[-_LEVELS:])
    place = f"{path}:{read.source_line}"
    if read.standing != "read":
        return (words(f"diagnosis.statement-{read.standing}", language, place=place),)
    rows = [words("diagnosis.statement-read", language, place=place, statement=read.statement)]
    if read.conditions:
        shown = "; ".join(read.conditions[:_MOST_CONDITIONS])
        rows.append(words("diagnosis.statement-guard", language, conditions=shown))
    if read.settings:
        rows.append(words("diagnosis.source-checks", language, settings=", ".join(read.settings)))
    return tuple(rows)


def shown_verdict(diagnosis: Diagnosis) -> ShownVerdict:
    """Give the verdict, or `open-end` where nothing failed and no good end was seen."""
    is_open = diagnosis.verdict == "no-failure" and not diagnosis.ended_well
    return "open-end" if is_open else diagnosis.verdict


def standing_words(standing: Standing | Literal["end"], language: Language) -> str:
    """Say what an answer rests on, within a line; empty where it rests on nothing."""
    return words(f"diagnosis.standing-{standing}", language)


@dataclass(frozen=True)
class ChangeView:
    """One change as it is shown, for one framework or for several that read it alike.

    `before` is the job's own value, None where that is not known; `is_unchecked` tells that the catalogue has
    no such setting for this version, so that it is to be looked up; `replaces` the key that goes.
    """

    frameworks: tuple[str, ...]
    kind: ChangeKind
    key: str
    to: Scalar
    before: str | None
    why: str
    costs: str
    is_unchecked: bool
    replaces: str | None
    language: Language

    @property
    def kind_words(self) -> str:
        """What kind of setting it is."""
        return words(f"diagnosis.kind-{self.kind}", self.language)

    @property
    def owners(self) -> tuple[str, ...]:
        """The programs whose setting it is; what every program reads is nobody's."""
        return tuple(name for name in self.frameworks if name != self.kind)

    @property
    def doubt(self) -> str:
        """That it is to be looked up, empty where the catalogue has it."""
        return words("diagnosis.unverified", self.language) if self.is_unchecked else ""

    @property
    def is_writable(self) -> bool:
        """Whether it could stand in a file of the job's: a value, not words on how to choose one."""
        return self.kind in ("setting", "flag", "env", "package") and not is_guidance(self.to)

    def was(self, row: Literal["was", "instead-of"] = "was", mark: Callable[[str], str] = str) -> str:
        """Say what the job has instead, its value through `mark`; empty where it is unknown or the same."""
        if self.before is None or self.before == str(self.to):
            return ""
        if self.before.strip() in _NOT_SET:
            return words("diagnosis.not-set-before", self.language)
        return words(f"diagnosis.{row}", self.language, value=mark(self.before))


def change_view(change: ProposedChange, language: Language, frameworks: Iterable[str] = ()) -> ChangeView:
    """Give a change as it is shown in a language, for its own framework or for those that are given."""
    return ChangeView(
        frameworks=tuple(frameworks) or (change.framework,),
        kind=change.kind,
        key=change.key,
        to=change.to,
        before=change.from_,
        why=change.why,
        costs=change.costs,
        # No catalogue lists packages and commands, nor what words on how to choose lead to: our corpus
        # answers for these.
        is_unchecked=change.status == "unverified"
        and (
            change.by == "model"
            or not (change.kind in ("package", "command", "code") or is_guidance(change.to))
        ),
        replaces=change.replaces,
        language=language,
    )


@dataclass(frozen=True)
class DiagnosisView:
    """A diagnosis as every rendering shows it, in the language of its reader.

    `confidence` is the probability that `cause` is right.
    `verdict` tells a log that shows a good end from one that only stops; `is_probable` that the cause is
    to be checked before one acts on it; `rests_on_end` that the way in which the job ended proves the
    cause. `ended` says how the job ended, empty where nobody told; `end_known` also what the log tells of
    it, its last step and which process failed; `resume` from which checkpoint it can go on,
    `resumes_with` what to write for that.
    `curve_words` say which numbers went wrong over the steps.
    `confirmed_words` tell that a person confirmed the named cause for the same crash, empty where nobody did.
    `changes` are all that may cure, in the order of their worth; `first_changes` those that the patch makes,
    else the first few, and `other_changes` the rest, those that read the same for several
    frameworks put together. `guesses` may cure too, but nothing in this job calls for them. `looks` are the
    settings that only help to find out more. `cited` are the cases
    that the explanation rests on. `checks_come_first` tells that looking closer is all that there is to do.
    """

    language: Language
    headline: str
    verdict: ShownVerdict
    is_probable: bool
    cause: str | None
    confidence: float
    standing: Standing
    rests_on_end: bool
    action: Action
    ended: str
    end_known: str
    resume: str
    resumes_with: str
    root: Evidence | None
    evidence: tuple[Evidence, ...]
    sources: tuple[SourcePlace, ...]
    statements: tuple[ReadStatement, ...]
    changes: tuple[ChangeView, ...]
    first_changes: tuple[ChangeView, ...]
    other_changes: tuple[ChangeView, ...]
    guesses: tuple[ChangeView, ...]
    looks: tuple[ChangeView, ...]
    patch: str | None
    suggestion: str | None
    command: str | None
    steps: tuple[ProcedureStep, ...]
    explanation: str
    model: str
    model_explanation: str
    alternatives: tuple[Alternative, ...]
    checks: tuple[str, ...]
    checks_come_first: bool
    cited: tuple[CaseHit, ...]
    telemetry: Telemetry
    redactions: int
    confirmed_words: str
    curve_words: tuple[str, ...]

    def words(self, row: str, **values: object) -> str:
        """Give a title or a note that several renderings share."""
        return words(f"diagnosis.{row}", self.language, **values)

    @property
    def proof(self) -> str:
        """The root's message without times, ranks and levels before it, its ids cut; empty for none."""
        if self.root is None:
            return ""
        # Of several rows none takes the others' room.
        below = (shortening.shortened(row, _ROW_BELOW) for row in self.root.below)
        return shortening.without_ids(" ".join((message_of(self.root.text), *below)))

    @property
    def happened(self) -> str:
        """What is told of the failure besides the root's line itself, in Markdown without cases."""
        return "\n\n".join(phrases.untitled_text(self.unquoted))

    @property
    def unquoted(self) -> str:
        """The explanation without the paragraph that quotes the root's line, which is shown by itself."""
        quoted = f"[{self.root.place}] " if self.root is not None else None
        parts = self.explanation.split("\n\n")
        kept: list[str] = []
        for part in parts:
            if quoted is None or not part.startswith(quoted):
                kept.append(part)
            elif kept and kept[-1].endswith((":", "：")):
                # What announced the quote announces nothing now.
                kept.pop()
        return "\n\n".join(kept)

    def part(self, title: Literal["why", "do", "values", "since", "collect"]) -> str:
        """Give a titled part of the explanation, without the cases that it rests on; empty for none."""
        return _CITED.sub("", phrases.titled_text(self.explanation, title, self.language))

    @property
    def names_cause(self) -> bool:
        """Tell whether the answer names a cause, be it one of two."""
        return self.verdict in ("diagnosed", "ambiguous")

    @property
    def checks_title(self) -> str:
        """Say what the checks are for: to confirm a named cause, or to look further where none is named."""
        return self.words("checks" if self.names_cause else "look")

    @property
    def standing_name(self) -> Standing | Literal["end"]:
        """What the answer rests on: what is known of the job's end, or else how firmly it stands.

        What a line states is of several causes one where others are likely too.
        """
        if self.rests_on_end:
            return "end"
        return "hypothesis" if self.is_doubtful and self.standing == "established" else self.standing

    @property
    def is_doubtful(self) -> bool:
        """Tell whether the named cause may well be another."""
        return self.names_cause and self.confidence < DOUBTFUL

    @property
    def standing_words(self) -> str:
        """How likely the cause is and what it rests on, within a line; empty where it rests on nothing."""
        rests = standing_words(self.standing_name, self.language)
        if not self.names_cause:
            return rests
        return " · ".join(part for part in (self.likely_words, rests, self.confirmed_words) if part)

    @property
    def likely_words(self) -> str:
        """How likely the named cause is, in words with its number."""
        return likely_words(self.confidence, self.verdict, self.language)


def diagnosis_view(diagnosis: Diagnosis, language: Language | None = None) -> DiagnosisView:
    """Give what is shown of a diagnosis, in its own language where none is given."""
    language = language or diagnosis.language
    names_cause = diagnosis.verdict in ("diagnosed", "ambiguous")
    cures = _distinct(change for change in diagnosis.changes if is_advised(change))
    guesses = [change for change in diagnosis.changes if change.guess]
    looks = [change for change in diagnosis.changes if change.purpose == "find-out"]
    made = [change for change in cures if _is_made(change, diagnosis.patch or "")]
    first = made or cures[:AT_ONCE]
    others = [change for change in cures if change not in first]
    confirmed = diagnosis.confirmed
    return DiagnosisView(
        language=language,
        headline=diagnosis.headline,
        verdict=shown_verdict(diagnosis),
        is_probable=diagnosis.verdict == "diagnosed" and diagnosis.standing == "hypothesis",
        cause=diagnosis.cause if names_cause else None,
        confidence=diagnosis.confidence,
        standing=diagnosis.standing,
        rests_on_end=diagnosis.rests_on_end,
        # Where nothing but general measures is known, looking further comes before them.
        action="collect-more" if guesses and not cures and not diagnosis.steps else diagnosis.action,
        ended=phrases.outcome(diagnosis.outcome, language) if diagnosis.outcome.is_given else "",
        end_known=_end_known(diagnosis, language),
        resume=_resume(diagnosis, language),
        resumes_with=(diagnosis.resumption.how if diagnosis.resumption and not diagnosis.ended_well else ""),
        root=diagnosis.root,
        evidence=diagnosis.evidence,
        sources=diagnosis.sources,
        statements=diagnosis.statements,
        changes=tuple(change_view(change, language) for change in cures),
        first_changes=_merged(first, language),
        other_changes=_merged(others, language),
        guesses=_merged(guesses, language),
        looks=_merged(looks, language),
        patch=diagnosis.patch,
        suggestion=diagnosis.suggestion,
        command=diagnosis.command,
        steps=diagnosis.steps,
        explanation=diagnosis.explanation,
        model=diagnosis.engine.name,
        model_explanation=diagnosis.engine.model_explanation,
        alternatives=() if diagnosis.verdict == "no-failure" else diagnosis.alternatives,
        checks=diagnosis.checks,
        checks_come_first=bool(diagnosis.checks) and not cures and not diagnosis.ended_well,
        cited=tuple(item for item in diagnosis.cases if f"[case:{item.id}]" in diagnosis.explanation),
        telemetry=diagnosis.telemetry,
        redactions=diagnosis.redactions,
        confirmed_words=words("diagnosis.confirmed", language, on=confirmed.on.date().isoformat())
        if confirmed and confirmed.cause == diagnosis.cause
        else "",
        curve_words=tuple(curve_words(diagnosis.curves, language)),
    )


def _end_known(diagnosis: Diagnosis, language: Language) -> str:
    """Say how the job ended, how far it came, and which process failed; each as far as it is known."""
    if diagnosis.verdict == "no-failure" and not diagnosis.outcome.is_given:
        return ""
    source = next((entry.source for entry in diagnosis.cascade if entry.role == "root"), "")
    printed = words("diagnosis.printed-by", language, source=source) if source else ""
    lasted = phrases.duration(diagnosis.seconds, language) if diagnosis.seconds else ""
    return " · ".join(filter(None, (phrases.outcome(diagnosis.outcome, language), lasted, printed)))


def _resume(diagnosis: Diagnosis, language: Language) -> str:
    """Say from which checkpoint a failed job can go on, and what is lost; empty where none is known."""
    found = diagnosis.resumption
    if found is None or diagnosis.ended_well:
        return ""
    name = found.checkpoint or words("diagnosis.resume-step", language, step=found.step)
    parts = [words("diagnosis.resume", language, checkpoint=f"`{name}`", place=found.place)]
    if found.lost:
        parts.append(words("diagnosis.resume-lost", language, lost=found.lost))
    return ("；" if language == "zh" else "; ").join(parts)


def _distinct(changes: Iterable[ProposedChange]) -> list[ProposedChange]:
    """Leave out a package that is named again, spelled in another way (PEP 503)."""
    found: dict[tuple[str, ...], ProposedChange] = {}
    for change in changes:
        is_package = change.kind == "package"
        name = re.sub(r"[-_.]+", "-", change.key).lower() if is_package else change.key
        found.setdefault((change.framework, change.kind, name, str(change.to)), change)
    return list(found.values())


def _is_made(change: ProposedChange, patch: str) -> bool:
    """Tell whether a patch's rows make a change: they set its key to its value, or bring or take a switch."""
    rows = patch.split("\n")
    added = "\n".join(row[1:] for row in rows if row.startswith("+") and not row.startswith("+++"))
    removed = "\n".join(row[1:] for row in rows if row.startswith("-") and not row.startswith("---"))
    # A flag is spelled with dashes or with underscores.
    name = r"(?<![\w])" + pattern(levels(change.key)[-1]) + r"(?![\w])"
    pair = rf"(?i){name}[\"'\s=:]*{re.escape(str(change.to))}(?![\w.])"
    if re.search(pair, added):
        return not re.search(pair, removed)
    if re.search(name, added):
        return change.to is True and not re.search(name, removed)
    return bool(re.search(name, removed))


def _merged(changes: Sequence[ProposedChange], language: Language) -> tuple[ChangeView, ...]:
    """Put changes together that read the same but for their frameworks."""
    names: dict[tuple[object, ...], list[str]] = {}
    found: dict[tuple[object, ...], ProposedChange] = {}
    for change in changes:
        reads = (
            change.key,
            str(change.to),
            str(change.from_),
            change.kind,
            change.why,
            change.costs,
            change.status,
        )
        names.setdefault(reads, []).append(change.framework)
        found.setdefault(reads, change)
    return tuple(
        change_view(change, language, dict.fromkeys(names[reads])) for reads, change in found.items()
    )
