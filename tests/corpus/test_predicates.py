"""The language of conditions."""

from __future__ import annotations

import pytest

from corpus.predicates import Operator, Predicate, compare, parse
from tests.tables import each_row


@each_row(
    ("text", "expected"),
    [
        ("pattern:ray.*", Predicate("pattern", "ray.*")),
        ("root:torch.cuda-oom", Predicate("root", "torch.cuda-oom")),
        ("cause:gpu-oom-logits", Predicate("cause", "gpu-oom-logits")),
        ("frame:vllm/worker/.*:execute_model", Predicate("frame", "vllm/worker/.*:execute_model")),
        ("exception:RayTaskError", Predicate("exception", "RayTaskError")),
        ("phase:save", Predicate("phase", "save")),
        ("framework:verl", Predicate("framework", "verl")),
        ("framework:vllm>=0.7,<0.8.3", Predicate("framework", "vllm", "~", ">=0.7,<0.8.3")),
        ("framework:flash-attn <2.6", Predicate("framework", "flash-attn", "~", "<2.6")),
        ("config:trainer.nnodes", Predicate("config", "trainer.nnodes")),
        ("config:zero_stage == 3", Predicate("config", "zero_stage", "==", "3")),
        (
            "config:--gpu-memory-utilization >= 0.9",
            Predicate("config", "--gpu-memory-utilization", ">=", "0.9"),
        ),
        ("gpu_oom.free_gib < 1", Predicate("fact", "gpu_oom.free_gib", "<", "1")),
        ("exit.signal ~ SIG(KILL|TERM)", Predicate("fact", "exit.signal", "~", "SIG(KILL|TERM)")),
    ],
)
def test_a_condition_is_parsed_into_subject_name_and_comparison(text: str, expected: Predicate) -> None:
    """Each form of the grammar gives its own subject."""
    assert parse(text) == expected


@each_row(
    "text",
    [
        "",
        "pattern:",
        "pattern: x",
        "gpu_oom.free_gib",
        "gpu_oom.free_gib <1",
        "gpu_oom < 1",
        "gpu_oom.free_gib => 1",
        "config:",
        "config:a b",
        "framework:Verl",
        "framework:verl 0.5",
        "colour:red",
    ],
)
def test_what_is_no_condition_raises_with_the_forms(text: str) -> None:
    """The error names the text and what may be written instead."""
    with pytest.raises(ValueError, match=r"is no condition: write pattern:"):
        parse(text)


@each_row("text", ["frame:(unclosed", "exception:[a-"])
def test_a_condition_with_a_broken_expression_is_refused(text: str) -> None:
    """An expression is compiled where it is written, not when a log meets it."""
    with pytest.raises(Exception, match=r"unterminated|missing"):
        parse(text)


@each_row(
    ("left", "op", "right", "expected"),
    [
        (0.5, "<", "1", True),
        (1, "<=", "1", True),
        (2, ">", "10", False),
        ("10", ">", "9", True),
        ("1e-6", "==", "0.000001", True),
        (3, "!=", "3.0", False),
        ("True", "==", "true", True),
        (True, "==", "True", True),
        (True, "==", "1", False),
        ("'bf16'", "==", "bf16", True),
        (" fp16 ", "==", "FP16", True),
        ("fp16", "!=", "bf16", True),
        ("SIGKILL", "~", "KILL|TERM", True),
        ("SIGINT", "~", "KILL|TERM", False),
        ("unknown", "<", "1", False),
        ("unknown", ">=", "1", False),
        (None, "==", "None", True),
    ],
)
def test_values_compare_as_numbers_where_both_are(
    left: object, op: Operator, right: str, expected: bool
) -> None:
    """Words are equal without quotes, case and blanks around them; order needs numbers."""
    assert compare(left, op, right) is expected
