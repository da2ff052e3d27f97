"""What renderings show of a diagnosis is decided in one place, for both languages."""

from __future__ import annotations

from typing import Any

from corpus.schema import Language
from service.composition.diagnosis_view import (
    AT_ONCE,
    as_written,
    change_view,
    diagnosis_view,
    in_words,
    standing_words,
)
from service.persistence.outcome_summaries import pack_summary, unpack_summary
from service.schemas.diagnosis import Alternative, CascadeEntry, CaseHit, Evidence, Outcome, ProposedChange
from tests.service.factories import diagnosis, proposal
from tests.tables import each_row

PATCH = "--- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-run data.size=256 --fast\n+run data.size=128\n"


@each_row(
    ("changes", "first", "action"),
    [
        ([proposal("a"), proposal("b", guess=True)], "a", "change-config"),
        ([proposal("b", guess=True)], None, "collect-more"),
        ([proposal("b", guess=True), proposal("c", purpose="find-out")], None, "collect-more"),
        ([], None, "change-config"),
    ],
)
def test_that_general_measures_are_no_next_step(
    changes: list[ProposedChange], first: str | None, action: str
) -> None:
    """What only the cause in general calls for is neither a job's first change nor what to do next."""
    made = diagnosis(changes=tuple(changes), action="change-config")
    assert (made.first_cure.key if made.first_cure else None) == first
    assert diagnosis_view(made, "en").action == action
    kept = unpack_summary(pack_summary(made.model_dump(mode="json")))
    assert (kept.change or {}).get("key") == first


@each_row(
    ("before", "language", "expected", "instead"),
    [
        (None, "en", "", ""),
        ("256", "en", "was <256>", "instead of <256>"),
        ("256", "zh", "原为 <256>", "原为 <256>"),
        ("None", "en", "not set before", "not set before"),
        ("null", "zh", "原未设置", "原未设置"),
        ("~", "en", "not set before", "not set before"),
        (" ", "en", "not set before", "not set before"),
        # A value that some settings have: offloading to none, quantization none.
        ("none", "en", "was <none>", "instead of <none>"),
    ],
)
def test_that_the_value_before_is_worded_once(
    before: str | None, language: Language, expected: str, instead: str
) -> None:
    """Its mark is the rendering's; a setting that had no value is said in words to have had none."""
    change = change_view(proposal(from_=before), language)
    assert change.was(mark="<{}>".format) == expected
    assert change.was("instead-of", mark="<{}>".format) == instead


@each_row(
    ("fields", "line", "written"),
    [
        ({"key": "a.b", "to": True}, "a.b=True", "a.b = True"),
        ({"key": "--a-b", "to": True, "kind": "flag"}, "--a-b=True", "--a-b"),
        ({"key": "--a-b", "to": False, "kind": "flag"}, "--a-b=False", "--a-b false"),
        ({"key": "--a-b", "to": 4, "kind": "flag"}, "--a-b=4", "--a-b 4"),
        ({"key": "A_B", "to": 2, "kind": "env"}, "A_B=2", "A_B=2"),
        ({"key": "torch", "to": "2.6.0", "kind": "package"}, "torch=2.6.0", "torch==2.6.0"),
        ({"key": "torch", "to": ">=2.6", "kind": "package"}, "torch=>=2.6", "torch>=2.6"),
        ({"key": "torch", "to": "install", "kind": "package"}, "torch=install", "torch: install"),
        ({"key": "a.b", "to": "half of it"}, "a.b: half of it", "a.b: half of it"),
        (
            {"key": "nvidia-smi", "to": "nvidia-smi -q", "kind": "command"},
            "nvidia-smi: nvidia-smi -q",
            "nvidia-smi -q",
        ),
        ({"key": "reboot", "to": "the node", "kind": "command"}, "reboot: the node", "reboot the node"),
    ],
)
def test_that_a_change_is_told_in_a_line_and_written(fields: dict[str, Any], line: str, written: str) -> None:
    """As one line of a table, and as the job's own file or command line has it."""
    change = proposal(**fields)
    assert (in_words(change), as_written(change)) == (line, written)


@each_row(
    ("fields", "verdict", "is_probable", "names_cause"),
    [
        ({}, "diagnosed", False, True),
        ({"standing": "hypothesis"}, "diagnosed", True, True),
        ({"verdict": "ambiguous", "standing": "hypothesis"}, "ambiguous", False, True),
        (
            {"verdict": "unknown", "cause": "insufficient-evidence", "standing": "none"},
            "unknown",
            False,
            False,
        ),
        ({"verdict": "no-failure", "cause": None, "standing": "established"}, "no-failure", False, False),
        ({"verdict": "no-failure", "cause": None, "standing": "none"}, "open-end", False, False),
    ],
)
def test_that_the_verdict_is_told_apart_as_far_as_it_is_shown(
    fields: dict[str, Any], verdict: str, is_probable: bool, names_cause: bool
) -> None:
    """A stop is no good end, a hypothesis is not found, and only a named cause is shown."""
    shown = diagnosis_view(diagnosis(**fields))
    assert (shown.verdict, shown.is_probable, shown.names_cause) == (verdict, is_probable, names_cause)
    assert (shown.cause is not None) == names_cause


def test_that_a_cause_that_the_end_proves_says_so() -> None:
    """Where no line proves it, how the job ended does."""
    by_line = diagnosis(evidence=(Evidence(line=7, text="full", role="root", why="w", file="a.log"),))
    by_end = diagnosis(outcome=Outcome(exit_code=137))
    assert diagnosis_view(by_line).standing_words == "about 90 % · the log states it"
    assert diagnosis_view(by_end, "zh").standing_words.endswith(standing_words("end", "zh"))
    assert (by_line.root and by_line.root.place, by_end.root) == ("a.log:L7", None)


def test_that_the_patchs_changes_come_first_and_like_ones_are_one() -> None:
    """Without a patch the first few stand for them; what reads the same names every framework."""
    others = tuple(proposal("other.key", to=1, framework=name) for name in ("verl", "openrlhf"))
    flag = proposal("--fast", to="unset", kind="flag", framework="vllm")
    rows = (*others, proposal(from_="256"), flag)
    shown = diagnosis_view(diagnosis(changes=rows, patch=PATCH))
    assert [change.key for change in shown.changes] == [change.key for change in rows]
    assert [change.key for change in shown.first_changes] == ["data.size", "--fast"]
    assert [change.frameworks for change in shown.other_changes] == [("verl", "openrlhf")]
    bare = diagnosis_view(diagnosis(changes=rows))
    assert [change.frameworks for change in bare.first_changes] == [("verl", "openrlhf")]
    assert len(bare.other_changes) == len(rows) - AT_ONCE


def test_that_what_only_finds_out_stands_apart() -> None:
    """It is no change that may cure, and neither of the first nor of the others."""
    look = proposal("NCCL_DEBUG", to="INFO", kind="env", framework="env", purpose="find-out")
    shown = diagnosis_view(diagnosis(changes=(proposal(), look), checks=("look",)))
    assert [change.key for change in shown.changes] == ["data.size"]
    assert [change.key for change in (*shown.first_changes, *shown.other_changes)] == ["data.size"]
    assert [change.key for change in shown.looks] == ["NCCL_DEBUG"]
    alone = diagnosis_view(diagnosis(changes=(look,), checks=("look",)))
    assert (alone.changes, alone.checks_come_first) == ((), True)


def test_that_what_no_catalogue_lists_is_not_doubted() -> None:
    """A package or a command cannot be looked up in it; a setting that is missing there is said to be."""
    doubts = [
        bool(change_view(proposal(status="unverified", kind=kind), "en").doubt)
        for kind in ("setting", "env", "flag", "package", "command")
    ]
    assert doubts == [True, True, True, False, False]
    assert change_view(proposal(framework="env", kind="env"), "en").owners == ()


def test_that_what_to_check_stands_in_for_changes_that_are_missing() -> None:
    """Not where there is something to change, nor where all went well."""
    well = {"verdict": "no-failure", "cause": None, "standing": "established"}
    rows: list[dict[str, Any]] = [{}, {"changes": (proposal(),)}, well]
    assert [diagnosis_view(diagnosis(checks=("look",), **row)).checks_come_first for row in rows] == [
        True,
        False,
        False,
    ]


def test_that_only_cited_cases_are_the_explanations() -> None:
    """The others were near, and nothing rests on them; where nothing failed there is no other cause."""
    cases = tuple(CaseHit(id=name, title=name, score=0.5) for name in ("a/one", "a/two"))
    other = Alternative(cause="host-oom-kill", confidence=0.1, tell_apart="look")
    found = diagnosis(explanation="Full [case:a/two].", cases=cases, alternatives=(other,))
    assert [case.id for case in diagnosis_view(found).cited] == ["a/two"]
    assert diagnosis_view(found).alternatives == (other,)
    well = found.model_copy(update={"verdict": "no-failure", "cause": None})
    assert diagnosis_view(well).alternatives == ()


ENDED = Outcome(last_step=40)
ROOT_ENTRY = CascadeEntry(line=7, time=None, source="rank=3 ip=n9", event="it broke", role="root", count=1)


@each_row(
    ("fields", "language", "ended"),
    [
        (
            {"outcome": Outcome(exit_code=137, signal="SIGKILL", last_step=40), "cascade": (ROOT_ENTRY,)},
            "en",
            "exit code 137 · signal SIGKILL · last step 40 · reported by rank=3 ip=n9",
        ),
        # The log alone tells how far the job came, and which process failed.
        (
            {"outcome": Outcome(last_step=40), "cascade": (ROOT_ENTRY,)},
            "zh",
            "最后一步 40 · 由 rank=3 ip=n9 报告",
        ),
        ({}, "en", ""),
        ({"verdict": "no-failure", "outcome": ENDED}, "en", ""),
    ],
)
def test_that_the_head_tells_how_and_where_the_job_ended(
    fields: dict[str, Any], language: Language, ended: str
) -> None:
    assert diagnosis_view(diagnosis(**fields), language).end_known == ended


def test_that_a_package_is_named_once_however_it_is_spelled() -> None:
    """Case, dashes, underscores and dots tell no package from another; another release does."""
    named = [
        ("SentencePiece", "install"),
        ("sentencepiece", "install"),
        ("flash_attn", "2.6"),
        ("flash-attn", "2.7"),
    ]
    changes = tuple(proposal(key, to=to, kind="package", framework="pip") for key, to in named)
    shown = diagnosis_view(diagnosis(changes=changes)).changes
    assert [change.key for change in shown] == ["SentencePiece", "flash_attn", "flash-attn"]
