"""Each simple recipe does what its name says, no less and no more."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from corpus.log_patterns import PatternTable
from eval import baselines
from eval.answers import System
from eval.baselines import (
    DenseAlone,
    FirstErrorLine,
    Grep,
    LastLines,
    MostFrequentCause,
    RarestTemplates,
    WordsAlone,
    all_systems,
)
from eval.incidents import Incident, Label, Origin
from service.pipeline.triage import Triage
from tests.factories import OOM, RAY
from tests.tables import each_row

DISK = "OSError: [Errno 28] No space left on device"
STRANGE = "FooError: the moon is in the wrong house"
QUIET = "step 1 loss 0.5"


@pytest.fixture(scope="session")
def grep(table: PatternTable) -> Grep:
    """The real patterns."""
    return Grep(table.rows)


def incident(
    folder: Path, *rows: str, causes: Sequence[str] = ("gpu-oom-training",), verdict: str = "diagnosed"
) -> Incident:
    """Make an incident of these lines."""
    folder.mkdir(exist_ok=True)
    (folder / "log.txt").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    fields = {
        "id": folder.name,
        "causes": causes,
        "verdict": verdict,
        "kind": "paste",
        "mechanism": "m",
        "split": "fit",
    }
    return Incident(Label.model_validate(fields | {"origin": Origin(kind="written")}), folder)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **fields: object) -> None:
    """Put a small package in the place of an optional one."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    module.__dict__.update(fields)
    monkeypatch.setitem(sys.modules, name, module)


class Miner:
    """A template miner: a line's first word is its template."""

    def __init__(self, config: object) -> None:
        self._config, self._ids = config, dict[str, int]()

    def add_log_message(self, text: str) -> dict[str, int]:
        return {"cluster_id": self._ids.setdefault(text.split()[0], len(self._ids))}


class Splitter:
    """A splitter that cuts nothing off but what is too long."""

    def __init__(self, chunk_size: int, chunk_overlap: int) -> None:
        self._sizes = chunk_size, chunk_size - chunk_overlap

    def split_text(self, text: str) -> list[str]:
        size, step = self._sizes
        return [text[begin : begin + size] for begin in range(0, len(text), step)]


@each_row("prefix", ["", RAY, "\x1b[31m"])
def test_a_pattern_knows_a_line_behind_its_prefix(grep: Grep, prefix: str) -> None:
    """Whoever printed a line, in whatever colour, it says the same."""
    assert grep.cause(prefix + DISK) == "disk-full"
    assert grep.cause(prefix + QUIET) is None


def test_the_last_lines_give_the_last_cause_first(tmp_path: Path, grep: Grep) -> None:
    """Of two known lines the later one is named; its number is the log's own."""
    answer = LastLines(grep).answer(incident(tmp_path, OOM, QUIET, DISK, STRANGE))
    assert (answer.verdict, answer.lines, answer.confidence) == ("diagnosed", (3, 1), None)
    assert answer.causes[0] == "disk-full"
    assert len(answer.causes) == 2


@each_row(
    ("rows", "verdict", "numbers"),
    [
        ((QUIET, STRANGE, QUIET), "unknown", (2,)),
        ((QUIET, QUIET), "no-failure", ()),
        ((DISK, *[QUIET] * 50), "no-failure", ()),
        ((DISK, *[QUIET] * 49), "diagnosed", (1,)),
    ],
)
def test_the_last_lines_are_fifty(
    tmp_path: Path, grep: Grep, rows: tuple[str, ...], verdict: str, numbers: tuple[int, ...]
) -> None:
    """What stands before them is not seen; error words alone are no cause, none at all is health."""
    answer = LastLines(grep).answer(incident(tmp_path, *rows))
    assert (answer.verdict, answer.lines) == (verdict, numbers)


@each_row(
    ("rows", "verdict", "causes", "numbers"),
    [
        ((QUIET, DISK, OOM), "diagnosed", ("disk-full",), (2,)),
        ((STRANGE, DISK), "unknown", (), (1,)),
        ((QUIET,), "no-failure", (), ()),
    ],
)
def test_the_first_error_line_alone_counts(
    tmp_path: Path,
    grep: Grep,
    rows: tuple[str, ...],
    verdict: str,
    causes: tuple[str, ...],
    numbers: tuple[int, ...],
) -> None:
    """A known line behind an unknown one is not looked at."""
    answer = FirstErrorLine(grep).answer(incident(tmp_path, *rows))
    assert (answer.verdict, answer.causes, answer.lines) == (verdict, causes, numbers)


def test_the_most_frequent_cause_is_that_of_diagnosed_incidents(tmp_path: Path) -> None:
    """Incidents that nobody can answer are the most here, but have no cause to name."""
    causes = ["disk-full", "disk-full", "host-oom-kill"]
    fit = [incident(tmp_path / str(number), QUIET, causes=(cause,)) for number, cause in enumerate(causes)]
    fit += [
        incident(tmp_path / name, QUIET, causes=("insufficient-evidence",), verdict="unknown")
        for name in "abc"
    ]
    answer = MostFrequentCause(fit).answer(fit[2])
    assert (answer.verdict, answer.causes, answer.lines) == (
        "diagnosed",
        ("disk-full", "host-oom-kill"),
        None,
    )
    assert MostFrequentCause([]).answer(fit[0]).verdict == "unknown"


def test_words_alone_name_the_top_case(tmp_path: Path, triage: Triage) -> None:
    """The cause is that of the first retrieved case, and the ranking is kept."""
    answer = WordsAlone(triage).answer(incident(tmp_path, QUIET, OOM))
    ranked = answer.retrieved["words"]
    assert (answer.verdict, answer.confidence, answer.lines) == ("diagnosed", None, None)
    assert answer.causes[0] == triage.library.cases[ranked[0]].cause


def test_words_alone_ask_with_error_lines_or_else_the_last(tmp_path: Path, triage: Triage) -> None:
    """Lines without an error word add nothing where another has one, and are all there is where none has."""
    system = WordsAlone(triage)
    loud = system.answer(incident(tmp_path / "a", "the checkpoint folder", OOM)).retrieved
    assert loud == system.answer(incident(tmp_path / "b", OOM)).retrieved
    assert system.answer(incident(tmp_path / "c", "the checkpoint folder")).retrieved["words"]
    assert system.answer(incident(tmp_path / "d", "")).verdict == "unknown"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # chromadb's own dependencies, at import
def test_dense_alone_names_the_nearest_case(
    tmp_path: Path, triage: Triage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that ends in a case's own words finds that case, whatever stands before its last 2000
    characters.
    """
    stand_in(monkeypatch, "langchain_text_splitters", RecursiveCharacterTextSplitter=Splitter)
    case = next(iter(triage.library.cases.values()))
    text = f"{case.title.en} {case.body.en}"[:900]
    answer = DenseAlone(triage).answer(incident(tmp_path, *[STRANGE] * 100, *text.split("\n") * 3, "  "))
    assert answer.retrieved["dense"][0] == case.id
    assert (answer.verdict, answer.causes[0], answer.confidence) == ("diagnosed", case.cause, None)


def test_the_rarest_template_with_an_error_word_counts(
    tmp_path: Path, grep: Grep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said once comes before what is said often; lines without an error word are left out."""
    stand_in(monkeypatch, "drain3", TemplateMiner=Miner)
    stand_in(monkeypatch, "drain3.template_miner_config", TemplateMinerConfig=SimpleNamespace)
    log = incident(tmp_path, STRANGE, STRANGE, "", "once upon a time", DISK)
    answer = RarestTemplates(grep).answer(log)
    assert (answer.verdict, answer.causes, answer.lines) == ("diagnosed", ("disk-full",), (5, 1, 2))
    assert RarestTemplates(grep).answer(incident(tmp_path, QUIET)).verdict == "no-failure"


def test_what_is_not_installed_is_skipped_with_its_reason(
    triage: Triage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The systems that need nothing are always there."""
    monkeypatch.setattr(baselines, "find_spec", lambda _: None)
    systems, skipped = all_systems(triage, [])
    names = [system.name for system in systems]
    assert names == ["last lines", "first error line", "BM25 alone", "most frequent cause"]
    assert skipped == [
        "dense alone: not installed: langchain_core, langchain_chroma, langchain_text_splitters",
        "Drain3 rarest: not installed: drain3",
    ]


def test_what_is_installed_takes_part(triage: Triage, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every package there, no recipe is missing and each has a name of its own."""
    monkeypatch.setattr(baselines, "find_spec", lambda package: ModuleSpec(package, None))
    systems: list[System]
    systems, skipped = all_systems(triage, [])
    assert skipped == []
    assert len({system.name for system in systems}) == len(systems) == 6
