"""The copy of a job's output: bounded, whole lines, and line numbers that stay those of the output."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from service.monitoring.log_buffer import LONGEST, BufferStream, LogBuffer


def whole(copy: LogBuffer) -> bytes:
    """Give all that a copy holds."""
    held = b"".join(copy.chunks())
    copy.close()
    return held


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 2]), st.binary(max_size=8).map(lambda raw: raw.replace(b"x", b"\n"))),
        max_size=30,
    )
)
@settings(derandomize=True, deadline=None, max_examples=100)
def test_that_no_byte_of_a_stream_is_lost_and_lines_stay_whole(pieces: list[tuple[int, bytes]]) -> None:
    copy = LogBuffer()
    for stream, data in pieces:
        copy.write(stream, data)
    held = whole(copy)
    assert len(held) == sum(len(data) for _, data in pieces)
    for stream in (1, 2):
        own = b"".join(data for one, data in pieces if one == stream)
        for line in own.split(b"\n")[:-1]:
            assert line + b"\n" in held


def test_that_the_beginning_and_the_end_stay_and_lines_keep_their_numbers() -> None:
    copy = LogBuffer(head=1000, segment=1000, segments=2)
    rows = [b"%06d words\n" % number for number in range(10_000)]
    for row in rows:
        copy.write(1, row)
    held = whole(copy).split(b"\n")
    assert len(held) == len(rows) + 1
    assert held[0] + b"\n" == rows[0]
    assert held[-2] + b"\n" == rows[-1]
    kept = [(number, line) for number, line in enumerate(held[:-1]) if line]
    assert all(line + b"\n" == rows[number] for number, line in kept)
    assert len(kept) < 400
    assert copy.dropped_bytes + sum(len(line) + 1 for _, line in kept) == sum(map(len, rows))


def test_that_an_endless_line_is_not_held_back_for_ever() -> None:
    copy = LogBuffer()
    for _ in range(5):
        copy.write(1, b"x" * LONGEST)
    assert len(copy.held[1]) <= LONGEST
    assert whole(copy) == b"x" * 5 * LONGEST


def test_that_a_stream_gives_no_more_than_is_asked_for() -> None:
    stream = BufferStream(iter([b"abc", b"", b"de"]))
    assert [stream.read(2), stream.read(2), stream.read(9), stream.read(9)] == [b"ab", b"c", b"de", b""]
