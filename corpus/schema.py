"""The types of the corpus: causes, cases, changes and settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo

from corpus.conditions import LOG

Language = Literal["en", "zh"]
Action = Literal[
    "retry",
    "change-config",
    "change-environment",
    "fix-code",
    "fix-data",
    "replace-hardware",
    "collect-more",
    "none",
]
# What a change is for: to mend the failure, or to find out more about it.
Purpose = Literal["cure", "find-out"]
# What a failing line tells of a setting's value: a path to read or to write (`output`) that is it or is made
# of it, a repository of a hub, a column or split of the data (`word`), a port, the address of a host.
Held = Literal["path", "output", "name", "word", "port", "address"]
# What a change is of; `code` is the job's own source, told in words.
ChangeKind = Literal["setting", "env", "flag", "package", "command", "code"]
# What a message may speak of in the statement that failed (`ingest/logs/stacks/statements.py` reads it).
StatementPart = Literal[
    "attribute-owner",
    "divisor",
    "sequence",
    "index",
    "mapping",
    "subscripted",
    "call",
    "called",
    "argument",
    "first-argument",
    "iterated",
    "condition",
    "left",
    "right",
    "searched",
    "sought",
]
Scalar = bool | int | float | str
# How far a line, or what it says, settles its cause.
Strength = Literal["states", "suggests", "hints"]


# The context in which records are read back that were checked when they were stored.
CHECKED: Mapping[str, bool] = {"checked": True}


def accepted_by(check: Callable[[str], object]) -> AfterValidator:
    """Give a validator of a text that `check` reads without an error; the text stays as it is.

    Thousands of conditions and expressions that were checked once are not parsed again where they are read
    from a cache.
    """

    def validated(text: str, info: ValidationInfo) -> str:
        if info.context != CHECKED:
            check(text)
        return text

    return AfterValidator(validated)


@cache
def _specifier(text: str | None) -> str:
    try:
        return str(SpecifierSet(text or ""))
    except InvalidSpecifier as error:
        raise ValueError(f"{text!r} is no version specifier such as '>=0.7,<0.8.3'") from error


def _check_expression(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no expression: {error}") from error


Specifier = Annotated[str, BeforeValidator(_specifier)]
LogCondition = Annotated[str, accepted_by(LOG.check)]
Expression = Annotated[str, accepted_by(_check_expression)]


class Record(BaseModel):
    """Hold one piece of the corpus; unknown fields are errors, so that a typing slip is seen."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(Record):
    """A sentence or title in both languages."""

    en: str
    zh: str

    def to(self, language: Language) -> str:
        """Give the wording in `language`."""
        return self.zh if language == "zh" else self.en


class ConditionalText(Text):
    """A text that is said only of the jobs that meet all conditions in `when`."""

    when: tuple[LogCondition, ...] = ()


def _as_sentences(written: object) -> object:
    """Take one text, or a list of them, for a passage."""
    if isinstance(written, list):
        return {"sentences": written}
    if isinstance(written, Mapping) and "sentences" not in written:
        return {"sentences": [written]}
    return written


class Passage(Record):
    """A text of one or more parts, some of them for jobs of a certain kind only."""

    sentences: Annotated[tuple[ConditionalText, ...], Field(min_length=1)]

    def to(self, language: Language, holds: Callable[[Sequence[str]], bool] | None = None) -> str:
        """Give the wording in `language`: all of it, or the parts of whose conditions `holds` says so."""
        said = [part.to(language) for part in self.sentences if holds is None or holds(part.when)]
        return ("" if language == "zh" else " ").join(said)


class Confusion(Text):
    """What tells a cause apart from a neighbour."""

    cause: str


class Cause(Record):
    """A root cause that an answer can name.

    `titles` stand in place of the title for the jobs that they are for, the first that fits. `explains` lists
    causes that are only its symptom where both have evidence: a leak explains the kill.
    `messages_name` says what its messages name: a setting that does not exist, or one whose value is at
    fault, even without a word of what to do with it, or an option of the job's own files that a check of its
    program names. `of_values` tells that a statement fails of what it is given. `turns_on` says what of the
    environment decides, so that the table of releases is asked for the versions that fit; of
    `named-packages` only what the message itself says to install or to upgrade counts, of `raising-package`
    another release of the package whose code failed, where nothing else is known to cure. One that is
    `general` is what a failure of any kind may come to, so that a model always reads what it means.
    """

    id: str
    category: str
    title: Text
    titles: tuple[ConditionalText, ...] = ()
    means: Text
    action: Action
    advice: Annotated[Passage, BeforeValidator(_as_sentences)]
    checks: tuple[ConditionalText, ...]
    confused_with: tuple[Confusion, ...] = ()
    explains: tuple[str, ...] = ()
    messages_name: tuple[Literal["unknown-setting", "wrong-value", "own-option"], ...] = ()
    of_values: bool = False
    turns_on: tuple[
        Literal["package-versions", "named-packages", "raising-package", "driver", "architecture"], ...
    ] = ()
    general: bool = False

    def titled(self, language: Language, holds: Callable[[Sequence[str]], bool]) -> str:
        """Give the title for a job, of which `holds` tells whether conditions hold."""
        fitting = (title for title in self.titles if holds(title.when))
        return next(fitting, self.title).to(language)


class LookCommand(Record):
    """A command that only looks, and what it shows.

    `{fact.field|WORD}` in it is a value of the log, of several fields the first that is told; where none is,
    the word is for the reader to fill in.
    """

    run: str
    why: Text


class ActCommand(LookCommand):
    """The command that acts, and what it costs."""

    costs: Text


class Procedure(Record):
    """What to do against a cause where the right change is none of a file, step by step.

    All conditions in `when` must hold; `always` tells that it comes before any change of a file.
    """

    cause: str
    when: tuple[LogCondition, ...] = ()
    always: bool = False
    look: Annotated[tuple[LookCommand, ...], Field(min_length=1)]
    act: ActCommand


class MessageForm(Record):
    """One wording of a failure's message, and what it says in our own sentences.

    `cue` stands in every such line; where it does not, `expression` is not even compiled. That is searched in
    the failing line, the exception's type before its message; `reads` adds a row for the statement of the
    job's own call, or that of the one that raised (`raiser`), or the rows of the log `below` the line, or at
    its `end`. Its named groups, and what `facts` names (`kind.field`, the first that the log tells), fill the
    texts' blanks. So do `{function}` and `{code}` of the call that is shown, `{module}`, its file as a module
    of its folder, and `{raiser}`, the function that raised, where it is another. `{there}` is the place of
    that call, or nothing: of the job's own innermost one, or, with `place: raise`, of the one that raised;
    `nowhere` where the place says nothing. The first form counts that fits and of which every blank can be
    filled. It is told where the named cause is one of `causes`, or, without any, the line's own.

    `headline` stands in place of the cause's title; a case's title is kept, unless `beside_case` has the form
    `lead`, or `follow` it; `add` puts it behind either title. `means` and `look` stand in place of what the
    cause says in general, and, of a form that leads, of what a case says.
    `linked: false` tells that the interpreter or an array library says it of any program, so that the place
    in their source tells nothing.
    `statement` fills blanks by parts of the failing statement: the divisor, what an attribute is asked of.
    `shape` tells that the groups `shape` and `size` do not fit, and fills `fits`: by which other entry they
    would; `axes` that the group `sizes` does not go into the group `target`, and fills `fits` by the shapes
    with further axes that would, and `axis` by where the first one goes. `exact_headline` stands in place of
    `headline` where these fill its blanks.
    `listed` tells that the group `choices` lists what there is: of the names that the group `named` quotes,
    the first that is like one of these fills `given`, and that one `nearest`.
    `empties` tells that something is empty, and fills `empties` by what the statement is given and the job's
    files make with no entry, with the rows that do.
    `differences` fills names by the first of two groups less the second, where that is above zero.
    `options` fills names by the options among the words of a group, without their values.
    `acts` say what to change in the job's own code, for its own innermost call:
    the first is told of which every blank is filled, so the most exact stands first.
    """

    id: str
    cue: Annotated[str, Field(min_length=2)]
    expression: Expression
    examples: Annotated[tuple[str, ...], Field(min_length=1)]
    causes: tuple[str, ...] = ()
    facts: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    place: Literal["own", "raise", "nowhere"] = "own"
    headline: Text
    means: Text
    look: Text | None = None
    reads: Literal["line", "call", "raiser", "below", "end"] = "line"
    beside_case: Literal["lead", "follow", "add", "yield"] = "yield"
    linked: bool = True
    statement: Mapping[str, StatementPart] = Field(default_factory=dict)
    shape: bool = False
    axes: bool = False
    listed: bool = False
    empties: bool = False
    differences: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    options: Mapping[str, str] = Field(default_factory=dict)
    exact_headline: Text | None = None
    acts: tuple[Text, ...] = ()


class FactHeadline(Record):
    """What a headline says behind a title, by a fact that the failing line tells.

    `kind` is the fact's. Its fields fill the blanks of `says`, sizes with their unit; so does `{silent}`, the
    ranks that reported nothing where others report the failure, and, of a fact with a `code` or a `signal`,
    `{signal_name}`. Where `cue` is given, the fact's line holds it. The first row counts that fits and of
    which every blank is filled, so the most exact stands first.
    """

    kind: str
    cue: str = ""
    says: Text


class Blank(Record):
    """A word in capitals that a command leaves to its reader, and how it is found.

    `values` are where a log may tell it, the first that does counts: a fact (`port.port`), a group of the
    message's form (`message.package`), the job's own call (`own.file`), the package that raised
    (`raised.package`), a setting (`config.output_dir`), or where the last checkpoint lies
    (`checkpoint.folder`). With `installs`, the value is a module's name, in place of which the package is
    given that brings it.
    """

    word: str
    values: tuple[str, ...] = ()
    installs: bool = False
    find: Text


class Change(Record):
    """One change of a job's configuration, as a case proposes it.

    `rule` names how a value follows from the log's facts; `to` stands where they do not suffice. All
    conditions in `when` must hold and none in `unless`. `purpose` stands where the setting's own does not
    tell it, such as for a command. `set_otherwise` says that the failure itself proves the job's value to be
    another one, so that even the default is a change. `last_resort` marks what is only worth trying when
    nothing else helps.
    """

    framework: str
    kind: ChangeKind
    key: str
    to: Scalar
    versions: Specifier = ""
    when: tuple[LogCondition, ...] = ()
    unless: tuple[LogCondition, ...] = ()
    why: Text
    costs: Text | None = None
    rule: str | None = None
    purpose: Purpose | None = None
    set_otherwise: bool = False
    last_resort: bool = False


class Remedy(Change):
    """A setting of one framework that mends a cause, whichever case tells of it.

    The rows of a cause stand in the order in which to try them. `key` and `to` may hold a fact of the log in
    braces (`{package.name}`); without that fact the row does not apply. A row with `own` is for the job's own
    setting whose name that expression finds and no catalogue has, such as the batch size of a script; it
    applies where its rule gives a value, or where `to` says in words what to put there. A row with `holds`
    is for the setting whose value the failing line tells, a framework's or the program's own. One that
    `yields` takes from the job what others of the same standing leave it, such as a part of its data: it
    comes behind them. One that `lowers` asks in words for less than the present value, so that it is none
    where that is the least already. Of one that goes `together`, each setting that the log's facts name must
    change: with one left the job fails again. With `beside`, `own` finds a key that tells the level, and
    `key` is to stand next to it: in the entry whose name another setting has, where there are several.
    """

    cause: str
    yields: bool = False
    lowers: bool = False
    together: bool = False
    beside: bool = False
    own: Expression = ""
    holds: Held | Literal[""] = ""
    source: Annotated[str, Field(pattern=r"^https://[^\s]+$")]


class Reference(Record):
    """Where a fact of a case comes from, and how firmly it is said there."""

    url: Annotated[str, Field(pattern=r"^https://[^\s]+$")]
    kind: Literal["issue", "docs", "source", "paper", "writeup"]
    says: Literal["confirmed", "maintainer", "community", "evident", "documentation"]


class Signature(Record):
    """When a case applies: at least one of `any`, every one of `all`, none of `none`."""

    any: tuple[LogCondition, ...] = ()
    all: tuple[LogCondition, ...] = ()
    none: tuple[LogCondition, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """Give every condition."""
        return (*self.any, *self.all, *self.none)

    @property
    def quotes_message(self) -> bool:
        """Tell whether it asks for the words of the failing line itself."""
        return any(condition.startswith("message:") for condition in self.all)


class LimitedPart(Record):
    """A part of a case's body that is said only of the jobs that meet all conditions in `when`."""

    language: Language
    when: tuple[LogCondition, ...]
    text: str


class Case(Record):
    """One failure mechanism: how it shows, why it happens, what to do.

    Where it applies, the cases that it `refines` do not: it says the same more exactly. `limited` are the
    parts of its body that a comment in its file limits: `<!-- where CONDITION -->part<!-- end -->`.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9-]+/[a-z0-9-]+$")]
    title: Text
    cause: str
    action: Action
    frameworks: dict[str, Specifier] = {}
    signatures: Signature
    refines: tuple[str, ...] = ()
    telemetry: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    checks: tuple[ConditionalText, ...] = ()
    sources: Annotated[tuple[Reference, ...], Field(min_length=1)]
    body: Text
    limited: tuple[LimitedPart, ...] = ()

    @property
    def framework(self) -> str:
        """The framework under which the case stands."""
        return self.id.partition("/")[0]

    def told(self, language: Language, holds: Callable[[Sequence[str]], bool]) -> str:
        """Give the body without the parts of whose conditions `holds` does not say so."""
        text = self.body.to(language)
        for part in self.limited:
            if part.language == language and not holds(part.when):
                text = text.replace(part.text, "", 1)
        return text


class Alias(Record):
    """Another name of a setting, and the versions that know it."""

    key: str
    versions: Specifier = ""


class SettingSpec(Record):
    """A setting of a framework, with what it frees and what it costs.

    `rule` names how its value follows from a log's facts, unless a change names its own. `read_by` is the
    framework whose versions `versions` counts, where that is not `framework`: an environment variable has
    no versions itself. `commands` names the programs of the framework that take it, where not all of them
    do (see `Program`). Where one of `idle_when` holds, the job reads it to no effect. Where one of `on_when`
    does, the log shows that a switch is on, whatever the job's settings say: its code may turn it on. Where
    one of `implied_by` does, the failure itself shows that its framework starts the job: a container has
    64 MB of shared memory, a machine half of its RAM. Where it is turned on, those that it `excludes` must be
    off. Where a file of another framework gives the same, as one of DeepSpeed beside the Trainer's arguments,
    it must have the value too: `matches` names those settings (`framework:key`). A setting that only shows
    more of a failure has the purpose `find-out`; `last_resort` is one that takes a check or a fast path away,
    or frees so little that all else is tried first. `in_code` tells of an environment variable that a
    program's own first rows may set: what reads it are libraries that it imports, not the loader or what
    starts it. `argument` is what own code hands to a call of the framework in place of an option that only
    its programs read, as `call.argument`. `folds` leads from options that the releases before had to the part
    of this one's JSON which holds their value now. A setting that was only read from the source, because no
    failure turns on it, has an empty `effect`.
    """

    framework: str
    key: str
    type: Literal["bool", "int", "float", "str", "enum", "list", "size", "any"]
    default: Scalar | list[Scalar] | None = None
    choices: tuple[Scalar, ...] = ()
    min: float | None = None
    max: float | None = None
    unit: str | None = None
    versions: Specifier = ""
    aliases: tuple[Alias, ...] = ()
    called: tuple[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], ...] = ()
    spelled: Literal["hydra", "flag", "yaml", "json", "env", "directive", "package", "command", "python"]
    read_by: str = ""
    commands: tuple[str, ...] = ()
    idle_when: tuple[LogCondition, ...] = ()
    on_when: tuple[LogCondition, ...] = ()
    implied_by: tuple[LogCondition, ...] = ()
    excludes: tuple[str, ...] = ()
    matches: tuple[Annotated[str, Field(pattern=r"^[a-z-]+:\S+$")], ...] = ()
    purpose: Purpose = "cure"
    last_resort: bool = False
    in_code: bool = False
    argument: str = ""
    folds: dict[str, str] = Field(default_factory=dict)
    effect: Text = Text(en="", zh="")
    costs: Text | None = None
    rule: str | None = None

    @property
    def explained(self) -> bool:
        """Tell whether a person wrote down what the setting does."""
        return bool(self.effect.en)


class Program(Record):
    """How one program of a framework shows in a launch file, a command or a traceback.

    The command's name is `command`, or what the expression's group `command` matches. `takes` finds the keys
    that it reads, where its framework has settings that it does not; those of what the framework extends
    are held against it too.
    """

    framework: str
    command: str = ""
    expression: Expression
    takes: Expression = ""
    examples: Annotated[tuple[str, ...], Field(min_length=1)]
    near: tuple[str, ...] = ()
