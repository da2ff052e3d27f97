"""Other tools are asked as they are meant to be, and what they pick is put into the common form."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from corpus.log_patterns import PatternTable
from eval import other_tools
from eval.baselines import Grep
from eval.other_tools import LogDetective, RestartAgent, all_systems, available
from tests.eval.test_baselines import DISK, QUIET, STRANGE, incident
from tests.tables import each_row

Chosen = tuple[int, ...]


@pytest.fixture(scope="session")
def grep(table: PatternTable) -> Grep:
    """The real patterns."""
    return Grep(table.rows)


def put(monkeypatch: pytest.MonkeyPatch, name: str, **fields: object) -> None:
    """Put a module in the place of a tool's, parents included."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        module = ModuleType(".".join(parts[:count]))
        module.__path__ = []
        monkeypatch.setitem(sys.modules, module.__name__, module)
    sys.modules[name].__dict__.update(fields)


def agent(
    monkeypatch: pytest.MonkeyPatch, primary: int | None, identity: int | None, anchors: Chosen
) -> list[str]:
    """Put a restart agent in place that always finds these lines; gives the texts that it was shown."""
    shown: list[str] = []

    def bundle(path: Path) -> SimpleNamespace:
        shown.append(path.read_text(encoding="utf-8"))
        return SimpleNamespace(candidate_anchors=[SimpleNamespace(line=number) for number in anchors])

    found = None if primary is None else SimpleNamespace(line=primary, failure_class="observed_exception")
    evidence = SimpleNamespace(
        deterministic_primary_candidate=found, canonical_observed_identity={"identity_anchor_line": identity}
    )
    put(
        monkeypatch,
        other_tools.RESTART_AGENT,
        build_l0_bundle=bundle,
        build_decision_evidence=lambda _: evidence,
    )
    return shown


@each_row(
    ("primary", "identity", "anchors", "verdict", "causes", "numbers"),
    [
        (2, 3, (1, 2), "diagnosed", ("disk-full",), (2, 3, 1)),
        (1, None, (), "unknown", (), (1,)),
        (None, None, (2,), "unknown", (), (2,)),
        (None, None, (), "no-failure", (), ()),
        (2, 99, (), "diagnosed", ("disk-full",), (2,)),
    ],
)
def test_the_restart_agents_primary_failure_comes_first(
    tmp_path: Path,
    grep: Grep,
    monkeypatch: pytest.MonkeyPatch,
    primary: int | None,
    identity: int | None,
    anchors: Chosen,
    verdict: str,
    causes: tuple[str, ...],
    numbers: Chosen,
) -> None:
    """The cause is what our patterns say of its lines; without a primary failure none is named."""
    shown = agent(monkeypatch, primary, identity, anchors)
    log = incident(tmp_path, STRANGE, DISK, QUIET)
    answer = RestartAgent(grep).answer(log)
    assert (answer.verdict, answer.causes, answer.lines) == (verdict, causes, numbers)
    assert answer.headline == ("observed_exception" if primary else "")
    assert shown == [log.text]


def detective(monkeypatch: pytest.MonkeyPatch, *snippets: tuple[int, str]) -> list[str]:
    """Put extractors in place that find nothing and these snippets; gives the texts that they were shown."""
    shown: list[str] = []

    def extractor(found: list[tuple[int, str]]) -> Callable[[], Callable[[str], list[tuple[int, str]]]]:
        def read(text: str) -> list[tuple[int, str]]:
            shown.append(text)
            return found

        return lambda: read

    put(
        monkeypatch,
        other_tools.EXTRACTORS,
        PythonTracebackExtractor=extractor([]),
        DrainExtractor=extractor(list(snippets)),
    )
    return shown


def test_a_snippets_last_error_line_stands_for_it(
    tmp_path: Path, grep: Grep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snippet of several lines leaves out empty ones; its lines keep the log's numbers."""
    rows = (QUIET, "Traceback (most recent call last):", '  File "a.py"', "", DISK)
    detective(monkeypatch, (1, QUIET), (2, "\n".join(row for row in rows[1:] if row)))
    answer = LogDetective(grep).answer(incident(tmp_path, *rows))
    assert (answer.verdict, answer.causes, answer.lines) == ("diagnosed", ("disk-full",), (5, 2))


@each_row(("row", "verdict"), [(STRANGE, "unknown"), (QUIET, "no-failure")])
def test_snippets_without_a_known_line_name_no_cause(
    tmp_path: Path, grep: Grep, monkeypatch: pytest.MonkeyPatch, row: str, verdict: str
) -> None:
    """An extractor cuts out something of every log; only an error word makes it a failure."""
    detective(monkeypatch, (1, row))
    assert LogDetective(grep).answer(incident(tmp_path, row)).verdict == verdict


def test_a_redrawn_line_is_one_line_to_log_detective(
    tmp_path: Path, grep: Grep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would count a carriage return as a line's end, and its numbers would not be ours."""
    shown = detective(monkeypatch)
    log = incident(tmp_path, "unused")
    log.log.write_bytes(b"10%\r20%\nend\n")
    LogDetective(grep).answer(log)
    assert shown == ["10% 20%\nend"] * 2


@each_row(
    "error", [ImportError("no libcuda.so.1"), OSError("no libcuda.so.1"), RuntimeError("no libcuda.so.1")]
)
def test_a_tool_that_cannot_be_imported_is_skipped_with_its_reason(
    grep: Grep, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A package that wants a GPU's driver is no reason to fail."""

    def refuse(name: str) -> ModuleType:
        raise error

    monkeypatch.setattr(other_tools, "import_module", refuse)
    systems, skipped = available([RestartAgent, LogDetective], grep)
    assert systems == []
    assert skipped == [
        "NVIDIA restart agent, L0: cannot be imported (no libcuda.so.1)",
        "Log Detective's extractors: cannot be imported (no libcuda.so.1)",
    ]


def test_every_tool_takes_part_or_says_why_not() -> None:
    """Whatever is installed here, none is lost without a word."""
    systems, skipped = all_systems()
    assert len(systems) + len(skipped) == 2
