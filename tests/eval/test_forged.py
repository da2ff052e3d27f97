"""Forged error lines: they are read as what they claim, and what they do to an answer is counted."""

from __future__ import annotations

from eval import incidents
from eval.forged import PLACES, ForgedLog, answer, forged_logs, measure, read_forged_lines
from service.pipeline.triage import Triage

NAME = "amber-quay"


def test_each_forged_line_alone_is_taken_for_what_it_claims(triage: Triage) -> None:
    """A line that no rule reads would measure nothing."""
    wrong = [
        (line.cause, found)
        for line in read_forged_lines()
        if (found := answer(triage, f"step 1: loss 2.0\n{line.line}\n", "en")[1]) != line.cause
    ]
    assert wrong == []


def test_a_forged_log_holds_the_line_once_at_its_place_and_all_of_the_log(triage: Triage) -> None:
    """And never a line of the kind of failure that the log really shows."""
    incident = next(item for item in incidents.load() if item.id == NAME)
    root = incident.label.root_lines[0]
    made = {log.place: log for log in forged_logs([incident], read_forged_lines(), triage.library)}
    assert set(made) == set(PLACES)
    expected = {
        "early": root // 10,
        "before the failure": root - 1,
        "quoted before the failure": root - 1,
        "after the failure": len(incident.lines),
    }
    for place, log in made.items():
        rows = log.text.split("\n")
        row = rows.pop(expected[place])
        assert (log.forged.line in row, log.forged.line == row) == (True, not place.startswith("quoted"))
        assert rows == incident.lines
        kinds = {triage.library.causes[cause].category for cause in incident.label.causes}
        assert triage.library.causes[log.forged.cause].category not in kinds


def test_what_became_of_the_answers_is_counted_by_place(triage: Triage) -> None:
    """Each log is in the count of its place; a log whose true cause is claimed counts as held."""
    incident = next(item for item in incidents.load() if item.id == NAME)
    logs = list(forged_logs([incident], read_forged_lines(), triage.library))
    same = next(line for line in read_forged_lines() if line.cause in incident.label.causes)
    counts = measure(triage, iter([*logs, ForgedLog(incident, "early", same)]))
    assert {place: found.logs for place, found in counts.items()} == {
        place: 1 + (place == "early") for place in PLACES
    }
    assert all(found.forged + found.other + found.abstained <= found.logs for found in counts.values())
    held = measure(triage, iter([ForgedLog(incident, "early", same)]))["early"]
    assert (held.forged, held.other, held.abstained) == (0, 0, 0)
