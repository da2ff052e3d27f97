"""Numbers over steps are read from logs of any size, and tell where one of them went wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from corpus import curves
from ingest.logs import curves as logged
from ingest.logs.curves import Point, curve_of, thinned
from ingest.logs.inputs import jobs
from ingest.logs.reader import Reader
from ingest.logs.report import CrashReport
from tests.tables import each_row


@each_row(
    ("text", "found"),
    [
        ("step 5 loss 3.923 tok/s 427031", {"loss": 3.923}),
        ("[05-30 00:00:03] step=1 loss=3.9969 gnorm=0.65", {"loss": 3.9969, "gradient": 0.65}),
        (
            "{'loss': 0.0178, 'grad_norm': 0.3068574368953705}",
            {"loss": 0.0178, "gradient": 0.3068574368953705},
        ),
        ("{'loss': 0.81, 'grad_norm': 1.2, 'epoch': 0.3}", {"loss": 0.81, "gradient": 1.2}),
        (
            "step:1 - actor/pg_loss:0.02 - actor/entropy:0.5 - critic/score/mean:0.21 - timing_s/step:33.1",
            {"entropy": 0.5, "reward": 0.21, "step-time": 33.1},
        ),
        (
            "elapsed time per iteration (ms): 1234.5 | lm loss: 1.03E+01 | grad norm: 2.345 |",
            {"step-time": 1234.5, "loss": 10.3, "gradient": 2.345},
        ),
        ("lr: 0.0001  loss: 2.31 (2.40)  max mem: 876", {"loss": 2.31, "gpu-memory": 876.0}),
        ("step 3 loss 50%, eval_loss: 3, lossless: 4", {}),
    ],
)
def test_numbers_are_found_by_how_frameworks_spell_them(text: str, found: dict[str, float]) -> None:
    """Parts of other words, and shares in percent, are none; what is learned of a line says the same."""
    spellings = curves.Spellings()
    learned = {item.kind: item.value for item in spellings.learn(text)}
    again = {item.kind: item.value for item in spellings.values(text)}
    assert learned == again == found


def _points(values: Sequence[float]) -> list[Point]:
    return [Point(float(step), value, step) for step, value in enumerate(values, 1)]


_NOISE = [1.0 + 0.1 * ((step * 7) % 5) for step in range(60)]
_FALL = [2.0 / step for step in range(1, 61)]


@each_row(
    ("kind", "values", "finding", "since"),
    [
        ("loss", [*_FALL[:40], *[math.nan] * 20], "broken", 41),
        ("loss", [*_FALL[:30], math.nan, *_FALL[31:]], None, None),
        ("loss", [*_FALL[:40], *[0.0] * 20], "zero", 41),
        ("loss", _FALL, None, None),
        ("reward", [*_NOISE[:50], *[0.0] * 10], "zero", 51),
        ("reward", [0.0] * 60, None, None),
        ("reward", [*_NOISE[:58], 0.0, 0.0], None, None),
        ("entropy", [*_NOISE[:40], *[0.002] * 20], "zero", 41),
        ("gradient", [*_NOISE[:40], *[90.0] * 20], "jump", 41),
        ("gradient", [*_NOISE[:40], 90.0, *_NOISE[41:]], None, None),
        ("gpu-memory", [10.0 + step for step in range(60)], "rise", 1),
        ("gpu-memory", [10.0, *[20.0] * 59], None, None),
        ("step-time", [*_NOISE[:40], *[3.5] * 20], "slow", 41),
        ("step-time", _NOISE, None, None),
        ("length", [*_NOISE[:40], *[90.0] * 20], None, None),
    ],
)
def test_where_a_number_went_wrong(
    kind: str, values: list[float], finding: str | None, since: int | None
) -> None:
    """By what is looked for in its kind; what comes back, or was so all along, is no fault."""
    found = curve_of(curves.load().kind(kind), _points(values))
    assert found.finding == finding
    assert (found.since.step if found.since else None) == since


def test_growth_tells_when_it_meets_the_limit() -> None:
    """From 100 by 2 a step, 400 is met at step 151; a limit that is passed or not known tells nothing."""
    kind = curves.load().kind("host-memory")
    points = _points([100.0 + 2 * step for step in range(60)])
    full = curve_of(kind, points, limit=400.0).full_at
    assert full == pytest.approx(151.0)
    assert curve_of(kind, points).full_at is None
    assert curve_of(kind, points, limit=50.0).full_at is None


def test_a_plot_keeps_both_ends() -> None:
    points = _points([float(step) for step in range(1000)])
    few = list(thinned(points, 50))
    assert len(few) == 50
    assert (few[0], few[-1]) == (points[0], points[-1])


def _read(reader: Reader, path: Path, row: Callable[[int], str], count: int) -> CrashReport:
    path.write_text("\n".join(map(row, range(1, count + 1))) + "\n")
    return reader.read(jobs.open_jobs([path]))


@each_row(("count", "slack"), [(60, 1), (600, 2), (60_000, 400)])
def test_a_log_is_sampled_over_its_whole_course(
    reader: Reader, count: int, slack: int, tmp_path: Path
) -> None:
    """Rows between the ends of a block are read too, not all of them in a long log."""
    begins = count // 3

    def row(step: int) -> str:
        reward = 0.0 if step > begins else 0.4 + step % 3
        return f"step {step}/{count} loss {1.5 + 1 / step:.4f} reward {reward:.3f}"

    report = _read(reader, tmp_path / "train.log", row, count)
    reward = report.curves[0]
    assert (reward.name, reward.finding) == ("reward", "zero")
    assert reward.since is not None
    assert begins < reward.since.step <= begins + slack
    assert reward.since.line == reward.since.step
    assert len(reward.points) <= 2 * logged.COURSE + 200


def test_memory_that_is_printed_between_steps_is_told_at_steps(reader: Reader, tmp_path: Path) -> None:
    """The slope is by step, and leads to the step at which the machine is full."""

    def row(line: int) -> str:
        step = (line + 1) // 2
        return (
            f"step {step}/9000 loss {2 / step:.4f}"
            if line % 2
            else f"[mem] host used {100 + step * 0.5:.1f}/377.0 GiB"
        )

    report = _read(reader, tmp_path / "train.log", row, 240)
    memory = report.curves[0]
    assert (memory.name, memory.finding) == ("host-memory", "rise")
    assert memory.full_at == pytest.approx(554, abs=6)


def test_numbers_beside_the_log_are_read_where_the_log_has_none(reader: Reader, tmp_path: Path) -> None:
    """A trainer's state holds the loss that a progress bar does not print."""
    rows = [f'{{"epoch": 0.1, "loss": {0.0 if step > 20 else 2.5}, "step": {step}}}' for step in range(1, 31)]
    (tmp_path / "trainer_state.json").write_text(f'{{"global_step": 30, "log_history": [{", ".join(rows)}]}}')
    (tmp_path / "train.log").write_text("begins\nends\n")
    found = reader.read(jobs.open_jobs([tmp_path])).curves
    assert [(curve.name, curve.finding, curve.since) for curve in found] == [
        ("loss", "zero", Point(21.0, 0.0))
    ]


@each_row(
    ("slower", "ranks", "finding"), [(2.0, 4, "behind"), (2.0, 2, None), (1.2, 4, None), (1.0, 4, None)]
)
def test_one_rank_that_is_slower_than_all_others(
    slower: float, ranks: int, finding: str | None, reader: Reader, tmp_path: Path
) -> None:
    """All along, beside at least two others; half as long again is slow, what the clock wavers is not."""
    rows = [
        f"[rank{rank}]: step {step}/200 loss: {2.0 / step:.4f} "
        f"step_time: {(slower if rank == 1 else 1.0) * (1 + 0.01 * (step % 5)):.3f}"
        for step in range(1, 60)
        for rank in range(ranks)
    ]
    report = _read(reader, tmp_path / "log.txt", lambda row: rows[row - 1], len(rows))
    found = next(curve for curve in report.curves if curve.name == "step-time")
    assert found.finding == finding
    assert found.source == ("rank=1" if finding else "")
    if finding:
        assert found.before == pytest.approx(1.02, abs=0.02)
