"""A job's output as it passes through us."""

from __future__ import annotations

import pytest

from service.monitoring.job import run_job


def test_that_a_job_that_closes_one_stream_is_heard_on_the_other_to_its_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A silence and a closed stream are the end only once the job itself is over."""
    heard: list[tuple[int, bytes]] = []
    ended = run_job(
        ["sh", "-c", "echo a; sleep 0.5; exec >&-; sleep 0.5; echo b >&2; exit 3"],
        lambda stream, data: heard.append((stream, data)),
    )
    assert (ended.code, heard) == (3, [(1, b"a\n"), (2, b"b\n")])
    assert capfd.readouterr() == ("a\n", "b\n")
