"""The answer's contract: what every face of whycrash gives, `whycrash.diagnosis/1`."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field, StringConstraints, ValidationError

from corpus import outcomes
from corpus.message import MessageText, References, Translatable, is_chinese
from corpus.outcomes import End, EndedBy, Ending
from corpus.schema import Action, ChangeKind, Language, Purpose, Scalar
from service.schemas.confirmations import Confirmation
from service.schemas.parts import Part, place_of
from service.schemas.source_places import ReadStatement, SourcePlace
from service.schemas.value_bounds import ValueBounds

Verdict = Literal["diagnosed", "ambiguous", "unknown", "no-failure"]
Standing = Literal["established", "supported", "hypothesis", "none"]
EvidenceRole = Literal["root", "collateral", "context"]
CascadeRole = Literal["root", "collateral", "recovered", "teardown"]
# The cause that says that there is none to name; it goes with the verdict `unknown`.
UNKNOWN_CAUSE = "insufficient-evidence"


class Alternative(Part):
    """Another cause that the evidence allows, and what would tell it apart."""

    cause: str
    confidence: float
    tell_apart: str


class Evidence(Part):
    """A line of the log that the answer rests on, redacted; `file` names it where there are several.

    `below` are the first rows of its message below it, where it announces them and says no reason itself.
    """

    line: int
    text: str
    role: EvidenceRole
    why: str
    file: str | None = None
    below: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """How the line is named: `L12`, or `rank0.log:L12` where the output is in several files."""
        return place_of(self.file, self.line)


class CascadeEntry(Part):
    """One kind of event in the order of their first lines; `missing_ranks` are those that did not say it.

    Of these, `silent_ranks` tell of no other failure either. `earlier_run` tells that another run said it,
    which had ended before the file's last one began.
    """

    line: int
    time: str | None
    source: str
    event: str
    role: CascadeRole
    count: int
    file: str | None = None
    missing_ranks: tuple[int, ...] = ()
    silent_ranks: tuple[int, ...] = ()
    earlier_run: bool = False

    @property
    def place(self) -> str:
        """How its first line is named."""
        return place_of(self.file, self.line)


class CaseHit(Part):
    """A retrieved case, note or past report."""

    id: str
    title: str
    score: float
    urls: tuple[str, ...] = ()
    kind: Literal["case", "note", "report"] = "case"
    fix: str = ""


class ProposedChange(Part):
    """One change of the job's configuration.

    `replaces` names the key that the job sets in vain: it is to go, and `key` takes its place. `removes`
    tells that `key` itself is to go, and nothing takes its place; `to` says so in words. `goes_with` names
    the change without which this one makes no sense. `purpose` tells a change that can cure from one
    that only helps to find out; `proof` is the log's own arithmetic by which the value suffices, where there
    is any, and `bounds` what it asks of any value, where it is of such a kind. `tier` is how firmly it
    stands, the lowest first: changes of one tier are equally good.
    `guess` tells that nothing in this job calls for it but the cause, and that few such changes were right:
    it is told behind the others and never written to a file; `is_bare` only that the cause alone calls for it
    and that the job is not seen to set it.
    A change of the kind `code` is for the job's own source: `key` is the place, `to` says what to do there.
    `by` tells who proposes it: of what a model proposes, only what is verified is ever written to a file.
    """

    framework: str
    kind: ChangeKind
    key: str
    from_: str | None = Field(
        default=None, validation_alias=AliasChoices("from", "from_"), serialization_alias="from"
    )
    to: Scalar
    why: str
    costs: str = ""
    from_case: str | None = None
    status: Literal["verified", "unverified"]
    replaces: str | None = None
    removes: bool = False
    goes_with: str | None = None
    purpose: Purpose = "cure"
    proof: str | None = None
    bounds: ValueBounds | None = None
    tier: int = Field(default=0, exclude=True)
    guess: bool = False
    is_bare: bool = Field(default=False, exclude=True)
    by: Literal["rules", "model"] = "rules"


class ProcedureStep(Part):
    """A command of a procedure: it only looks, or it `acts`, and then says what that costs.

    Words in capitals are for the reader to fill in.
    """

    run: str
    why: str
    costs: str = ""
    acts: bool = False


class Resumption(Part):
    """From where a dead job can go on: its last whole checkpoint, by the line that tells of it.

    `step` is its own, `lost` how many were made after it (None: not counted), `how` what one writes to go on.
    """

    checkpoint: str
    line: int
    file: str | None = None
    step: int | None = None
    lost: int | None = None
    framework: str = ""
    how: str = ""

    @property
    def place(self) -> str:
        """How the log's line is named."""
        return place_of(self.file, self.line)


class Curve(Part):
    """How a number went that the job printed or logged over its steps, by a part of its points.

    `points` are steps with values, None where one is no finite number; `counts_steps` tells whether they
    stand at steps, else at lines. `finding` says what went wrong in it: it stayed no finite number, stayed
    at nothing, leapt, grew all along, or steps took a multiple; `since` is the step and `line` the line
    from which on, `before` the value until then, and `full_at` the step at which what grows would
    reach the machine's limit. `source` is the rank or process that is behind the others.
    """

    name: str
    points: tuple[tuple[float, float | None], ...]
    counts_steps: bool = True
    finding: Literal["broken", "zero", "jump", "rise", "slow", "behind"] | None = None
    since: float | None = None
    line: int | None = None
    file: str | None = None
    before: float | None = None
    full_at: float | None = None
    source: str | None = None


class SeenFramework(Part):
    """A framework that the log shows."""

    name: str
    version: str | None
    line: int
    file: str | None = None


class Dropped(Translatable, Part):
    """A claim that did not pass grounding, and why."""

    what: MessageText
    why: MessageText
    messages: References = Field(default={})


class TraceStep(Translatable, Part):
    """A look of a model into the log or what is known: the tool, what it was asked for, what was found."""

    tool: str
    arguments: dict[str, str] = Field(default={})
    found: MessageText
    messages: References = Field(default={})


class Tokens(Part):
    """What a model read and wrote, in its tokens.

    `counted` is False where the provider tells none and it is an estimate.
    """

    sent: int = 0
    received: int = 0
    counted: bool = True


class Votes(Part):
    """What the rules and a model each held for the cause, with probabilities.

    A model's is that with which votes of its certainty were right on labelled incidents.
    `insufficient-evidence` stands for a log that does not tell, `no-failure` for a sound run.
    """

    rules: dict[str, float] = Field(default={})
    model: dict[str, float] = Field(default={})


class Engine(Part):
    """What wrote the answer.

    `note` says what became of a model that was asked; `omitted` counts what its prompt had no room for, by
    kind. `model_explanation` is what passed its checks of the model's own words, Markdown that cites as the
    explanation does; it stands beside the rules' headline and explanation, which no model writes. `trace`
    holds its looks, in their order.
    """

    name: str = "composer"
    model_explanation: str = ""
    votes: Votes | None = None
    dropped: tuple[Dropped, ...] = ()
    note: str = ""
    tokens: Tokens | None = None
    omitted: dict[str, int] = Field(default={})
    trace: tuple[TraceStep, ...] = ()


class ReadLimits(Part):
    """How much of the log was read; `cut` tells that the end of a log was not seen."""

    bytes: int
    lines: int
    truncated: bool = False
    cut: bool = False
    omitted: dict[str, int | str] = Field(default={})


TelemetryAnswer = Literal["agrees", "contradicts", "neither", "not available"]


class TelemetryReading(Translatable, Part):
    """A reading of the machine that an answer rests on: its value, or why it is not available."""

    name: str
    value: Scalar | None = None
    unavailable: MessageText | None = None
    messages: References = Field(default={})


class CauseTelemetry(Part):
    """What the machine says of one cause, by which rules, from which readings."""

    cause: str
    says: TelemetryAnswer
    why: str
    rules: tuple[str, ...] = ()
    readings: tuple[TelemetryReading, ...] = ()


class Telemetry(Part):
    """What the machine says of the named cause, and of each other one.

    What was not measured is never fine.
    """

    says: TelemetryAnswer = "not available"
    why: str = ""
    taken_at: str | None = None
    sources: tuple[str, ...] = ()
    causes: tuple[CauseTelemetry, ...] = ()


class JobNote(Translatable, Part):
    """Which job of a batch an answer is for.

    `same_as` names the job of the same crash that was triaged in its stead, whose lines the explanation
    cites; `error` says why there is no answer; `gpu_hours` are those that the job held, where they were
    given.
    """

    id: str
    batch: str
    name: str
    state: Literal["done", "failed", "cancelled"]
    fingerprint: str = ""
    same_as: str | None = None
    error: MessageText = ""
    attempts: int = 1
    nodes: int | None = None
    gpu_hours: float | None = None
    ended: str | None = None
    messages: References = Field(default={})


def _given(value: object) -> object:
    """Take a field of a form that was left empty as not given."""
    return (value.strip() or None) if isinstance(value, str) else value


def _signal(value: object) -> object:
    """Read a signal in any spelling."""
    named = _given(value)
    return outcomes.signal_name(named) if isinstance(named, str | int) else named


ExitCode = Annotated[Annotated[int, Field(ge=-(2**31), lt=2**32)] | None, BeforeValidator(_given)]
# Its name in any spelling, or its number.
SignalName = Annotated[str | None, BeforeValidator(_signal)]
# A word or a few, as schedulers write them: `CANCELLED by 1001`, `OOMKilled`.
EndState = Annotated[
    Annotated[str, StringConstraints(max_length=80, pattern=r"^[A-Za-z0-9][\w .:+/-]*$")] | None,
    BeforeValidator(_given),
]


class Outcome(Part):
    """How the job ended as its caller knows it, and how far its log shows it came; None is not known.

    `state` is that of a scheduler, pod or job, as it was given.
    """

    exit_code: ExitCode = None
    signal: SignalName = None
    state: EndState = None
    last_step: int | None = None
    last_checkpoint: int | None = None

    @classmethod
    def told(cls, exit_code: object = None, signal: object = None, state: object = None) -> Outcome:
        """Make one of what a scheduler or a dashboard says.

        What is no exit code, signal or state is left out.
        """
        made = cls()
        for name, value in (("exit_code", exit_code), ("signal", signal), ("state", state)):
            with suppress(ValidationError):
                made = made.model_copy(update={name: getattr(cls.model_validate({name: value}), name)})
        return made

    @property
    def is_given(self) -> bool:
        """Tell whether the caller knows anything of the end."""
        return self.exit_code is not None or self.signal is not None or self.state is not None

    @property
    def fields(self) -> dict[str, str]:
        """What the caller knows, as the fields of a form."""
        told = {"exit_code": self.exit_code, "signal": self.signal, "state": self.state}
        return {name: str(value) for name, value in told.items() if value is not None}

    @property
    def if_given(self) -> Outcome | None:
        """Itself, where the caller knows anything of the end."""
        return self if self.is_given else None

    @property
    def killed_by(self) -> str | None:
        """The signal that ended it, as given or as the exit code tells."""
        return self.signal or outcomes.signal_of(self.exit_code)

    @property
    def readings(self) -> tuple[Ending, ...]:
        """How its signs are read, the most telling first.

        A failure comes first, then what proves a cause, then signal, exit code, state.
        """
        table = outcomes.load()
        found = [table.of_signal(self.killed_by)] if self.killed_by else []
        if self.exit_code is not None and not self.killed_by:
            found.append(table.of_exit_code(self.exit_code))
        if self.state and (state := table.of_state(self.state)):
            found.append(state)
        return tuple(sorted(found, key=lambda item: (_ENDS.index(item.end), _PROOFS.index(item.proof))))

    @property
    def reading(self) -> Ending | None:
        """The row that says most of the end."""
        return next(iter(self.readings), None)

    @property
    def end(self) -> End:
        """Tell whether the end was a failure: one sign of it outweighs those of a good end."""
        return self.readings[0].end if self.readings else "unknown"

    @property
    def ended_by(self) -> EndedBy | None:
        """Who ended the job, where that is known."""
        return self.readings[0].by if self.readings else None


_ENDS: tuple[End, ...] = ("failed", "succeeded", "unknown")
_PROOFS = ("established", "supported", None)


class Diagnosis(Part):
    """The whole answer. `cause` is None where nothing failed.

    Its `standing` is `established` then only where the log shows a good end. `patch` and `command` are of the
    first change, `suggestion` a diff of Python code. `steps` act on no file; `seconds` is how long the job
    printed. `fingerprint` is equal for crashes of a kind, empty where nothing failed.
    """

    schema_: Literal["whycrash.diagnosis/1"] = Field(default="whycrash.diagnosis/1", alias="schema")
    id: str
    source: str
    verdict: Verdict
    cause: str | None
    category: str | None
    confidence: float
    standing: Standing
    action: Action
    alternatives: tuple[Alternative, ...] = ()
    headline: str
    explanation: str
    evidence: tuple[Evidence, ...] = ()
    sources: tuple[SourcePlace, ...] = ()
    statements: tuple[ReadStatement, ...] = ()
    cascade: tuple[CascadeEntry, ...] = ()
    cases: tuple[CaseHit, ...] = ()
    changes: tuple[ProposedChange, ...] = ()
    patch: str | None = None
    suggestion: str | None = None
    command: str | None = None
    steps: tuple[ProcedureStep, ...] = ()
    checks: tuple[str, ...] = ()
    telemetry: Telemetry = Telemetry()
    frameworks: tuple[SeenFramework, ...] = ()
    curves: tuple[Curve, ...] = ()
    engine: Engine = Engine()
    outcome: Outcome = Outcome()
    resumption: Resumption | None = None
    seconds: float | None = None
    fingerprint: str = ""
    confirmed: Confirmation | None = None
    redactions: int = 0
    limits: ReadLimits
    timings_ms: dict[str, float] = Field(default={})
    job: JobNote | None = None

    @property
    def language(self) -> Language:
        """The language that the answer is written in."""
        return "zh" if is_chinese(self.headline) else "en"

    @property
    def root(self) -> Evidence | None:
        """The line that proves the cause, where one is quoted."""
        return next((item for item in self.evidence if item.role == "root"), None)

    @property
    def first_cure(self) -> ProposedChange | None:
        """The first change that is to mend the job, and that more than the cause in general calls for."""
        return next(
            (change for change in self.changes if change.purpose == "cure" and not change.guess), None
        )

    @property
    def ended_well(self) -> bool:
        """Whether the log shows a good end; one in which nothing failed need not."""
        return self.verdict == "no-failure" and self.standing == "established"

    @property
    def shows_failure(self) -> bool:
        """Whether something is known to have failed, be its cause known or not."""
        return self.verdict in ("diagnosed", "ambiguous") or (
            self.verdict == "unknown" and (bool(self.evidence) or self.outcome.end == "failed")
        )

    @property
    def rests_on_end(self) -> bool:
        """Tell whether the cause is proved by how the job ended, and by no line of its log."""
        return self.verdict == "diagnosed" and self.outcome.end == "failed" and not self.evidence

    def to_json(self, indent: int | None = None) -> str:
        """Give the object as JSON in the contract's field names."""
        return self.model_dump_json(by_alias=True, indent=indent)
