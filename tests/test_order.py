"""The order in which workers take files: the longest first, then those that have long tests."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.order import FAMILIES, LONGEST, TESTS, family, longest_first


class OneTest(NamedTuple):
    """A test by its file and number, and whether it takes long."""

    path: Path
    number: int
    long: bool = False

    def get_closest_marker(self, name: str) -> object:
        return self if self.long and name == "long" else None


def test_that_long_files_come_first_and_a_files_tests_stay_in_order() -> None:
    few, many, first, second = (TESTS / name for name in ("test_few.py", "test_many.py", *LONGEST[:2]))
    files = (few, many, many, many, second, first, few)
    found = longest_first([OneTest(path, number) for number, path in enumerate(files)])
    assert [each.path for each in found] == [first, second, many, many, many, few, few]
    assert [each.number for each in found] == [5, 4, 1, 2, 3, 0, 6]


def test_that_a_long_test_is_not_begun_last_because_its_file_has_few() -> None:
    many, alone, first = TESTS / "test_many.py", TESTS / "test_alone.py", TESTS / LONGEST[0]
    found = longest_first([*(OneTest(many, number) for number in range(3)), OneTest(alone, 3, long=True)])
    assert [each.path for each in found] == [alone, many, many, many]
    found = longest_first([OneTest(alone, 0, long=True), OneTest(first, 1)])
    assert [each.path for each in found] == [first, alone]


def test_that_every_file_that_is_named_is_there() -> None:
    assert [name for name in LONGEST if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_that_one_worker_runs_a_family_and_each_other_file_is_alone() -> None:
    assert family("tests/ui/slack/test_files.py::test_a") == family(
        "tests/ui/slack/test_digest.py::test_b[c]"
    )
    assert family("tests/ui/cli/test_run.py::test_a") == "tests/ui/cli/test_run.py"
    begun = [name for one in FAMILIES for name in one]
    assert [name for name in begun if not (TESTS / name).exists()] == []
    assert len(set(begun)) == len(begun)
