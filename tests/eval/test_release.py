"""What the published wheel is made of."""

from __future__ import annotations

from pathlib import Path

from eval import release


def test_that_the_labelled_logs_stay_in_the_checkout(tmp_path: Path) -> None:
    release.copy_sources(tmp_path)
    taken = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert {"corpus/atlas.bin", "eval/floors.yaml", "eval/incidents.py", "pyproject.toml"} <= taken
    assert not [path for path in taken if path.startswith(("eval/incidents/", "eval/fresh/rounds/"))]
