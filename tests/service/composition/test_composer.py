"""The composer: verdicts, what an unknown asks for, languages, and bounds."""

from __future__ import annotations

import re

import pytest

from corpus.message import LOCALES
from corpus.schema import Language
from ingest.logs.facts import Fact
from ingest.logs.progress import LogEnd
from service.composition import phrases
from service.composition.composer import language_of
from service.composition.evidence import MAX_CASCADE, MAX_EVIDENCE
from service.pipeline.triage import Triage
from service.schemas.diagnosis import UNKNOWN_CAUSE
from service.scoring.retrieval import Retrieval, SignatureMatch
from tests.factories import OOM, event, steps, traceback
from tests.service.factories import case, composed_of, failed, report
from tests.tables import each_row
from tests.warm import EVERY, WRITE_UPS, answered, explained

NOTHING = Retrieval((), ())
KILLED = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
_CHINESE = re.compile(r"[一-鿿]")


@each_row(
    ("log", "verdict", "cause"),
    [
        (KILLED + "\n", "diagnosed", "ray-memory-monitor-kill"),
        (traceback(OOM), "diagnosed", "gpu-oom-training"),
        (steps(1, 2, 3), "no-failure", None),
        ("hello\n", "unknown", UNKNOWN_CAUSE),
        (KILLED + "\n" + steps(1, 2, 3, 4), "no-failure", None),
        (
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
            "unknown",
            UNKNOWN_CAUSE,
        ),
        ("RuntimeError: the moon is in the wrong house\n", "unknown", UNKNOWN_CAUSE),
        (traceback("ValueError: the moon is in the wrong house"), "diagnosed", "user-code-error"),
        ("OSError: [Errno 28] No space left on device\n", "diagnosed", "disk-full"),
    ],
)
def test_a_verdict_follows_from_what_stands_in_the_log(
    log: str, verdict: str, cause: str | None, triage: Triage
) -> None:
    """A stated cause is diagnosed, a bare follower unknown, and what progress followed no failure."""
    answer = explained(triage, log, language="en")
    assert (answer.verdict, answer.cause) == (verdict, cause)


def test_a_weak_sign_is_not_a_diagnosis(triage: Triage) -> None:
    """Where doubt is likelier the cause is `insufficient-evidence`, and the sign is only an alternative."""
    weak = report(failed(3, pattern="x.a", cause="disk-full", strength="hints", pattern_role="wrapper"))
    answer = composed_of(weak, triage.library, "en")
    assert (answer.verdict, answer.cause, answer.standing) == ("unknown", UNKNOWN_CAUSE, "none")
    assert [item.cause for item in answer.alternatives] == ["disk-full"]


def test_two_causes_that_fit_alike_are_ambiguous(triage: Triage) -> None:
    """Rivals of nearly the same weight give no single diagnosis, and the answer says what tells them
    apart.
    """
    told = report(failed(3, pattern="x.a", cause=None))
    rival, other = (
        SignatureMatch(case(cause=cause), 3, at_root=True) for cause in ("port-in-use", "disk-full")
    )
    answer = composed_of(told, triage.library, "en", Retrieval((rival, other), ()))
    assert (answer.verdict, answer.action, answer.changes) == ("ambiguous", "collect-more", ())
    assert [item.cause for item in answer.alternatives] == ["disk-full"]
    assert answer.alternatives[0].tell_apart


@each_row("language", ["en", "zh"])
def test_an_unknown_says_what_to_collect(language: Language, triage: Triage) -> None:
    """Not knowing comes with what was seen and what would settle it, and proposes no change."""
    answer = composed_of(report(failed(pattern="x.a", cause=None)), triage.library, language)
    assert (answer.verdict, answer.action) == ("unknown", "collect-more")
    assert phrases.phrase("collect", language) in answer.explanation
    assert triage.library.causes[UNKNOWN_CAUSE].advice.sentences[0].to(language) in answer.explanation
    assert "[L3]" in answer.explanation
    assert answer.checks
    assert (answer.changes, answer.patch) == ((), None)


def test_a_log_with_a_good_end_has_nothing_to_prove(triage: Triage) -> None:
    """No cause, no confidence, no action, no evidence; that it ended well is established."""
    answer = composed_of(report(log_end=LogEnd("closed", 7)), triage.library, "en")
    assert (answer.verdict, answer.cause, answer.category, answer.action, answer.standing) == (
        "no-failure",
        None,
        None,
        "none",
        "established",
    )
    assert (answer.evidence, answer.cascade, answer.changes, answer.checks) == ((), (), (), ())
    assert phrases.phrase("ended", "en", line="[L7]", quote=".") in answer.explanation


@each_row("language", ["en", "zh"])
def test_a_stop_amid_work_is_no_good_end(language: Language, triage: Triage) -> None:
    """Where work goes on to the last line the answer names the step, and says where else the reason may
    be.
    """
    answer = composed_of(report(log_end=LogEnd("open", 9, 40.0, 100.0), marks=3), triage.library, language)
    assert (answer.verdict, answer.cause, answer.action, answer.standing) == (
        "no-failure",
        None,
        "collect-more",
        "none",
    )
    assert answer.headline == phrases.phrase(
        "open-headline", language, step="40", of=phrases.phrase("of-steps", language, total="100")
    )
    assert phrases.phrase("open-do", language) in answer.explanation
    assert answer.checks


@each_row("language", ["en", "zh"])
@each_row(("marks", "said"), [(0, "unrecognised"), (3, "no-sign")])
def test_silence_proves_nothing(marks: int, said: str, language: Language, triage: Triage) -> None:
    """A text without a failure, a good end or work until its end is unknown, and is told from a job's
    output that stops.
    """
    answer = composed_of(report(marks=marks, frameworks=()), triage.library, language)
    assert (answer.verdict, answer.cause, answer.action, answer.standing) == (
        "unknown",
        UNKNOWN_CAUSE,
        "collect-more",
        "none",
    )
    assert (answer.headline, answer.evidence) == (phrases.phrase(f"{said}-headline", language), ())
    assert phrases.phrase(said, language) in answer.explanation
    assert answer.checks


@each_row("name", [name for name in EVERY if name not in WRITE_UPS])
def test_only_a_diagnosis_proposes_changes(name: str, triage: Triage) -> None:
    """What is not known is not changed."""
    answer = answered(triage, name)
    assert answer.verdict != "diagnosed"
    assert (answer.changes, answer.patch) == ((), None)


@each_row("name", WRITE_UPS)
def test_a_chinese_answer_is_chinese_throughout(name: str, triage: Triage) -> None:
    """Every sentence of our own is in the answer's language; ids, keys and log lines stay as they are."""
    answer, english = answered(triage, name, "zh"), answered(triage, name, "en")
    sentences = [
        answer.headline,
        *answer.checks,
        *(item.why for item in answer.evidence),
        *(item.why for item in answer.changes),
        *(item.tell_apart for item in answer.alternatives),
        *(item.title for item in answer.cases if item.kind == "case"),
    ]
    assert [text for text in sentences if not _CHINESE.search(text)] == []
    assert not _CHINESE.search(english.headline + english.explanation)
    assert (answer.cause, answer.verdict, [item.line for item in answer.evidence]) == (
        english.cause,
        english.verdict,
        [item.line for item in english.evidence],
    )
    assert [(item.key, item.to) for item in answer.changes] == [
        (item.key, item.to) for item in english.changes
    ]


@each_row(
    ("shown", "wanted", "expected"),
    [
        ("训练在保存检查点时失败，进程被杀死", "", "zh"),
        ("训练在保存检查点时失败，进程被杀死", "en", "en"),
        ("the job died while saving", "", "en"),
        ("the job died while saving", "zh", "zh"),
        (
            "a long English log line that mentions 失败 once and goes on in English for a good while longer",
            "",
            "en",
        ),
    ],
)
def test_the_language_is_the_askers_or_else_the_logs(shown: str, wanted: str, expected: str) -> None:
    """What was asked for wins; without it, a log that is mostly Chinese is answered in Chinese."""
    assert language_of(report(failed(), tail=((1, shown),)), wanted) == expected


@each_row(
    ("said", "expected"),
    [
        # The lines of a log are English whoever pastes it: the writer's sentence tells.
        ("换了环境以后一直报这个错，pip list 里明明有 vllm==0.4.2，请问怎么解决？", "zh"),
        ("any idea what to do about it?", "en"),
        # A text of the data, in quotes or as a sample, and a line that a program logs are nobody's question.
        ('prompt: "请介绍一下你自己，并写一首关于春天的诗"', "en"),
        ("2025-01-01 10:00:00 INFO 开始加载训练数据和模型权重", "en"),
        ("{'text': '请介绍一下你自己'}", "en"),
    ],
)
def test_a_pasted_log_is_answered_in_the_language_of_who_pasted_it(said: str, expected: str) -> None:
    log = [
        f'  File "/opt/env/lib/python3.10/site-packages/a/{name}.py", line 3, in call' for name in "bcdefghi"
    ]
    rows = tuple(enumerate([*log, "ModuleNotFoundError: No module named 'vllm'", said], 1))
    assert language_of(report(failed(), tail=rows, is_whole=True), "") == expected


@each_row(
    ("variables", "expected"),
    [
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_TW.UTF-8"}, "zh"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({}, "en"),
    ],
)
def test_the_users_variables_choose_where_the_log_does_not(variables: dict[str, str], expected: str) -> None:
    """A container without the locale still answers in the language that its user asks for by the variable."""
    with pytest.MonkeyPatch.context() as patch:
        for name in LOCALES:
            patch.delenv(name, raising=False)
        for name, value in variables.items():
            patch.setenv(name, value)
        assert language_of(report(failed(), tail=((1, "the job died"),)), "") == expected


def test_evidence_and_cascade_are_bounded_and_keep_the_root(triage: Triage) -> None:
    """Hundreds of kinds of event do not bury the answer; what is cut is not the root."""
    events = [
        event(line, pattern=f"x.{line}", cause="disk-full", body=f"kind {line}") for line in range(1, 300)
    ]
    answer = composed_of(report(*events, failed(300, cause="disk-full")), triage.library, "en")
    assert 1 < len(answer.evidence) <= MAX_EVIDENCE
    assert len(answer.cascade) == MAX_CASCADE
    assert answer.evidence[0].line == 300
    assert 300 in [item.line for item in answer.cascade]


def test_counts_and_facts_of_the_root_are_told(triage: Triage) -> None:
    """The same message of eight ranks is one event with its count; the line's numbers are in the text."""
    root = failed(cause="gpu-oom-training", count=8, sources=tuple(f"rank={rank}" for rank in range(8)))
    told = report(
        root, facts=[Fact("gpu_oom", 3, {"asked_gib": 2.0, "free_gib": 1.25, "capacity_gib": 79.15})]
    )
    answer = composed_of(told, triage.library, "en")
    assert answer.cascade[0].count == 8
    assert all(number in answer.explanation for number in ("8", "1.25", "79.15"))


def test_log_text_cannot_break_out_of_its_quotation(triage: Triage) -> None:
    """Backticks in a log line do not end the code span that quotes it."""
    answer = composed_of(report(failed(body="a` **bold** `b", cause="disk-full")), triage.library, "en")
    quoted = answer.explanation.split("`")[1]
    assert "**bold**" in quoted


def test_a_case_gives_the_action_and_its_changes(triage: Triage) -> None:
    """The best case of the cause speaks before the cause's own general advice."""
    told = report(failed(cause="gpu-oom-training", pattern="torch.cuda-oom"), frameworks=[("verl", "0.3.1")])
    found = triage.retriever.retrieve(told)
    answer = composed_of(told, triage.library, "en", found)
    kin = [match.case for match in found.signatures if match.case.cause == answer.cause]
    assert answer.action == (kin[0].action if kin else triage.library.causes[str(answer.cause)].action)


@each_row("language", ["en", "zh"])
@each_row("name", ["save", "log-prob", "rollout", "update", "validate", "load", "initialise"])
def test_every_phase_has_words(name: str, language: Language) -> None:
    """A phase that a report can name is said in both languages."""
    assert bool(_CHINESE.search(phrases.phase(name, language))) is (language == "zh")


@each_row(
    "fact", [Fact("gpu_oom", 1, {}), Fact("unheard", 1, {"x": 1}), Fact("exit", 1, {"signal": "SIGKILL"})]
)
def test_a_fact_without_its_numbers_is_not_put_into_words(fact: Fact) -> None:
    """A sentence with holes is not written."""
    assert phrases.fact(fact, "en") == ""


@each_row(
    ("language", "told"),
    [
        ("en", "Raised by the job's own code, in `main` at `/job/train.py:30`: `trainer.fit()`."),
        ("zh", "由作业自己的代码抛出：`main`（`/job/train.py:30`）：`trainer.fit()`。"),
    ],
)
def test_the_place_that_raised_is_named(language: str, told: str, triage: Triage) -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/job/train.py", line 30, in main\n'
        "    trainer.fit()\n"
        "TypeError: fit() missing 1 required positional argument: 'data'\n"
    )
    assert told in explained(triage, log, language=language).explanation


def test_that_the_own_call_is_named_beside_the_place_in_a_package(triage: Triage) -> None:
    log = (
        "Traceback (most recent call last):\n"
        '  File "/job/train.py", line 30, in main\n'
        "    trainer.fit()\n"
        '  File "/opt/env/lib/python3.11/site-packages/lark/trainer.py", line 7, in fit\n'
        "    self.loop(data, eager=True)\n"
        "TypeError: loop() got an unexpected keyword argument 'eager'\n"
    )
    told = explained(triage, log, language="en").explanation
    own = "Called by the job's own code, in `main` at `/job/train.py:30`: `trainer.fit()`."
    # Where one can change something comes first.
    assert f"{own} Raised in `fit` at `lark/trainer.py:7`: `self.loop(data, eager=True)`." in told


@each_row("language", ["en", "zh"])
def test_that_an_end_which_was_asked_for_is_told_as_such(language: Language, triage: Triage) -> None:
    answer = composed_of(report(log_end=LogEnd("open", 9, asked=10), marks=3), triage.library, language)
    assert answer.verdict == "no-failure"
    assert answer.standing == "none"
    assert "10" in answer.headline
