"""What is left out of many rows, and what never is."""

from __future__ import annotations

from service.llm.row_folding import folded, folded_readings, head_and_tail


def test_of_a_run_alike_the_ends_stay() -> None:
    """Also where ranks alternate; a row that is wanted stays, and so does one that reads otherwise."""
    rows = {
        number: f"rank {number % 2} {'sends' if number % 2 else 'waits'}, {number} s"
        for number in range(1, 41)
    }
    rows[20] = "a word of its own"
    assert set(folded(rows, {7})) == {1, 2, 7, 20, 39, 40}
    assert folded({1: "a b", 2: "c d"}, ()) == {1: "a b", 2: "c d"}


def test_the_first_and_the_last_fit() -> None:
    """What is too much is taken from the middle; what fits is whole."""
    table = {
        ((1, 1, 1), 3): {0, 1, 2},
        ((1,) * 10, 5): {0, 1, 2, 8, 9},
        ((9, 1, 1), 5): {1, 2},
        ((9, 9), 5): set(),
        ((), 5): set(),
    }
    assert {row: head_and_tail(*row) for row in table} == table


def test_readings_of_many_things_stand_in_one_row() -> None:
    """With the lowest and highest of numbers, the common value, or the first few words."""
    readings: dict[str, object] = {
        "host.free": 3,
        "gpus[0].used": 5,
        "gpus[1].used": 9,
        "gpus[0].total": 80,
        "gpus[1].total": 80,
        "gpus[0].state": "ok",
        "gpus[1].state": "lost",
    }
    assert folded_readings(readings) == [
        "host.free = 3",
        "gpus[*].used: 2 readings, lowest gpus[0].used = 5, highest gpus[1].used = 9",
        "gpus[*].total = 80 (all 2)",
        "gpus[*].state: gpus[0].state = ok; gpus[1].state = lost",
    ]
