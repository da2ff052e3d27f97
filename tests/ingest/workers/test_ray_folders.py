"""Ray's sockets fit into their folder, wherever files for the moment go."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path

import pytest

from ingest.workers import ray_folders

NAMES = "session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store"


def test_that_sockets_fit_below_a_folder_whatever_folder_is_set_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel itself says whether a path is too long."""
    for folder in (Path("/tmp"), tmp_path / ("a" * 9), tmp_path / ("显存" * 30)):
        folder.mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        path = Path(ray_folders.new_folder("wc-ray-4194304-")) / NAMES
        path.parent.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(str(path))
        _delete(path)


def test_that_the_folder_that_is_set_is_used_where_it_is_short_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for folder, expected in {
        "/tmp/short": "/tmp/short",
        "/tmp/" + "l" * 60: "/tmp",
        "/tmp/" + "存" * 6: "/tmp",
    }.items():
        monkeypatch.setattr(tempfile, "tempdir", folder)
        assert ray_folders.place() == expected


def _delete(path: Path) -> None:
    path.unlink()
    for folder in list(path.parents)[:3]:
        folder.rmdir()
