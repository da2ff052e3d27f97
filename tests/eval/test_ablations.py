"""What each part that names causes adds: it is taken out for an answer, and told with an interval."""

from __future__ import annotations

from collections.abc import Iterator

from eval import ablations
from eval.ablations import PARTS, WITHOUT, effects, silenced, table
from eval.incidents import Incident, load
from ingest.logs import refinement
from service.pipeline.triage import Triage
from tests.warm import INCIDENTS, explained

# An exception of a class of somebody's own, in the job's own code: no pattern knows it.
LOG = """\
Traceback (most recent call last):
  File "/job/train.py", line 9, in <module>
    main()
  File "/job/train.py", line 5, in main
    raise ShardDecodeError(row)
quux.errors.ShardDecodeError: row 9
"""


def test_that_a_part_says_nothing_for_the_time_that_it_is_taken_out(triage: Triage) -> None:
    known = refinement.classify_exception
    assert explained(triage, LOG).cause == "dataset-unreadable"
    with silenced(tuple(PARTS)):
        assert explained(triage, LOG).verdict == "unknown"
    assert refinement.classify_exception is known
    assert explained(triage, LOG).cause == "dataset-unreadable"


def test_that_a_part_adds_what_is_lost_without_it(triage: Triage) -> None:
    def some() -> Iterator[Incident]:
        return (item for item in load(INCIDENTS, "test") if item.id.startswith("tern-"))

    found = effects(some, triage)
    assert [effect.without for effect in found] == list(WITHOUT)
    whole = found[0]
    assert whole.added.value == 0.0
    for effect in found[1:]:
        assert abs(whole.right.value - effect.right.value - effect.added.value) < 1e-9
    rows = table("some", found).splitlines()
    assert len(rows) == len(WITHOUT)
    assert {row.count("|") for row in rows} == {ablations.HEAD.count("|")}
