"""The files of a control group become readings, whatever of them is there."""

from __future__ import annotations

from pathlib import Path

from service.telemetry import cgroup
from tests.tables import each_row

GIB = 1 << 30


def group(
    root: Path, files: dict[str, str], member: str = "0::/job\n", folder: str = "job"
) -> tuple[Path, Path]:
    """Write a tree of control groups, version 2, and the file that says which one a process is in."""
    place = root / folder
    place.mkdir(parents=True, exist_ok=True)
    (root / "cgroup.controllers").write_text("memory pids\n", encoding="utf-8")
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
    (root / "self").write_text(member, encoding="utf-8")
    return root, root / "self"


FULL = {
    "memory.max": f"{8 * GIB}\n",
    "memory.current": f"{2 * GIB}\n",
    "memory.peak": f"{8 * GIB}\n",
    "memory.events": "low 0\nhigh 0\nmax 812\noom 2\noom_kill 1\noom_group_kill 0\n",
    "pids.max": "4096\n",
    "pids.current": "12\n",
    "pids.events": "max 3\n",
}


def test_that_a_whole_group_is_read(tmp_path: Path) -> None:
    found = cgroup.read_cgroup(*group(tmp_path, FULL))
    assert (
        found.path,
        found.memory_max_gib.value,
        found.memory_current_gib.value,
        found.memory_peak_gib.value,
    ) == ("/job", 8.0, 2.0, 8.0)
    assert (
        found.oom_kill.value,
        found.max_events.value,
        found.pids_max.value,
        found.pids_max_events.value,
    ) == (1, 812, 4096, 3)


@each_row(
    ("files", "field", "reason"),
    [
        ({"memory.max": "max\n"}, "memory_max_gib", "no such limit"),
        ({}, "memory_peak_gib", "memory.peak: No such file"),
        ({"memory.events": "low 0\n"}, "oom_kill", "has no oom_kill"),
        ({"memory.current": "what\n"}, "memory_current_gib", "has no number"),
    ],
)
def test_that_what_is_not_there_says_why(
    files: dict[str, str], field: str, reason: str, tmp_path: Path
) -> None:
    reading = getattr(cgroup.read_cgroup(*group(tmp_path, files)), field)
    assert reading.value is None
    assert reason in reading.unavailable


def test_that_in_a_container_the_root_is_the_group(tmp_path: Path) -> None:
    """The path is the host's, which the container cannot see."""
    found = cgroup.read_cgroup(*group(tmp_path, FULL, "0::/kubepods/pod1/c1\n", folder="."))
    assert found.oom_kill.value == 1


def test_that_a_path_does_not_lead_out_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("7", encoding="utf-8")
    found = cgroup.read_cgroup(*group(tmp_path / "tree", {}, "0::/../\n"))
    assert found.memory_max_gib.value is None


def test_that_version_one_is_read_by_its_own_names(tmp_path: Path) -> None:
    for name, text in {
        "memory/j/memory.limit_in_bytes": str(4 * GIB),
        "memory/j/memory.max_usage_in_bytes": str(3 * GIB),
        "memory/j/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        "pids/j/pids.max": "max",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "self").write_text("4:memory:/j\n3:pids:/j\n0::/\n", encoding="utf-8")
    found = cgroup.read_cgroup(tmp_path, tmp_path / "self")
    assert (
        found.memory_max_gib.value,
        found.memory_peak_gib.value,
        found.oom_kill.value,
        found.pids_max.value,
    ) == (4.0, 3.0, 2, None)


def test_that_a_machine_without_groups_says_so(tmp_path: Path) -> None:
    (tmp_path / "self").write_text("0::/\n", encoding="utf-8")
    assert "no control groups" in str(
        cgroup.read_cgroup(tmp_path / "none", tmp_path / "self").oom_kill.unavailable
    )
    assert "cannot be read" in str(cgroup.read_cgroup(tmp_path, tmp_path / "nobody").oom_kill.unavailable)


def test_that_this_machine_can_be_read() -> None:
    found = cgroup.read_cgroup()
    assert found.memory_current_gib.known or found.memory_current_gib.unavailable
