"""Tests and CI count on nothing that lies on the machine: not on a user's home, nor on what an earlier run
left.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from platformdirs import user_data_path

from ingest.workers import ray_folders
from tests.tables import each_row

ROOT = Path(__file__).parent.parent
# Where programs that tests start keep things.
FOLDERS = (
    "HOME",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "HF_HOME",
    "UV_CACHE_DIR",
    "PIP_CACHE_DIR",
    "RAY_TMPDIR",
)
LOOK = (
    'for name in "$@"; do echo "$name=${!name}=$(ls -A "${!name}")"; done; echo '
    '"left=${WHYCRASH_HOME-}${RAY_ADDRESS-}${HF_HUB_CACHE-}="; touch "$HOME/used"'
)


def surroundings(tmp_path: Path) -> dict[str, dict[str, str]]:
    """Run CI's script with a used machine around it; gives each folder's path, and what lies in it."""
    used = {
        "HOME": str(tmp_path),
        "WHYCRASH_HOME": "/used",
        "RAY_ADDRESS": "1.2.3.4:1",
        "HF_HUB_CACHE": "/used",
    }
    command = [str(ROOT / ".ci" / "run"), "bash", "-c", LOOK, "look", *FOLDERS]
    ended = subprocess.run(command, env={**os.environ, **used}, capture_output=True, text=True, check=True)
    rows = [row.split("=", 2) for row in ended.stdout.splitlines()]
    return {name: {"path": path, "holds": holds} for name, path, holds in rows}


def test_that_ci_runs_with_new_and_empty_folders_which_it_deletes(tmp_path: Path) -> None:
    found = surroundings(tmp_path)
    assert [name for name in FOLDERS if found[name]["holds"]] == []
    assert [name for name in FOLDERS if Path(found[name]["path"]).exists()] == []
    assert list(tmp_path.iterdir()) == []
    assert found["left"] == {"path": "", "holds": ""}


@each_row("failing", ["", "install", "lint", "types", "gate", "sbom", "test-all"])
def test_that_ci_passes_only_where_all_that_it_runs_does(failing: str, tmp_path: Path) -> None:
    """What runs beside the tests fails it as they do, and is told behind them."""
    for name, body in {"make": f'echo "$1"; [ "$1" != "{failing}" ]', "dpkg": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    ended = subprocess.run(
        [str(ROOT / ".ci" / "run")],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (ended.returncode == 0) == (not failing)
    told = ["install", "test-all", "lint", "types", "gate", "sbom"]
    # What fails ends what would come behind it, but the tests, beside which the others run.
    ends = told.index(failing) + 1 if failing not in ("", "test-all") else len(told)
    assert ended.stdout.split() == told[:ends]


def test_that_two_runs_of_ci_share_no_folder(tmp_path: Path) -> None:
    first, second = surroundings(tmp_path), surroundings(tmp_path)
    assert [name for name in FOLDERS if first[name]["path"] == second[name]["path"]] == []


def test_that_ci_leaves_room_for_the_sockets_of_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = surroundings(tmp_path)["TMPDIR"]["path"]
    monkeypatch.setattr(tempfile, "tempdir", given)
    assert ray_folders.place() == given


def test_that_the_tests_have_a_home_of_their_own() -> None:
    home = Path.home()
    assert home.name.startswith("wh-")
    assert user_data_path("whycrash", appauthor=False).is_relative_to(home)
    assert "WHYCRASH_HOME" not in os.environ


def test_that_a_cluster_of_somebody_else_is_not_seen() -> None:
    assert Path(os.environ["RAY_TMPDIR"]) == Path.home()
    assert "RAY_ADDRESS" not in os.environ
