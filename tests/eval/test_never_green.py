"""No failed incident is told green, whatever a script says behind it or wherever its log is cut."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eval import incidents
from eval.incidents import Incident
from tests.factories import ReadLog

# Every so many incidents one is tried in each run of the tests, and the others in the long ones.
SAMPLE = 13
# What scripts say last without `set -e`.
LAST_WORDS = (
    "Training complete!\n",
    "=== Training finished at Sun Nov 29 17:00:00 UTC 2026 ===\nAll done!\n",
    "Job completed successfully at 2026-11-29 10:00:00\n",
    "训练完成\n",
    "########## Done! ##########\n",
)


# What a script's last word, or the last row, may well be right about.
ARGUABLE = {
    "fathom-29": "the log of another machine, whose server goes on, is shown behind the failure",
    "w-vllm-nixl-prefill-gone": "one request failed, and the engine serves on",
    "openrlhf-save-host-peak": "the bars of the work had all come to their end",
    "dotterel-22": "the last word stands behind commands that a person tried while the job hung",
    "thrift-flume": "the failure was logged, which most of those live through who then say that all is done",
}


def others() -> list[Incident]:
    """Give the incidents that the sample has not."""
    return [one for number, one in enumerate(incidents.load()) if number % SAMPLE]


def failed(chosen: Sequence[Incident]) -> list[tuple[Incident, str]]:
    """Give the diagnosed incidents whose log is one file and alone, with its text."""
    return [
        (one, one.text)
        for one in chosen
        if one.label.verdict == "diagnosed" and not one.beside and one.id not in ARGUABLE
    ]


def is_green(read: ReadLog, text: str) -> bool:
    report = read(text)
    return report.root is None and report.log_end.kind == "closed"


def green_with_last_words(read: ReadLog, chosen: Sequence[Incident]) -> list[str]:
    return [
        f"{one.id}: {words!r}"
        for one, text in failed(chosen)
        for words in LAST_WORDS
        if is_green(read, f"{text.rstrip()}\n{words}")
    ]


def green_when_cut(read: ReadLog, chosen: Sequence[Incident]) -> list[str]:
    """Name the incidents whose log is told green up to the row above the first that states the root."""
    found = []
    for one, text in failed(chosen):
        rows = text.split("\n")[: min(one.label.root_lines) - 1]
        if rows and is_green(read, "\n".join(rows) + "\n"):
            found.append(one.id)
    return found


def test_that_a_sample_of_the_failed_incidents_is_never_green(read: ReadLog) -> None:
    chosen = incidents.load()[::SAMPLE]
    assert green_with_last_words(read, chosen) == []
    assert green_when_cut(read, chosen) == []


@pytest.mark.long
def test_that_no_failed_incident_is_green_for_a_scripts_last_word(read: ReadLog) -> None:
    assert green_with_last_words(read, others()) == []


@pytest.mark.long
def test_that_no_incident_is_green_before_it_fails(read: ReadLog) -> None:
    assert green_when_cut(read, others()) == []
