"""Programs that are run and fail: the option that leads to the failing statement comes first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from corpus.keys import canonical
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

PROGRAMS: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "programs.yaml").read_text())


def failed_output(program: dict[str, Any], folder: Path) -> str:
    """Run a program; give the command with what it prints."""
    for name, text in program["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # A worker pool that another test began tells its processes not to import what lies beside a script.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment |= {"PYTHONPATH": str(folder / "site-packages"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *program["run"].split()]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode, program["id"]
    return f"+ python {program['run']}\n{done.stdout}{done.stderr}"


@each_row("program", PROGRAMS, ids=lambda program: program["id"])
def test_that_the_option_behind_the_failing_statement_is_offered(
    program: dict[str, Any], triage: Triage, tmp_path: Path
) -> None:
    """What the failing statement has its value from is the first setting; nothing is where none is."""
    folder = tmp_path / program["id"]
    folder.mkdir()
    log = failed_output(program, folder)
    own = {name: text for name, text in program["files"].items() if not name.startswith("site-packages/")}
    files = [ConfigFile(name, text) for name, text in own.items()]
    answer = explained(triage, log, *files)
    keys = [canonical(change.key) for change in answer.changes if change.framework in ("python", "env")]
    wanted = [canonical(program["key"])] if program["key"] else []
    assert keys[:1] == wanted, (answer.cause, keys, log)
    if "to" in program:
        assert (answer.changes[0].to, answer.changes[0].status) == (program["to"], "verified")
    if "cause" in program:
        assert answer.cause == program["cause"]
    if "also" in program:
        assert canonical(program["also"]) in keys
