"""What is known of frameworks as such: rows of `frameworks.yaml`, and what code asks of them.

No id of a framework decides anything in code: a rule that holds for some frameworks is a field of their rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Annotated, Literal

from pydantic import Field

from corpus.errors import InvalidCorpusError
from corpus.expressions import compiled
from corpus.library import FRAMEWORKS, pages, read_yaml, validated
from corpus.schema import Expression, Program, Record

# What texts show of programs is remembered for those of at most so many characters.
SHORT = 400
# The folder of an environment, up to what is installed in it: people call it after what they once made it
# for, and run anything there (`/envs/verl/lib/python3.12/site-packages/vllm/...`).
# From where a word begins: a file may be one word of megabytes, and is not to be tried from each sign of it.
_ENVIRONMENT = re.compile(r"(?<![^\s\"'=:,(])[^\s\"'=:,(]*/(?=(?:lib|lib64)/python\d[\d.]*/|bin/)")
# What a framework is to a job: what its user chose to train or to serve with; what these run on; what starts
# the job's processes; what runs beside them; what every machine has.
Layer = Literal["trainer", "engine", "library", "cluster", "place", "launcher", "tool", "machine"]
# How a printed configuration is read; the readers stand in `ingest/logs/configs/dumps.py`.
PrintForm = Literal[
    "words", "pairs", "rows", "variable", "named", "elastic", "dotted",
    "call", "mapping", "known", "announced", "outline", "assigned",
]  # fmt: skip


class FlagStyle(Record):
    """How the options of a framework's programs are written.

    `bare`: a switch takes no value, and false is written by leaving it out. `joined`: a value stands behind
    an equals sign. `one_value`: no option takes several values. `repeated` are options that may stand more
    than once, each time for another name. `told_by` are options by which a script of any name shows whose
    arguments it takes.
    """

    bare: bool = False
    joined: bool = False
    one_value: bool = False
    repeated: tuple[str, ...] = ()
    told_by: tuple[str, ...] = ()


class ConfigStyle(Record):
    """How a framework's configuration is known.

    Two `marks` among a file's first keys tell whose it is. A file of it may hold settings of the frameworks
    in `changes`; those of the ones in `adds` may also be added. `keys` tell a printed configuration from
    other mappings, and `sections` begin an outline.
    """

    marks: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


class ContainerStyle(Record):
    """How a container shows a framework: a `word` of its command, an expression of images that use GPUs.

    `options` is the key below which an operator's object holds the options of the framework's own start
    command, beside the `template` of the containers that they are for.
    """

    word: str = ""
    image: str = ""
    options: str = ""


class BatchStyle(Record):
    """How batches are counted.

    `steps` is the setting that counts gradient accumulation; `steps_inferred` where it is computed if nobody
    sets it. `sums_gradients` where micro batches are summed up to the mini batch by themselves. Micro
    batches whose key ends in `counted_over_gpus` count over all GPUs instead of one.
    """

    steps: str = ""
    steps_inferred: bool = False
    sums_gradients: bool = False
    counted_over_gpus: tuple[str, ...] = ()


class PrintStyle(Record):
    """A print of a configuration: how it begins, in which form it goes on, and what it calls settings.

    `in_full` where it is known by the place in the code that a logger puts before the message. In the
    expression, `<variables>`, `<sections>` and `<logger>` stand for what all rows say of these.
    """

    begins: str
    form: PrintForm
    is_long: bool = True
    in_full: bool = False
    names: dict[str, str] = Field(default_factory=dict)


class VersionSign(Record):
    """What a log says that only some versions of a framework say, where it prints no version.

    `versions` may take a group of the expression in braces: `<{until}`.
    """

    says: Expression
    versions: str
    examples: Annotated[tuple[str, ...], Field(min_length=1)]


class JobComponent(Record):
    """A part of a job, such as the critic: the calls that show it, and the keys of what it alone reads.

    Settings by which one part leaves memory to the others are no such keys. What is `apart` has rows of its
    own, so that what holds of the job's others need not reach it.
    """

    name: str
    calls: Expression
    keys: Expression
    apart: bool = False


class PassedOption(Record):
    """An option that a launcher gives each process that it starts, and how it is started without doing so.

    `expression` is searched for the whole option, `launch` for the launcher's part of a command, in whose
    place `instead` stands where the program takes no such option; `variable` holds the same number.
    """

    expression: Expression
    launch: Expression
    instead: str
    variable: str


class KnownFramework(Record):
    """Everything known of one framework.

    - `cue`: what a frame's path, a command or a module says of it; `shown_by`: it runs where all of these do.
    - `trains`: it trains without a trainer being named. `common`: it belongs to every job.
    - `drives`: whose settings it makes itself, so that they are out of its users' hands; `starts`: clusters
      that it starts itself; `extends`: whose arguments are its own, too, `at_release`: those of that release,
      where its code was taken from it; `reads`: whose options its programs read as well; `started_as`: the
      framework whose programs start it.
    - `gives`: arguments of what it calls itself, by the keys that these have in their own catalogue, each
      with its own setting that fills it.
    - `variables`: prefixes of environment variables; `only_reader`: nothing else reads those.
    - `launches`: words of a command that start it; `is_launcher`: another program begins behind its own
      options; `starts_ranks`: it starts one process per GPU; `runs_nothing`: it reads only its own options,
      and the job is no part of it; `inside`: where what it starts runs; `hands_on`: options that hand
      `NAME=value` on to it; `passes`: options that it gives each process that it starts.
    - `dated_by`: what tells of its version where none is printed.
    - `executables`: programs that begin a command in any text; `executables_at_start`: those that do so only
      as its first word.
    - `commands`: its programs where it has several with settings of their own.
    - `manifest`: the format that it starts containers from; `directives`: its options stand in a script's
      comments; `holds_variables`: its settings are environment variables; `installs`: its settings are
      packages; `size_suffix`: how it writes GiB.
    - `prints_all`: where it prints its settings, it prints every one that it has.
    - `package`: what it is called on the package index, where that is another name.
    - `components`: parts of its jobs that fail one by one; of several that a stack shows, the first counts.
    - `modules`: modules that its packages bring, and the packages; `called`: what sentences call packages;
      `writes`: folders of the job's into which it writes modules.
    - `model_defaults`: what a configuration of a model holds that nobody set, by keys of a job's settings.
    - `resume`: how its jobs go on from a checkpoint, as one writes it; `{path}` stands for the checkpoint,
      `{name}` for the last part of its path.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    layer: Layer = "tool"
    cue: Expression = ""
    shown_by: tuple[str, ...] = ()
    trains: bool = False
    common: bool = False
    drives: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    extends: tuple[str, ...] = ()
    at_release: str = ""
    reads: tuple[str, ...] = ()
    started_as: str = ""
    gives: dict[str, str] = Field(default_factory=dict)
    variables: tuple[str, ...] = ()
    only_reader: bool = False
    launches: tuple[Expression, ...] = ()
    is_launcher: bool = False
    starts_ranks: bool = False
    runs_nothing: bool = False
    inside: Literal["", "container", "cluster"] = ""
    hands_on: tuple[str, ...] = ()
    passes: tuple[PassedOption, ...] = ()
    executables: tuple[str, ...] = ()
    executables_at_start: tuple[str, ...] = ()
    commands: tuple[Program, ...] = ()
    manifest: Literal["", "kubernetes", "compose"] = ""
    directives: bool = False
    holds_variables: bool = False
    installs: bool = False
    size_suffix: str = ""
    flags: FlagStyle = FlagStyle()
    config: ConfigStyle = ConfigStyle()
    container: ContainerStyle = ContainerStyle()
    batches: BatchStyle = BatchStyle()
    prints: tuple[PrintStyle, ...] = ()
    prints_all: bool = False
    components: tuple[JobComponent, ...] = ()
    dated_by: tuple[VersionSign, ...] = ()
    package: str = ""
    modules: dict[str, str] = Field(default_factory=dict)
    called: dict[str, str] = Field(default_factory=dict)
    writes: tuple[str, ...] = ()
    model_defaults: dict[str, str] = Field(default_factory=dict)
    resume: str = ""


@dataclass(frozen=True)
class FrameworkTable:
    """All frameworks, in the order in which they outrank one another."""

    rows: Mapping[str, KnownFramework]

    def row(self, framework: str) -> KnownFramework:
        """Give what is known of a framework; of one that nobody described, a row that says nothing."""
        return self.rows.get(framework) or KnownFramework(id=framework or "unknown")

    def of_layer(self, *layers: Layer) -> frozenset[str]:
        """Name the frameworks of these layers."""
        return frozenset(row.id for row in self.rows.values() if row.layer in layers)

    def with_field(self, name: str) -> frozenset[str]:
        """Name the frameworks whose rows say something under this field."""
        return frozenset(row.id for row in self.rows.values() if getattr(row, name))

    @cached_property
    def model_defaults(self) -> Mapping[str, str]:
        """What configurations of models say that nobody set, under names that a job's settings have too."""
        return {key: value for row in self.rows.values() for key, value in row.model_defaults.items()}

    @cached_property
    def cue_rank(self) -> Mapping[str, int]:
        """The place of each framework that a cue can show."""
        return {name: place for place, (name, _) in enumerate(self.cues)}

    @cached_property
    def cues(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """What shows each framework in a path, a command or a module."""
        return tuple((row.id, re.compile(row.cue)) for row in self.rows.values() if row.cue)

    @cached_property
    def engines(self) -> frozenset[str]:
        """What serves a model."""
        return self.of_layer("engine")

    @cached_property
    def clusters(self) -> frozenset[str]:
        """What jobs are submitted to, and has processes of its own."""
        return self.of_layer("cluster")

    @cached_property
    def places(self) -> frozenset[str]:
        """What starts a job: of these it uses one."""
        return self.of_layer("place")

    @cached_property
    def generic(self) -> frozenset[str]:
        """What runs below or beside every trainer and engine: to be seen says nothing of whose job it is."""
        return self.of_layer("library", "cluster", "place", "machine")

    @cached_property
    def common(self) -> frozenset[str]:
        """What belongs to every job: its packages, its machine, and what all the others are built on."""
        return self.with_field("common")

    @cached_property
    def anywhere(self) -> frozenset[str]:
        """What a log rarely names, because it belongs to no framework: variables, packages, the machine."""
        return self.of_layer("machine")

    @cached_property
    def rank_starters(self) -> frozenset[str]:
        """The programs that start one process per GPU."""
        return frozenset(name for row in self.rows.values() if row.starts_ranks for name in row.executables)

    @cached_property
    def holding_variables(self) -> tuple[str, ...]:
        """Whose settings are environment variables."""
        return tuple(row.id for row in self.rows.values() if row.holds_variables)

    @cached_property
    def trainers(self) -> frozenset[str]:
        """What trains, named or not."""
        return self.of_layer("trainer") | self.with_field("trains")

    @cached_property
    def driven(self) -> frozenset[str]:
        """What others run, and do not carry changed: a job of theirs may fail in its released code."""
        return frozenset(
            name
            for row in self.rows.values()
            for name in set(row.drives) - {row.id, row.started_as, *row.reads, *row.extends}
        )

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """What belongs to no framework of the job, so that the log need not show it."""
        return self.common | self.places | self.clusters

    @cached_property
    def gpu_images(self) -> re.Pattern[str]:
        """What a container's image is called that uses GPUs."""
        names = [row.container.image for row in self.rows.values() if row.container.image]
        return re.compile("|".join(names), re.IGNORECASE)

    @cached_property
    def variable_prefixes(self) -> tuple[str, ...]:
        """How environment variables of the frameworks begin."""
        return tuple(prefix for row in self.rows.values() for prefix in row.variables)

    @cached_property
    def installed(self) -> re.Pattern[str]:
        """What the path of a file has that a trainer, an engine or what they are built on installs."""
        rows = (row for row in self.rows.values() if row.layer in ("trainer", "engine", "library", "cluster"))
        named = {name.replace("-", "_") for row in rows for name in (row.id, row.package, *row.modules)}
        names = "|".join(re.escape(name) for name in sorted(named) if name)
        return re.compile(rf"(?:site|dist)-packages/(?:{names})[/.]")

    @cached_property
    def package_file(self) -> re.Pattern[str]:
        """What the path of a file of a package has: where packages are, or a folder that one writes into."""
        written = "|".join(re.escape(folder) for row in self.rows.values() for folder in row.writes)
        return re.compile(rf"(?:(?:site|dist)-packages/|\b(?=(?:{written})/))(?P<module>[A-Za-z_]\w*)")

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The programs of frameworks that have several, each with settings of its own."""
        return tuple(command for row in self.rows.values() for command in row.commands)

    def programs_in(self, text: str) -> Sequence[tuple[int, str]]:
        """Give each program that a text shows, by its place in `programs`, with the name of its command."""
        return self._programs_in_short(text) if len(text) <= SHORT else self._search_programs(text)

    @cached_property
    def _programs_in_short(self) -> Callable[[str], Sequence[tuple[int, str]]]:
        # The calls of a library stand in log after log. The cache is the table's own.
        return lru_cache(maxsize=4096)(self._search_programs)

    def _search_programs(self, text: str) -> Sequence[tuple[int, str]]:
        return tuple(
            (number, match.groupdict().get("command") or program.command)
            for number, program in enumerate(self.programs)
            for match in compiled(program.expression).finditer(text)
        )

    @cached_property
    def modules(self) -> Mapping[str, str]:
        """Packages that bring a module of another name than their own, by the module."""
        return {module: package for row in self.rows.values() for module, package in row.modules.items()}

    def executables(self, *, at_start: bool) -> tuple[str, ...]:
        """Name the programs that begin a command in any text, `at_start` also those that do as first word."""
        return tuple(
            name
            for row in self.rows.values()
            for name in (*row.executables, *(row.executables_at_start if at_start else ()))
        )

    def taken_by(self, owner: str) -> frozenset[str]:
        """Name the frameworks whose settings a framework's programs take by the very same names."""
        return self.forks(owner) | frozenset(self.row(owner).extends)

    def of_package(self, package: str) -> str:
        """Name the framework that a package of the index is; the package's own name where it is none."""
        return next((row.id for row in self.rows.values() if package in (row.package, row.id)), package)

    def forks(self, owner: str) -> frozenset[str]:
        """Name the frameworks that a framework's programs start."""
        return frozenset(row.id for row in self.rows.values() if owner and row.started_as == owner)

    def read_by(self, owner: str) -> frozenset[str]:
        """Name the frameworks whose options a framework's programs read, besides its own."""
        return self.taken_by(owner) | frozenset(self.row(owner).reads)

    def reader_of(self, key: str) -> str:
        """Name the one framework that reads an environment variable, or give the empty string."""
        return next(
            (
                row.id
                for row in self.rows.values()
                if row.only_reader and any(key.startswith(f"{prefix}_") for prefix in row.variables)
            ),
            "",
        )


def load_frameworks() -> FrameworkTable:
    """Read the rows of every folder of knowledge; raises InvalidCorpusError naming the row and field."""
    rows: dict[str, KnownFramework] = {}
    for row in _rows():
        if row.id in rows:
            raise InvalidCorpusError(f"two frameworks are called {row.id!r}")
        rows[row.id] = row
    for row in rows.values():
        named = {*row.drives, *row.starts, *row.extends, *row.reads, *row.shown_by, row.started_as} - {""}
        if unknown := named - rows.keys():
            raise InvalidCorpusError(
                f"{FRAMEWORKS}: {row.id}: there is no framework {', '.join(sorted(unknown))}"
            )
    return FrameworkTable(rows)


def _rows() -> Iterator[KnownFramework]:
    # A site's own frameworks stand before those that ship: they are the more special ones.
    for path in reversed(pages(FRAMEWORKS)):
        for row in read_yaml(path):
            for command in row.get("commands", ()):
                command["framework"] = row.get("id")
            yield validated(KnownFramework, row, f"{path}: {row.get('id')}")


@cache
def known_frameworks() -> FrameworkTable:
    """Give the table of this process, read once."""
    return load_frameworks()


# The same files stand in traceback after traceback.
@lru_cache(1024)
def cued_frameworks(text: str) -> tuple[str, ...]:
    """Name the frameworks that a path, command or module in `text` speaks of."""
    shown = _ENVIRONMENT.sub("", text)
    return tuple(name for name, expression in known_frameworks().cues if expression.search(shown))
