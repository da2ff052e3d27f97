"""Events: the same failure many times is one."""

from __future__ import annotations

from ingest.logs.events import EventLog, Told, masked
from ingest.logs.stacks.tracebacks import Frame
from tests.factories import event
from tests.tables import each_row


@each_row(
    ("first", "second", "same"),
    [
        ("GPU 0 has 1.25 GiB free", "GPU 7 has 0.50 GiB free", True),
        ("at 0x7f00aa", "at 0x8812bc", True),
        ("object 00ffee11223344aa lost", "object 99aabbccddeeff00 lost", True),
        ("no file /job/a/1.pt", "no file /data/b/c/2.pt", True),
        ("version 2.6.0", "version 2.7.1", True),
        ("KeyError: 'a'", "KeyError: 'b'", False),
        ("out of memory", "out of time", False),
        ("read/write", "read/only", False),
    ],
)
def test_numbers_addresses_and_paths_do_not_tell_messages_apart(first: str, second: str, same: bool) -> None:
    """What differs from rank to rank is masked; what differs in kind is not."""
    assert (masked(first) == masked(second)) is same


def test_one_error_of_eight_ranks_is_one_event() -> None:
    """It counts eight, names the streams, and stands at its first line."""
    log = EventLog()
    for rank in range(8):
        log.add(event(10 + rank, body=f"boom on GPU {rank}", source=f"rank={rank}"))
    (found,) = log.all()
    assert (found.count, found.line, found.last, found.body) == (8, 10, 17, "boom on GPU 0")
    assert found.sources == tuple(f"rank={rank}" for rank in range(8))


def test_a_later_telling_lends_its_frames() -> None:
    """The first sight of a failure may lack its traceback."""
    log, frames = EventLog(), (Frame("a.py", 1, "f"),)
    log.add(event(1))
    log.add(event(5, frames=frames))
    log.add(event(9, frames=(Frame("b.py", 2, "g"),)))
    assert [found.frames for found in log.all()] == [frames]


def test_named_streams_are_bounded_and_the_count_is_not() -> None:
    """A thousand ranks are counted, some are named."""
    log = EventLog()
    for rank in range(1000):
        log.add(event(rank + 1, source=f"rank={rank}"))
    (found,) = log.all()
    assert (found.count, len(found.sources)) == (1000, EventLog.SOURCES)


def test_what_says_least_is_dropped_first_and_told() -> None:
    """Beyond the bound hints go before statements, however late the statement; the loss is counted."""
    log = EventLog()
    for number in range(EventLog.LIMIT):
        log.add(event(number + 1, pattern=f"hint.{number}", strength="hints", cause=None))
    log.add(event(10_000, pattern="stated"))
    found = log.all()
    assert len(found) < EventLog.LIMIT
    assert found[-1].pattern == "stated"
    assert found[0].line == 1
    assert log.omitted + sum(one.count for one in found) == EventLog.LIMIT + 1


def test_events_come_by_line() -> None:
    """Whatever order they were met in."""
    log = EventLog()
    for line in (5, 1, 3):
        log.add(event(line, pattern=f"p.{line}"))
    assert [found.line for found in log.all()] == [1, 3, 5]


@each_row(("counted", "expected"), [(0, ("10:00:00", "10:00:07")), (3, ("10:00:00", ""))])
def test_an_event_knows_when_it_was_said_first_and_last(counted: int, expected: tuple[str, str]) -> None:
    """The time of a last line that was only counted is not known, and none is made up."""
    log = EventLog()
    for second in range(8):
        key = log.add(event(10 + second, time=f"10:00:0{second}"))
    if counted:
        log.repeat(key, 99, counted)
    (found,) = log.all()
    assert (found.time, found.last_time) == expected


def test_a_line_that_is_only_counted_leaves_what_its_event_would() -> None:
    """Ranks, streams, the last line and its time are the same, whoever makes the event."""
    told = [
        event(9 + rank, body="boom", source=f"rank={rank}", rank=f"{rank}", time=f"10:0{rank}")
        for rank in range(3)
    ]
    whole, counted = EventLog(), EventLog()
    key = counted.add(told[0])
    for each in told:
        whole.add(each)
    for each in told[1:]:
        assert counted.only_counts(key, each.kind, each.frames, is_linked=False)
        counted.add_again(key, Told(each.kind, each.line, each.text, each.source, each.rank, each.time))
    assert counted.all(world=4) == whole.all(world=4)


def test_an_event_that_may_lend_its_calls_is_not_only_counted() -> None:
    """Of a group without calls, or raised further out, the event itself is wanted."""
    log, frames = EventLog(), (Frame("a.py", 1, "f"),)
    key = log.add(event(1))
    assert not log.only_counts(key, "error", frames, is_linked=False)
    log.add(event(2, frames=frames))
    assert log.only_counts(key, "error", frames, is_linked=False)
    assert not log.only_counts(key, "error", frames, is_linked=True)
    assert not log.only_counts(key, "kill", frames, is_linked=False)
    assert not log.only_counts(("other", "boom"), "error", (), is_linked=False)
