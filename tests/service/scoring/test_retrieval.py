"""Retrieval: signatures, words and vectors, each alone and fused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ingest.logs.conditions import ReportView
from ingest.logs.configs.launch import Setting
from ingest.logs.facts import Fact
from service.pipeline.triage import Triage
from service.scoring.retrieval import Retriever, fuse_rankings, query_of, signature_applies
from tests.factories import ReadLog, document, event, traceback
from tests.service.factories import case, failed, library, report, setting
from tests.tables import each_row
from tests.warm import WRITE_UPS, answered, label

KILLED = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
LISTS = {"signature": ("a", "b"), "words": ("b", "a", "c"), "dense": ("c", "b")}


def view(
    pattern: str = "torch.cuda-oom",
    version: str = "0.3.1",
    free: float = 0.5,
    settings: tuple[Setting, ...] = (),
) -> ReportView:
    """Make what a signature is evaluated against: one failure of verl."""
    facts = [Fact("gpu_oom", 3, {"free_gib": free})]
    return report(
        failed(pattern=pattern), frameworks=[("verl", version)], facts=facts, settings=settings
    ).view()


def test_an_owner_that_leads_every_list_has_the_full_score() -> None:
    """The score is a share of the best possible: one for first everywhere, and never more."""
    (first, *rest) = fuse_rankings(dict.fromkeys(LISTS, ("a", "b")), {})
    assert first.owner == "a"
    assert first.score == pytest.approx(1.0)
    assert all(0 < item.score < 1 for item in rest)


def test_fusion_keeps_where_each_was_found() -> None:
    """`parts` gives each retriever's rank, from 1, and only of those that found it."""
    assert {item.owner: dict(item.parts) for item in fuse_rankings(LISTS, {})} == {
        "a": {"signature": 1, "words": 2},
        "b": {"signature": 2, "words": 1, "dense": 2},
        "c": {"words": 3, "dense": 1},
    }


def test_fusion_orders_by_score_and_then_by_name() -> None:
    """Equal scores have a fixed order, so that the same log gives the same answer."""
    owners = [item.owner for item in fuse_rankings({"words": ("z", "m"), "dense": ("m", "z")}, {})]
    assert owners == ["z", "m"]
    assert [item.owner for item in fuse_rankings({"words": ("z",)}, {})] == ["z"]
    scores = [item.score for item in fuse_rankings(LISTS, {})]
    assert scores == sorted(scores, reverse=True)


def test_a_signature_outranks_likeness() -> None:
    """What holds as a checked fact comes before what only sounds alike."""
    assert (
        fuse_rankings({"signature": ("exact",), "words": ("like",), "dense": ("like",)}, {})[0].owner
        == "exact"
    )


def test_a_found_note_keeps_its_kind_and_document() -> None:
    """What is no case is told as what it is."""
    note = document("note/1", "text", kind="note", owner="note/1")
    (item,) = fuse_rankings({"words": ("note/1",)}, {"note/1": note})
    assert (item.kind, item.document) == ("note", note)


@each_row(
    ("fields", "seen", "expected"),
    [
        ({"signatures": {"any": ["pattern:torch.*"]}}, {}, True),
        ({"signatures": {"any": ["pattern:ray.*", "pattern:torch.*"]}}, {}, True),
        ({"signatures": {"any": ["pattern:ray.*"]}}, {}, False),
        ({"signatures": {"all": ["pattern:torch.*", "gpu_oom.free_gib < 1"]}}, {}, True),
        ({"signatures": {"all": ["pattern:torch.*", "gpu_oom.free_gib < 1"]}}, {"free": 4.0}, False),
        ({"signatures": {"any": ["pattern:torch.*"], "none": ["gpu_oom.free_gib < 1"]}}, {}, False),
        ({"signatures": {"any": ["pattern:torch.*"], "none": ["pattern:ray.*"]}}, {}, True),
        ({"signatures": {"any": ["config:batch >= 64"]}}, {"settings": (setting("data.batch", "64"),)}, True),
        ({"signatures": {"any": ["config:batch >= 64"]}}, {}, False),
        ({"frameworks": {"verl": "<0.5"}}, {}, True),
        ({"frameworks": {"verl": ">=0.5"}}, {}, False),
        ({"frameworks": {"verl": ">=0.5"}}, {"version": ""}, True),
        ({"frameworks": {"trl": ">=0.5"}}, {}, False),
        ({"frameworks": {"pytorch": ">=0.5"}}, {}, True),
    ],
)
def test_a_signature_is_any_and_all_and_none_of(
    fields: dict[str, Any], seen: dict[str, Any], expected: bool
) -> None:
    """One of `any`, each of `all`, none of `none`.

    A framework's printed version may speak against the case.
    """
    assert signature_applies(case(**fields), view(**seen)) is expected


def test_the_most_exact_signature_comes_first() -> None:
    """A condition at the root beats one elsewhere; more conditions beat fewer."""
    cases = [
        case("x/elsewhere", signatures={"any": ["pattern:ray.*"]}),
        case("x/one", signatures={"any": ["pattern:torch.*"]}),
        case("x/two", signatures={"any": ["pattern:torch.*"], "all": ["gpu_oom.free_gib < 1"]}),
    ]
    told = report(
        failed(3), event(9, pattern="ray.actor-died"), facts=[Fact("gpu_oom", 3, {"free_gib": 0.5})]
    )
    found = Retriever(library(cases=cases), None, None).signatures(told)
    assert [(match.case.id, match.at_root) for match in found] == [
        ("x/two", True),
        ("x/one", True),
        ("x/elsewhere", False),
    ]


def test_a_case_stands_for_those_that_it_refines_and_that_these_refine_in_turn() -> None:
    """Where it does not apply they do; a case between two that does not apply itself breaks no chain."""
    cases = [
        case("x/any", signatures={"any": ["pattern:torch.*"]}),
        case("x/absent", signatures={"any": ["pattern:ray.*"]}, refines=["x/any"]),
        case("x/exact", signatures={"any": ["gpu_oom.free_gib < 1"]}, refines=["x/absent"]),
        case("x/other", signatures={"any": ["pattern:torch.*"]}),
    ]
    retriever = Retriever(library(cases=cases), None, None)

    def found(free: float) -> list[str]:
        told = report(failed(3), facts=[Fact("gpu_oom", 3, {"free_gib": free})])
        return sorted(match.case.id for match in retriever.signatures(told))

    assert found(0.5) == ["x/exact", "x/other"]
    assert found(4.0) == ["x/any", "x/other"]


def test_what_the_roots_line_tells_of_its_cause_is_asked_for_and_not_counted_twice() -> None:
    """The line has a vote of its own, so the condition makes no case more exact."""
    wanted = {"any": ["pattern:torch.*"], "all": ["cause:gpu-oom-logits"]}
    retriever = Retriever(library(cases=[case("x/logits", signatures=wanted)]), None, None)
    assert retriever.signatures(report(failed(cause="gpu-oom-training"))) == []
    (match,) = retriever.signatures(report(failed(cause="gpu-oom-logits")))
    assert (match.conditions, match.at_root) == (1, True)


def test_where_nothing_failed_nothing_is_looked_up(triage: Triage) -> None:
    """A healthy log has no signatures, no query and no cases."""
    found = triage.retriever.retrieve(report())
    assert (found.signatures, found.query, found.ranked) == ((), "", ())


def test_signatures_need_no_index(triage: Triage, read: ReadLog) -> None:
    """Without an index or a model the checked facts are still found."""
    found = Retriever(triage.library, None, None).retrieve(read(KILLED + "\n"))
    assert found.signatures
    assert {item.owner for item in found.ranked} == {match.case.id for match in found.signatures}


@each_row(
    "path, is_data",
    [
        ("/data/set/rows.json", True),
        ("/models/out/config.json", False),
        ("/models/out/generation_config.json", False),
        ("/models/out/model.safetensors.index.json", False),
        ("/env/lib/python3.11/site-packages/quux/types.json", False),
    ],
)
def test_that_no_model_or_package_keeps_data_in_its_own_files(
    path: str, is_data: bool, triage: Triage, read: ReadLog
) -> None:
    missing = traceback(f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'")
    loaded = missing.replace("/job/train.py", "/env/lib/python3.11/site-packages/datasets/load.py")
    retriever = Retriever(triage.library, None, None)
    found = [
        any(match.case.cause == "dataset-unreadable" for match in retriever.retrieve(read(log)).signatures)
        for log in (loaded, missing)
    ]
    # What the job's own code opens is a path of its own.
    assert found == [is_data, False]


def test_the_query_says_what_failed_and_no_secret(read: ReadLog) -> None:
    """The words to search with hold the root's message, exception and calls, redacted."""
    token = "hf_" + "A" * 34
    query = query_of(read(traceback(f"ValueError: the moon refused {token}", function="land_on")))
    assert "the moon refused" in query
    assert "land_on" in query
    assert token not in query


@each_row(
    ("words", "owner"),
    [
        ("object store full spill disk", "ray/object-store-full"),
        ("memory monitor killed worker node low on memory", "ray/memory-monitor-kill"),
        ("watchdog collective timeout one rank late", "pytorch/collective-straggler"),
        ("cuBLAS SIGFPE H20", "tinyzero/cublas-sigfpe-on-h20"),
        ("verl 的各级 batch 不能整除", "verl/train-batch-not-divisible"),
        ("host RAM grows free_cache_engine", "simplerl-reason/free-cache-engine-host-growth"),
    ],
)
def test_a_persons_words_find_the_case(words: str, owner: str, triage: Triage) -> None:
    """English, Chinese and a setting's bare name each lead to the case among the first five.

    The vectors of tests are hashes of words, which tell cases apart less well than those of a model.
    """
    assert owner in [item.owner for item in triage.retriever.search(words, 5)]


def test_search_gives_each_owner_once_and_no_more_than_asked(triage: Triage) -> None:
    """Pieces of one case are one result."""
    owners = [item.owner for item in triage.retriever.search("CUDA out of memory", 10)]
    assert len(owners) == len(set(owners)) == 10
    assert triage.retriever.search("", 10) == []


@each_row("name", WRITE_UPS)
def test_the_case_of_a_write_up_is_among_its_first_three(name: str, triage: Triage) -> None:
    """The index leads from the log to what is known of its failure: a case of one of the label's causes."""
    causes = set(label(name)["causes"])
    hits = answered(triage, name).cases[:3]
    assert causes & {triage.library.cases[hit.id].cause for hit in hits}


def test_reports_of_the_same_kind_share_a_fingerprint(read: ReadLog) -> None:
    """Numbers, addresses and paths make no difference to what a past crash is compared by.

    The message does.
    """
    logs = [f"RuntimeError: worker {pid} at 0x7f{pid}0 lost /tmp/run{pid}/x" for pid in (11, 22)]
    first, second, other = (
        read(traceback(log)).fingerprint for log in (*logs, "RuntimeError: something else")
    )
    assert re.fullmatch(r"[0-9a-f]{16}", first)
    assert first == second != other
