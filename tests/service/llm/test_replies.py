"""Follow-up questions that are answered from the log's own lines and numbers, without a model."""

from __future__ import annotations

from dataclasses import replace

from corpus.message import is_chinese
from ingest.logs.inputs import sources
from service.llm.conversation import Conversation, Turn
from service.llm.prompt_context import PromptContext, build_prompt_context
from service.llm.replies import FollowUpQuestion, reply
from service.pipeline.triage import Triage
from service.remediation.constraints import remaining_changes, stated_constraints
from service.schemas.diagnosis import Dropped, Engine, ProposedChange
from service.schemas.value_bounds import ValueBounds
from tests.factories import OOM, prefixed, traceback
from tests.service.factories import proposal
from tests.service.llm.answering import OFFLOAD, asked, asked_of
from tests.tables import each_row

PROOF = "131,072 tokens need 16.0 GB, 5.0 are free; 41,104 fit"
LENGTH = proposal(
    "max_model_len",
    to=40960,
    from_="131072",
    proof=PROOF,
    bounds=ValueBounds(at_most=41104, at_least=2048),
    framework="vllm",
)
SHARE = proposal(
    "gpu_memory_utilization",
    to=0.92,
    from_="0.8",
    proof="5.0 GB more are needed",
    bounds=ValueBounds(at_least=0.9),
    framework="vllm",
)
BATCH = proposal(
    "data.train_batch_size",
    to=24,
    from_="20",
    proof="20 must be a multiple of 8",
    bounds=ValueBounds(multiple_of=8),
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
        ("would 5 be enough?", proposal("x", to=8, from_="4", proof="8 divides"), "The log's numbers say"),
        ("would 32 be enough?", BATCH, "Yes"),
        ("would 20 be enough?", BATCH, "No"),
        ("would a batch size of 16 be enough?", BATCH, "Yes"),
        ("would train-batch-size 12 be enough?", BATCH, "No"),
        ("is 1024 enough?", LENGTH, "No"),
        ("would max_model_len 4096 do?", LENGTH, "Yes"),
        ("would 8 GPUs be enough?", SHARE, "The log states no numbers"),
        ("8张卡够吗", SHARE, "The log states no numbers"),
        ("would 2 nodes be enough?", BATCH, "The log states no numbers"),
        ("would upgrading to version 0.95 be enough?", SHARE, "The log states no numbers"),
        ("would upgrading vllm to 0.95 be enough?", SHARE, "The log states no numbers"),
        ("would swap_space 0.95 be enough?", SHARE, "The log states no numbers"),
        ("would 80 GB be enough?", SHARE, "The log's numbers say"),
        ("would 0.95k be enough?", SHARE, "0.95k is no value"),
        ("would 1.5 be enough?", SHARE, "1.5 is no value for `gpu_memory_utilization`"),
        ("would 4096.5 be enough?", LENGTH, "4096.5 is no value for `max_model_len`"),
        ("would 0.91 or 0.95 be enough?", SHARE, "The log's numbers say"),
        ("would 0.95 instead of 0.8 be enough?", SHARE, "Yes"),
        ("0.95够吗", SHARE, "Yes"),
        ("would 5 be enough?", proposal("x", to="8 16", proof="8 are needed"), "The log states no numbers"),
        ("would 5 be enough?", proposal("x", to="1 .", proof="8 are needed"), "The log states no numbers"),
    ],
)
def test_that_a_sum_is_done_by_the_logs_numbers(
    triage: Triage, text: str, change: ProposedChange, begins: str
) -> None:
    """A value that keeps to what the log's arithmetic asks of any is enough.

    Of another thing's number, of another kind of proof and without numbers nothing is claimed.
    """
    said = told(triage, text, change)
    assert said.startswith(begins), said
    assert not said.startswith(("Yes", "No", "The log's")) or (change.proof or "") in said


def test_that_what_a_unit_means_for_a_setting_is_not_guessed(triage: Triage) -> None:
    """It is said that the unit is not plain, and no full stop is doubled in Chinese."""
    assert "unit" in told(triage, "would 80 GB be enough?", SHARE)
    chinese = SHARE.model_copy(update={"proof": "还需 5 GB。"})
    assert "。。" not in told(triage, "0.95够吗", chinese, language="zh")
    assert is_chinese(told(triage, "1.5够吗", SHARE, language="zh"))


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


def test_that_a_value_of_another_setting_is_told_by_why_that_was_left_out(triage: Triage) -> None:
    """A share is none of a length: what the log's numbers say of the share is the answer, named or not."""
    context = build_prompt_context(asked(triage, OFFLOAD, "en"))
    dropped = Dropped(
        what="vllm: --gpu-memory-utilization=0.95", why="15.64 GiB are missing, and 0.95 adds 2.6"
    )
    first = context.first.model_copy(update={"engine": Engine(dropped=(dropped,))})
    context = replace(context, offered=(LENGTH,), first=first)

    def said(text: str) -> str:
        return reply(FollowUpQuestion(text, context, (LENGTH,)), lambda _words: [])

    for text in ("would 0.95 be enough?", "would gpu_memory_utilization 0.93 be enough?"):
        assert said(text).startswith("No"), text
        assert "15.64 GiB are missing" in said(text), text
    assert "15.64" not in said("would 0.5 be enough?")


RANKS = "".join(
    f"[rank{rank}]: step 40 loss 0.5\n" + prefixed(f"[rank{rank}]: ", traceback(OOM)) for rank in (0, 1)
)


@each_row(
    ("text", "says"),
    [
        ("look at rank 1", ["What failed on rank 1", "CUDA out of memory"]),
        ("what about rank 3?", ["No failure in this log is of rank 3"]),
        ("it is not the network", ["does not rest on", "It names: GPU out of memory"]),
        ("it is not an out of memory problem", ["is ruled out, then"]),
        ("we changed nothing but the driver", ["Driver and CUDA version do not fit"]),
        ("how do I resume?", ["names no whole checkpoint"]),
        ("please write me a poem", ["Without a model this cannot be answered"]),
    ],
)
def test_that_a_person_steers_without_a_model(triage: Triage, text: str, says: list[str]) -> None:
    """A rank, what it is not, what was changed, how to go on; what else is asked is plainly not answered."""
    context = build_prompt_context(asked_of(triage, RANKS))
    said = reply(FollowUpQuestion(text, context, ()), lambda _words: [])
    assert [part for part in says if part not in said] == [], said


def test_that_chinese_words_name_a_cause_wherever_they_stand(triage: Triage) -> None:
    """Of characters without blanks each pair may be the word."""
    context = build_prompt_context(asked_of(triage, RANKS, "zh"))
    said = reply(FollowUpQuestion("为什么不是驱动的问题？", context, ()), lambda _words: [])
    assert "驱动与 CUDA 版本不匹配" in said.partition("如何区分")[0]


def test_that_a_flag_with_dashes_is_ruled_out_by_any_of_its_names() -> None:
    """What is noted holds: neither its own spelling nor what people call it leaves it among the changes."""
    flag = proposal("--max-model-len", to=27904, kind="flag", framework="vllm")
    for text in (
        "we cannot change max_model_len",
        "we cannot change the model length",
        "不能改 max_model_len",
    ):
        assert remaining_changes((flag,), stated_constraints(text, (flag,))) == (), text
    assert remaining_changes((flag,), stated_constraints("we cannot change the batch size", (flag,))) == (
        flag,
    )


def test_that_a_line_that_was_not_kept_is_said_to_be_so(triage: Triage) -> None:
    """Nothing is made up about it."""
    assert "nothing was kept" in told(triage, "what does L999999 mean?")


def test_that_a_line_of_a_program_is_none_of_the_log(triage: Triage) -> None:
    """What a traceback names is answered in another way; a log's own name may stand beside a number."""
    for text in (
        'what does File "x.py", line 10 mean?',
        "why does x.py line 10 fail?",
        "line 10 of src/x.py?",
    ):
        assert "L10]" not in told(triage, text), text
        assert "nothing was kept" not in told(triage, text), text
    assert "nothing was kept" in told(triage, "what is train.log line 999999?")


def test_that_a_line_is_read_from_the_output_where_the_report_does_not_hold_it(triage: Triage) -> None:
    """The output is opened anew for it; what is not there is said to be so."""
    log = "".join(f"row {number} of the job\n" for number in range(1, 5000)) + traceback(OOM)
    context = asked_of(triage, log)
    assert 2500 not in context.assessment.report.texts
    context = replace(context, reopen=lambda: sources.from_text(log))
    talk = Conversation(context, lambda _words: [])
    for text, said in (
        ("what is line 2500?", "row 2500 of the job"),
        ("what is L999999?", "nothing was kept"),
    ):
        (*_, turn) = talk.ask(text)
        assert isinstance(turn, Turn)
        assert said in turn.text
