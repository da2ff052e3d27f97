"""Facts that follow from what several ranks say."""

from __future__ import annotations

from collections.abc import Sequence

from ingest.logs.derived_facts import ranks_apart
from ingest.logs.events import Event
from ingest.logs.stacks.stack import Frame
from tests.tables import each_row

LIBRARY = Frame("/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier")


def _waiting(rank: int, line: int, *, pattern_role: str = "collateral") -> Event:
    frames = (Frame("/job/train.py", line, "main", "dist.barrier()"), LIBRARY)
    return Event("made.timeout", "hang", pattern_role, 10 * rank + 1, "", "", rank=str(rank), frames=frames)  # type: ignore[arg-type]


@each_row(
    ("events", "calls"),
    [
        ([_waiting(0, 66), _waiting(1, 76)], 2),
        ([_waiting(0, 66), _waiting(1, 66), _waiting(2, 76)], 2),
        ([_waiting(0, 76), _waiting(1, 76)], 0),
        ([_waiting(0, 66), _waiting(0, 76)], 0),
        ([_waiting(0, 66, pattern_role="origin"), _waiting(1, 76)], 0),
    ],
)
def test_that_ranks_which_wait_in_other_statements_are_apart(events: Sequence[Event], calls: int) -> None:
    """Only ranks that wait count, each by where it came to wait first; a failure of its own is no wait."""
    found = ranks_apart(events, [])
    assert [fact.fields["calls_n"] for fact in found] == ([calls] if calls else [])
