"""Texts that are only for some kinds of jobs: an answer says those that can hold of its own."""

from __future__ import annotations

from pathlib import Path

from corpus.library import ROOT, parse_case
from corpus.schema import Case
from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.scoring.retrieval import Retrieval, SignatureMatch, signature_applies
from tests.service.factories import case, composed_of, failed, library, report
from tests.tables import each_row

SERVER = (Frame("/v/vllm/entrypoints/openai/api_server.py", 9, "run_server"),)
LOOP = (Frame("train.py", 9, "<module>"), Frame("/v/torch/_tensor.py", 9, "backward"))
FORWARD = (Frame("nlp.py", 9, "<module>"), Frame("/v/torch/nn/functional.py", 9, "gelu"))
PART = "<!-- where job:training -->Save often. <!-- end -->"


def out_of_memory(frames: tuple[Frame, ...], *frameworks: str) -> CrashReport:
    """Make a job that ran out of GPU memory under these calls."""
    return report(failed(frames=frames), frameworks=[(name, "") for name in frameworks])


@each_row(
    ("told", "said", "silent"),
    [
        (out_of_memory(LOOP, "pytorch"), ("gradient accumulation",), ("inference_mode", "parallelism")),
        (out_of_memory(FORWARD, "pytorch"), ("Where it trains", "inference_mode"), ("parallelism",)),
        (out_of_memory(SERVER, "vllm"), ("inference_mode",), ("gradient accumulation", "checkpointing")),
    ],
)
def test_a_causes_advice_is_that_for_the_kind_of_job(
    told: CrashReport, said: tuple[str, ...], silent: tuple[str, ...]
) -> None:
    """Accumulation is no advice for a server; where the kind is not known, both sides are named."""
    answer = composed_of(told, library())
    assert [word for word in said if word not in answer.explanation] == []
    assert [word for word in silent if word in answer.explanation] == []


def test_the_title_of_a_cause_claims_no_training_that_is_not_shown() -> None:
    """A forward pass of a script is named as what it is."""
    first, second = (
        composed_of(out_of_memory(frames, "pytorch"), library()).headline for frames in (LOOP, FORWARD)
    )
    assert "training step" in first
    assert "training" not in second


@each_row(
    ("frameworks", "commands"),
    [((), ()), (("slurm",), ("sacct",)), (("kubernetes",), ("kubectl",)), (("ray",), ())],
)
def test_checks_of_a_scheduler_stand_only_where_it_is_seen(
    frameworks: tuple[str, ...], commands: tuple[str, ...]
) -> None:
    """A desktop script is not sent to the accounting of a cluster."""
    told = report(
        failed(pattern="linux.oom-kill", cause="host-oom-kill"),
        frameworks=[(name, "") for name in frameworks],
    )
    checks = " ".join(composed_of(told, library()).checks)
    assert [name for name in ("sacct", "kubectl") if name in checks] == list(commands)


def limited_case() -> Case:
    """Make a case whose body has a part for training jobs."""
    written = (ROOT / "cases" / "pytorch" / "hangup-or-sigterm.md").read_text(encoding="utf-8")
    head = written.split("## en")[0]
    body = "### What you see\nx\n\n### Why\ny\n\n### What to do\n{part}End it.\n"
    texts = f"## en\n{body.format(part=PART)}\n## zh\n{body.format(part=PART)}"
    return parse_case(head + texts, Path("a.md"))


def test_a_part_of_a_case_is_said_of_the_jobs_that_it_is_for() -> None:
    """The comments that limit it are no part of the text."""
    made = limited_case()
    found = Retrieval((SignatureMatch(made, 3, at_root=True),), ())
    for frames, expected in ((LOOP, True), (SERVER, False)):
        told = report(failed(frames=frames, cause=made.cause), frameworks=[("pytorch", "")])
        answer = composed_of(told, library(cases=[made]), retrieval=found)
        assert "End it." in answer.explanation
        assert ("Save often." in answer.explanation) is expected
        assert "<!--" not in answer.explanation
    assert "Save often. End it." in made.body.en


@each_row(
    ("frames", "frameworks", "applies"),
    [
        (SERVER, ("vllm",), False),
        (SERVER, ("vllm", "verl"), True),
        (LOOP, ("vllm",), True),
        (FORWARD, ("vllm", "ray"), True),
    ],
)
def test_a_trainers_case_is_none_of_a_job_that_does_not_train(
    frames: tuple[Frame, ...], frameworks: tuple[str, ...], applies: bool
) -> None:
    """Its words may fit a server too; an unknown kind of job excludes nothing."""
    made = case("verl/one", frameworks={"verl": "", "vllm": ""})
    assert signature_applies(made, out_of_memory(frames, *frameworks).view()) is applies


@each_row(("frameworks", "told"), [(("slurm",), "sinfo"), (("kubernetes",), "kubectl"), ((), "journalctl")])
def test_an_alternative_is_confirmed_by_what_this_job_has(frameworks: tuple[str, ...], told: str) -> None:
    """Where no scheduler is seen, the first check that any machine has stands beside a lost node."""
    made = report(
        failed(pattern="x.a", cause="node-lost", strength="hints", pattern_role="wrapper"),
        frameworks=[(name, "") for name in frameworks],
    )
    found = composed_of(made, library()).alternatives
    assert [told in item.tell_apart for item in found if item.cause == "node-lost"] == [True]


def test_what_a_statement_raises_is_not_quoted_beside_its_message() -> None:
    """The line says it already; a statement that says more than its message is quoted."""
    for code, is_quoted in (
        ('raise ValueError("no rows are left")', False),
        ("raise ValueError(reasons[path])", True),
    ):
        frames = (Frame("/job/train.py", 9, "main", code),)
        answer = composed_of(report(failed(frames=frames)), library())
        assert (code in answer.explanation) is is_quoted
