"""An answer for a ticket is Markdown whose blocks hold what is a log's."""

from __future__ import annotations

from service.composition.diagnosis_view import diagnosis_view
from service.composition.ticket import text
from service.pipeline.triage import Triage
from service.schemas.diagnosis import Evidence
from tests.warm import HEALTHY, answered

NAME = "openrlhf-save-host-peak"


def test_a_ticket_tells_the_conclusion_its_proof_and_the_patch(triage: Triage) -> None:
    """In the order in which one acts, with the diff as it applies."""
    view = diagnosis_view(answered(triage, NAME))
    told = text(view)
    assert view.root is not None
    places = [told.index(part) for part in (f"## {view.headline}", view.root.place, "**Changes**")]
    assert places == sorted(places)
    assert view.patch is None or f"```diff\n{view.patch}" in told


def test_a_ticket_of_a_good_end_says_so_alone(triage: Triage) -> None:
    told = text(diagnosis_view(answered(triage, HEALTHY)))
    assert told.startswith("## No failure")
    assert "**Changes**" not in told


def test_a_line_of_a_log_ends_no_block(triage: Triage) -> None:
    """A line that holds a fence stands within a longer one."""
    found = answered(triage, NAME)
    assert found.root is not None
    hostile = Evidence(**{**found.root.model_dump(), "text": "it says ```` <img src=x> [x](y)"})
    kept = [hostile if item == found.root else item for item in found.evidence]
    told = text(diagnosis_view(found.model_copy(update={"evidence": tuple(kept)})))
    assert "`````\nit says ```` <img src=x> [x](y)\n`````" in told


def test_a_headline_of_a_log_is_no_markup(triage: Triage) -> None:
    """What a headline quotes opens no link, image or tag; what stands in code stays as it is."""
    found = answered(triage, NAME).model_copy(update={"headline": "`a[0]` says ![x](https://h/p) <b>"})
    told = text(diagnosis_view(found)).split("\n", 1)[0]
    assert told == "## `a[0]` says !\\[x\\](https://h/p) \\<b>"
