"""Programs that fail for real run to their end with the edit that is offered."""

from __future__ import annotations

import importlib.util
import linecache
import traceback
from pathlib import Path

import pytest
import yaml

from ingest.logs.inputs import sources
from service.pipeline.triage import Triage
from service.remediation.code_edits.edits import code_edit
from service.remediation.code_edits.failing_code import JobFile
from tests.service.patching.applying import goes_back_and_forth
from tests.tables import each_row

PROGRAMS = yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text(encoding="utf-8"))
HAS_TORCH = importlib.util.find_spec("torch") is not None


def failing_log(code: str, path: Path) -> str:
    """Run a program in this process; give what Python prints of its failure, the empty string for none."""
    path.write_text(code, encoding="utf-8")
    linecache.checkcache(str(path))
    try:
        exec(compile(code, str(path), "exec"), {"__name__": "__main__"})  # noqa: S102 - our own small programs
    except Exception as error:  # noqa: BLE001 - each fails by another one
        first = error.__traceback__.tb_next if error.__traceback__ else None
        return "".join(traceback.format_exception(type(error), error, first))
    return ""


@pytest.mark.filterwarnings("ignore")
@each_row("program", PROGRAMS, ids=lambda program: program["name"], quick=15)
def test_a_program_runs_once_its_statement_is_edited(
    program: dict[str, str], triage: Triage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program.get("torch") and not HAS_TORCH:
        return
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    log = failing_log(program["code"], path)
    assert log, "it does not fail"
    report = triage.reader.read(sources.from_text(log))
    edit = code_edit(report, [JobFile("train.py", program["code"])])
    assert edit is not None, log.strip().splitlines()[-1]
    assert edit.file is not None
    assert failing_log(edit.text, path) == ""
    folder = tmp_path / "git"
    folder.mkdir()
    assert goes_back_and_forth(folder, program["code"], edit.text, "train.py")
    # Without the file the same is told of the row that the traceback prints.
    if edit.kind == "replace" and not edit.row.then and not edit.row.lacks and not edit.row.computes:
        told = code_edit(report, [])
        assert told is not None, "nothing is told of the printed row"
        assert told.after == edit.after
