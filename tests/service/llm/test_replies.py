"""Follow-up questions that are answered from the log's own lines and numbers, without a model."""

from __future__ import annotations

from dataclasses import replace

from corpus.message import is_chinese
from service.llm.prompt_context import PromptContext, build_prompt_context
from service.llm.replies import FollowUpQuestion, reply
from service.pipeline.triage import Triage
from service.schemas.diagnosis import ProposedChange
from tests.service.factories import proposal
from tests.service.llm.answering import OFFLOAD, asked
from tests.tables import each_row

PROOF = "131,072 tokens need 16.0 GB, 5.0 are free; 41,104 fit"
LENGTH = proposal("max_model_len", to=41104, from_="131072", proof=PROOF, framework="vllm")
SHARE = proposal(
    "gpu_memory_utilization", to=0.92, from_="0.8", proof="5.0 GB more are needed", framework="vllm"
)


def told(triage: Triage, text: str, *changes: ProposedChange, language: str = "en") -> str:
    """Ask about a job for which changes are offered."""
    context: PromptContext = replace(build_prompt_context(asked(triage, OFFLOAD, language)), offered=changes)
    return reply(FollowUpQuestion(text, context, changes), lambda _words: [])


@each_row(
    ("text", "change", "begins"),
    [
        ("would 32768 be enough?", LENGTH, "Yes"),
        ("would 32k be enough?", LENGTH, "Yes"),
        ("Is 65,536 enough?", LENGTH, "No"),
        ("would 0.95 be enough?", SHARE, "Yes"),
        ("would 95% be enough?", SHARE, "Yes"),
        ("would 0.85 be enough?", SHARE, "No"),
        ("would 0.85 be enough?", proposal("x", to=0.9, from_="0.8"), "The log states no numbers"),
        ("would 5 be enough?", proposal("x", to=8, proof="8 are needed"), "The log's numbers say"),
    ],
)
def test_that_a_sum_is_done_by_the_logs_numbers(
    triage: Triage, text: str, change: ProposedChange, begins: str
) -> None:
    """A value on the safe side of the proposed one is enough; without such numbers nothing is claimed."""
    said = told(triage, text, change)
    assert said.startswith(begins), said
    assert change.proof is None or change.proof in said


def test_that_the_setting_that_is_named_is_meant(triage: Triage) -> None:
    """Else the first whose value was worked out."""
    assert "`gpu_memory_utilization` at 0.95" in told(
        triage, "would gpu_memory_utilization 0.95 be enough?", LENGTH, SHARE
    )
    assert "`max_model_len`" in told(triage, "would 4096 be enough?", LENGTH, SHARE)


def test_that_a_line_is_explained(triage: Triage) -> None:
    """What it says, what it is to the failure, and what its cause means; in Chinese, too."""
    context = build_prompt_context(asked(triage, OFFLOAD, "en"))
    root = context.first.root
    assert root is not None
    for text in (f"what does L{root.line} mean?", f"explain line {root.line}", f"what is [L{root.line}]"):
        said = told(triage, text)
        assert root.text.strip()[:60] in said, text
        assert "first failure that nothing came back from" in said, text
    assert is_chinese(told(triage, f"第 {root.line} 行是什么意思？", language="zh"))


def test_that_a_line_that_was_not_kept_is_said_to_be_so(triage: Triage) -> None:
    """Nothing is made up about it."""
    assert "nothing was kept" in told(triage, "what does L999999 mean?")
