"""Progress where no bar can be drawn: lines, few of them."""

import pytest

from ui.cli import console
from ui.cli.console import PlainSteps


def told(capsys: pytest.CaptureFixture[str], every: float, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the lines of a stage of 1,000 steps when one is due after so many seconds, each step taking
    one.
    """
    clock = iter(range(10_000))
    monkeypatch.setattr(console, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(console, "TOLD_EVERY", every)
    steps = PlainSteps()
    for done in range(0, 1001, 10):
        steps("vectors", done, 1000)
    steps("vectors", 1000, 1000)
    return capsys.readouterr().err.splitlines()


def test_that_a_stage_that_is_over_soon_is_not_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(capsys, 1000, monkeypatch) == []


def test_that_a_long_stage_is_told_now_and_then_and_its_end_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(capsys, 30, monkeypatch) == [
        "embedding: 300 of 1,000",
        "embedding: 600 of 1,000",
        "embedding: 900 of 1,000",
        "embedding: 1,000 of 1,000",
    ]
