"""A snapshot is taken of this machine, compared with an earlier one, watched, opened by name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.telemetry import baseline, collectors, snapshot, watch
from service.telemetry.collectors import SnapshotSources
from service.telemetry.crash_time import crash_time
from service.telemetry.errors import InvalidSnapshotError, UnknownHostError
from service.telemetry.opening import open_telemetry
from service.telemetry.snapshot import Cgroup, Gpu, GpuProcess, Host, Nic, Snapshot, known, unavailable
from tests.ports import free_port
from tests.service.telemetry.makers import CRASH, died, kernel, served, xid
from tests.service.telemetry.makers import snapshot as made
from tests.tables import each_row

PAGE = 'DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-9"} 1024\nvllm:num_requests_waiting{engine="0"} 3\n'
SETTINGS = Settings(home=Path("/nowhere"))


def test_that_this_machine_gives_a_whole_snapshot() -> None:
    found = collectors.take_snapshot(SnapshotSources())
    assert found.host.memory_total_gib.known
    assert found.disks
    assert "no baseline" in (found.host.oom_kill_new.unavailable or "")
    assert snapshot.parse_snapshot(found.to_json(), "x") == found


def test_that_pages_of_metrics_are_read_and_one_that_is_down_says_so(tmp_path: Path) -> None:
    (tmp_path / "page").write_text(PAGE, encoding="utf-8")
    with served({"/metrics": str(tmp_path / "page")}) as port:
        good, lost, down = (
            f"http://127.0.0.1:{port}/metrics",
            f"http://127.0.0.1:{port}/no",
            f"http://127.0.0.1:{free_port()}/",
        )
        found, told = collectors.read_pages([down, lost, good, "nonsense"])
    assert (found.gpus[0].memory_used_gib.value, found.serving.waiting.value) == (1.0, 3.0)
    assert [text.split(": ")[0] for text in told] == [down, lost, good, "nonsense"]
    assert "answered 404" in told[1]


def machine(
    oom_kill: int | None, ecc: int | None, errors: int, count: int, pids: tuple[int, ...]
) -> dict[str, Any]:
    """Make the readings of which counters are compared."""
    return {
        "host": Host(
            oom_kill=unavailable("no") if oom_kill is None else known(oom_kill), gpu_count=known(count)
        ),
        "cgroup": Cgroup(path="/j", oom_kill=known(oom_kill or 0)),
        "gpus": (
            Gpu(
                id="a",
                ecc_uncorrected=unavailable("no") if ecc is None else known(ecc),
                processes=known(tuple(GpuProcess(pid=pid, used_gib=2.0) for pid in pids)),
            ),
        ),
        "nics": (Nic(name="e", errors=known(errors)),),
    }


def test_that_growth_is_counted_from_the_baseline() -> None:
    before, now = made(**machine(1, 0, 10, 8, (5,))), made(**machine(3, 2, 4, 7, (5, 6)))
    found = baseline.compare(now, before)
    card, host = found.gpus[0], found.host
    assert (host.oom_kill_new.value, host.gpu_lost_new.value, found.cgroup.oom_kill_new.value) == (2, 1, 2)
    assert (card.ecc_uncorrected_new.value, card.others_gib.value) == (2, 2.0)
    assert found.nics[0].errors_new.value == 4, "a counter that fell began anew"
    assert found.baseline_at == before.taken_at


@each_row(("before", "now", "reason"), [(None, 3, "the baseline has none: no"), (1, None, "no")])
def test_that_growth_needs_both_ends(before: int | None, now: int | None, reason: str) -> None:
    found = baseline.compare(made(**machine(now, 0, 0, 1, ())), made(**machine(before, 0, 0, 1, ())))
    assert found.host.oom_kill_new.unavailable == reason


def test_that_another_control_group_is_no_baseline() -> None:
    before = made(cgroup=Cgroup(path="/other", oom_kill=known(0)))
    assert baseline.compare(
        made(cgroup=Cgroup(path="/j", oom_kill=known(1))), before
    ).cgroup.oom_kill_new.unavailable


@each_row(("used", "held"), [((2.0, 3.0), 5.0), ((2.0, None), None), ((), 0.0)])
def test_that_after_the_job_all_who_hold_memory_are_others(
    used: tuple[float | None, ...], held: float | None
) -> None:
    card = Gpu(
        id="a",
        processes=known(tuple(GpuProcess(pid=place, used_gib=size) for place, size in enumerate(used))),
    )
    assert baseline.carry_over(card).value == held


def test_that_watching_keeps_the_course_and_counts_from_the_first(tmp_path: Path) -> None:
    samples = watch.watch_machine(SnapshotSources(), 0.01)
    first, second, third = next(samples), next(samples), next(samples)
    assert (first.baseline_at, second.baseline_at, third.baseline_at) == (
        None,
        first.taken_at,
        first.taken_at,
    )
    assert {row.name: len(row.points) for row in third.history}["host.memory_available_gib"] == 3
    watch.write_snapshot(third, tmp_path / "deep" / "s.json")
    assert snapshot.load_snapshot(tmp_path / "deep" / "s.json") == third
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["s.json"]


def test_that_a_long_course_gets_coarser_and_keeps_its_ends() -> None:
    points = tuple((float(place), 0.0) for place in range(2 * watch.KEPT + 1))
    thin = watch.thin_points(points)
    assert len(thin) == watch.KEPT + 1
    assert (thin[0], thin[-1]) == (points[0], points[-1])


def test_that_what_an_earlier_sample_heard_is_not_lost() -> None:
    earlier = made(gpus=(Gpu(id="a", xids=known((31,))),), kernel=kernel(xid(79)))
    found = collectors.with_earlier_xids(made(gpus=(Gpu(id="a", xids=known((79, 31))), Gpu(id="b"))), earlier)
    assert [card.xids.value for card in found.gpus] == [(31, 79), None]
    assert [item.code for item in found.kernel.events.value or ()] == [79]


def test_that_telemetry_is_opened_by_name(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(made().to_json(), encoding="utf-8")
    assert open_telemetry(str(path), SETTINGS) == made()
    assert isinstance(open_telemetry("live", SETTINGS), Snapshot)
    with pytest.raises(InvalidSnapshotError, match="cannot be read"):
        open_telemetry(str(tmp_path / "none"), SETTINGS)
    with pytest.raises(UnknownHostError, match="WHYCRASH_PROMETHEUS_HOSTS"):
        open_telemetry("prometheus://prom:9090?instance=a", SETTINGS)


def test_that_a_server_is_asked_about_the_time_of_the_crash() -> None:
    port = free_port()
    take = open_telemetry(
        f"prometheus://127.0.0.1:{port}?instance=a",
        Settings(home=Path("/n"), prometheus_hosts=f"127.0.0.1:{port}"),
    )
    assert callable(take)
    found = take(died())
    assert found.taken_at == CRASH + timedelta(seconds=60)


@each_row(
    ("text", "offset", "before_s"),
    [
        ("2026-03-02 10:00:00Z", 3600.0, 0),
        ("2026-03-02 18:00:00", 28800.0, 0),
        ("0302 10:00:00.123456", 0.0, -0.123456),
        ("10:00:00", 0.0, None),
        ("", 0.0, None),
    ],
)
def test_that_a_clock_without_a_zone_is_the_machines(
    text: str, offset: float, before_s: float | None
) -> None:
    when = crash_time(died(time=text), 2026, offset)
    assert when == (None if before_s is None else pytest.approx(CRASH.timestamp() - before_s))


def test_that_a_pages_password_is_not_kept() -> None:
    _, told = collectors.read_pages((f"http://alice:hunter22@127.0.0.1:{free_port()}/metrics",))
    assert "hunter22" not in told[0]
    assert "could not be read" in told[0]
