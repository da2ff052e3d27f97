"""The README says what the program does: its blocks are run, its generated parts are compared."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.tables import each_row
from tests.warm import triage, warm
from ui import docs
from ui.cli.main import app

__all__ = ["triage", "warm"]

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- test: (?P<name>\w+) -->\n```console\n(?P<body>.*?)```", re.DOTALL)


def _commands() -> list[str]:
    rows = [row for block in _BLOCK.finditer(README) for row in block["body"].splitlines()]
    return [row.removeprefix("$ whycrash ") for row in rows if row.startswith("$ whycrash ")]


@each_row("command", _commands())
def test_commands_of_the_readme_run(
    command: str, warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of the README's tested blocks does what it says, without an error."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("WHYCRASH_HOME", str(shutil.copytree(warm, tmp_path / "home")))
    monkeypatch.setenv("WHYCRASH_EMBEDDING_MODEL", "hash")
    result = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip()


def test_the_readme_has_commands_to_run() -> None:
    """The blocks are found, so the test above cannot pass by finding none."""
    assert len(_commands()) >= 7


def test_generated_parts_are_up_to_date() -> None:
    """Help texts and the table of settings are what the program writes."""
    assert docs.written(README) == README


def test_paths_that_the_readme_names_exist() -> None:
    """A file or folder named in the README is there."""
    named = set(re.findall(r"`((?:corpus|ingest|service|eval|ui|tests)/[\w./-]*)`", README))
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
