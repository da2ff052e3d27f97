"""Some three hundred short texts of `short_pastes.yaml`: a dead job is never green, a good end always is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corpus.library import read_yaml
from ingest.errors import EmptyInputError
from ingest.logs.inputs import sources
from service.composition.diagnosis_view import diagnosis_view
from service.composition.phrases import phrase
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Diagnosis, Outcome
from tests.warm import diagnosed

PASTES: dict[str, list[Any]] = read_yaml(Path(__file__).with_name("short_pastes.yaml"))
# What a caller may know of an end that was none.
BAD_ENDS = (Outcome(exit_code=1), Outcome(signal="SIGKILL"), Outcome(state="FAILED"), Outcome(exit_code=137))


def answer(triage: Triage, text: str, outcome: Outcome | None = None) -> Diagnosis:
    """Triage a text in English."""
    return diagnosed(triage, sources.from_text(text), "en", outcome=outcome)


def unlike(triage: Triage, group: str, *expected: tuple[str, str]) -> list[tuple[str, str, str]]:
    """Give the texts of a group whose verdict and standing are none of those expected, with these."""
    found = [(text, answer(triage, text)) for text in PASTES[group]]
    return [
        (text, item.verdict, item.standing)
        for text, item in found
        if (item.verdict, item.standing) not in expected
    ]


def test_that_there_are_three_hundred_texts_of_each_kind() -> None:
    assert sum(map(len, PASTES.values())) >= 300
    texts = [text if isinstance(text, str) else text[0] for rows in PASTES.values() for text in rows]
    assert len(set(texts)) == len(texts)


@pytest.mark.long
def test_that_no_failed_job_is_said_to_have_ended_well_or_to_work_on(triage: Triage) -> None:
    found = [(text, answer(triage, text)) for text in PASTES["failed"]]
    assert [text for text, item in found if item.verdict == "no-failure" or item.action == "none"] == []


def test_that_a_good_end_in_a_programs_own_words_is_green(triage: Triage) -> None:
    assert unlike(triage, "healthy", ("no-failure", "established")) == []


def test_that_a_known_bad_end_outweighs_what_a_log_says_of_itself(triage: Triage) -> None:
    """Neither its own praise nor its work up to the last line makes a job that failed a sound one."""
    rows = [*PASTES["healthy"][::5], *(text for text, _ in PASTES["running"][::3]), *PASTES["cut"][::3]]
    found = [
        (text, outcome, answer(triage, text, outcome))
        for number, text in enumerate(rows)
        for outcome in (BAD_ENDS[number % len(BAD_ENDS)],)
    ]
    assert [(text, end) for text, end, item in found if item.verdict == "no-failure"] == []


def test_that_a_good_end_is_said_to_be_the_logs_or_the_callers(triage: Triage) -> None:
    """Where the log stops amid the work, its exit status is what shows the good end."""
    work, _ = PASTES["running"][0]
    told = answer(triage, work, Outcome(exit_code=0))
    assert (told.standing, told.headline) == ("established", "No failure found. It ended with exit code 0")
    closed = answer(triage, PASTES["healthy"][0], Outcome(exit_code=0))
    assert (closed.standing, closed.headline) == ("established", phrase("healthy-headline", "en"))


def test_that_a_job_at_work_is_told_with_the_step_that_it_stopped_at(triage: Triage) -> None:
    wrong = []
    for text, step in PASTES["running"]:
        found = answer(triage, text)
        is_told = step is None or f"at step {step} " in f"{found.headline.replace(',', '')} "
        if (found.verdict, found.standing, found.action) != (
            "no-failure",
            "none",
            "collect-more",
        ) or not is_told:
            wrong.append((text, found.verdict, found.standing, found.headline))
    assert wrong == []


def test_that_a_text_that_is_no_output_is_unknown(triage: Triage) -> None:
    assert unlike(triage, "no-output", ("unknown", "none")) == []


def test_that_a_log_without_its_end_is_neither_green_nor_explained(triage: Triage) -> None:
    assert unlike(triage, "cut", ("unknown", "none"), ("no-failure", "none")) == []


def test_that_a_script_or_a_command_is_said_to_be_one(triage: Triage) -> None:
    """Whoever pastes how a job is started learns that its output is wanted."""
    command = "torchrun --nproc_per_node=8 \\\n  train.py --config sft.yaml\n"
    for language in ("en", "zh"):
        found = diagnosed(triage, sources.from_text(command), language)
        assert found.headline == phrase("script-headline", "zh" if language == "zh" else "en")
    assert answer(triage, "#!/bin/bash\n" + command).headline == phrase("script-headline", "en")
    assert answer(triage, command + "W0105 03:04:05.000000 42 run.py:766] starting\n").headline == phrase(
        "no-sign-headline", "en"
    )


def test_that_failed_requests_are_no_failure_of_the_server(triage: Triage) -> None:
    """It is said which failed, with what the server said of them, and that the server itself did not."""
    for text, statuses in PASTES["requests"]:
        found = answer(triage, text)
        is_only = text.count("500") == 2
        name = "requests-only-headline" if is_only else "requests-headline"
        assert found.headline.startswith(phrase(name, "en", statuses=statuses))
        assert phrase("requests", "en") in found.explanation
        assert (found.verdict, found.action) == ("unknown" if is_only else "no-failure", "collect-more")
        assert ("maximum context length" in found.explanation) == ("maximum context length" in text)
        chinese = diagnosed(triage, sources.from_text(text), "zh")
        assert chinese.headline.startswith(phrase(name, "zh", statuses=statuses.replace(", ", "，")))


def test_that_a_refused_request_is_told_with_its_numbers_and_what_cures_it(triage: Triage) -> None:
    """The advice and the checks are those of the refusal; nothing is wrong with the machine."""
    limit = "This model's maximum context length is 4096 tokens. However, you requested 5120 tokens"
    split = "(1024 in the messages, 4096 in the completion)."
    text = "".join(
        [
            f"ERROR 08-08 04:09:17 [x.py:203] ValueError: {limit} {split}\n",
            'INFO:     127.0.0.1:55004 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\n',
            *['INFO:     127.0.0.1:55004 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'] * 6,
        ]
    )
    found = answer(triage, text)
    assert found.headline.endswith("5120 tokens, 4096 allowed")
    assert "4096 in the completion" in found.explanation
    assert diagnosis_view(found).part("do") != ""
    assert not any("dmesg" in check for check in found.checks)


def test_that_a_server_that_died_is_said_to_have_whatever_requests_failed(triage: Triage) -> None:
    text, _ = PASTES["requests"][0]
    died = text + "RuntimeError: CUDA error: an illegal memory access was encountered\n"
    found = answer(triage, died)
    assert (found.verdict, phrase("requests", "en") in found.explanation) == ("diagnosed", False)
    assert answer(triage, text, Outcome(exit_code=1)).verdict == "unknown"


@pytest.mark.parametrize("blank", ["", " ", "\n\n"])
def test_that_nothing_is_no_job(triage: Triage, blank: str) -> None:
    """An empty text is refused or unknown, and never green."""
    try:
        found = answer(triage, blank)
    except EmptyInputError:
        return
    assert (found.verdict, found.headline) == ("unknown", phrase("unrecognised-headline", "en"))
