"""Jobs that are notebooks: one file is the output, the program, and what the change is written into."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.logs.inputs import jobs
from service.llm.claims import Proposal
from service.llm.code_claims import code_change
from service.llm.directives import own_advice
from service.llm.prompt import for_answer
from service.llm.prompt_context import build_prompt_context
from service.llm.triage_context import TriageContext
from service.patching.application import apply_edits, take_back
from service.patching.diagnosis_patch import suggested_edits
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage, read_config
from tests.ingest.logs.inputs.test_notebooks import LOSS, cell, page
from tests.tables import each_row

ARGUMENTS = (
    "from transformers import Trainer, TrainingArguments\n"
    "!pip install peft==0.5.0\n"
    "args = TrainingArguments(\n"
    '    output_dir="out",\n'
    "    per_device_train_batch_size=16,\n"
    ")\n"
    "trainer = Trainer(model=model, args=args)"
)
MEMORY = "GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB is free"
OOM = ("OutOfMemoryError", f"CUDA out of memory. Tried to allocate 2.00 GiB. {MEMORY}")
FULL = page(cell(1, ARGUMENTS), cell(2, "trainer.train()", LOSS, OOM))
ALIAS = page(
    cell(1, "import numpy as np"),
    cell(5, "np.float(3)", "", ("AttributeError", "module 'numpy' has no attribute 'float'.")),
)

Answered = Callable[..., TriageContext]


@pytest.fixture
def answered(triage: Triage, tmp_path: Path) -> Answered:
    """Give what answers a notebook, as its file or beside other files."""

    def answer(text: str, *files: ConfigFile) -> TriageContext:
        (tmp_path / "run.ipynb").write_text(text)
        return triage.diagnose(triage.read(jobs.open_job(tmp_path / "run.ipynb"), "en", files))

    return answer


def test_settings_of_its_cells_are_the_jobs(answered: Answered) -> None:
    """Before those of a script that did not run; the change is a row of the file's JSON."""
    script = ConfigFile(
        "train.py",
        "from transformers import TrainingArguments\n"
        "args = TrainingArguments(per_device_train_batch_size=4)\n"
        "if __name__ == '__main__':\n    main()\n",
    )
    context = answered(FULL, script)
    own = {(item.key, item.value, item.file) for item in context.assessment.settings}
    assert ("per_device_train_batch_size", "16", "run.ipynb") in own
    assert ("peft", "==0.5.0", "run.ipynb") in own
    assert not any(file == "train.py" for _, _, file in own)
    first = context.first
    assert (first.changes[0].key, first.changes[0].from_, first.changes[0].to) == (
        "per_device_train_batch_size",
        "16",
        8,
    )
    assert first.suggestion is not None
    assert '-    "    per_device_train_batch_size=16,\\n",\n' in first.suggestion
    assert '+    "    per_device_train_batch_size=8,\\n",\n' in first.suggestion


def test_a_change_of_code_is_named_by_cell_and_row(answered: Answered) -> None:
    """As the traceback names it, whatever stands above the cell in the file."""
    first = answered(ALIAS).first
    assert (first.changes[0].kind, first.changes[0].key) == ("code", "In [5]:1")
    assert first.suggestion is not None
    assert '+    "float(3)"\n' in first.suggestion
    assert "`In [5]:1`" in (first.explanation or "")


def test_an_edit_is_written_and_taken_back_to_the_byte(triage: Triage, tmp_path: Path) -> None:
    """The file is JSON after it, with all that the cells had printed."""
    path = tmp_path / "run.ipynb"
    path.write_text(FULL)
    file = read_config(path)
    context = triage.diagnose(triage.read(jobs.open_job(path), "en", [file]))
    report, library = context.assessment.report, triage.library
    edits = suggested_edits(context.first.changes, [file], report, library)
    apply_edits(edits, tmp_path / "home")
    now, was = json.loads(path.read_text()), json.loads(FULL)
    assert "".join(now["cells"][0]["source"]).count("per_device_train_batch_size=8,\n") == 1
    assert now["cells"][1] == was["cells"][1]
    take_back(tmp_path / "home")
    assert path.read_text() == FULL


def test_code_that_cannot_be_written_back_is_not_suggested(answered: Answered) -> None:
    """The edit would be of a cell for another language, or of code that was kept without its file."""
    foreign = answered(FULL.replace("from transformers import", "%%magic\\nfrom transformers import"))
    assert foreign.first.suggestion is None
    kept = ConfigFile.of("run.ipynb", "# In[5]: cell 2\nnp.float(3)\n")
    assert not kept.exact
    assert answered(ALIAS, kept).first.suggestion is None


def test_a_model_is_shown_the_cell_that_failed(answered: Answered) -> None:
    """By cell and row, around the row that failed."""
    source = "x = load()\nfit(x)"
    failed = cell(7, source, "", ("ValueError", "odd x"))
    traceback = failed["outputs"][0]["traceback"]  # type: ignore[index]
    traceback[1] = "Cell In[7], line 2\n      1 x = load()\n----> 2 fit(x)\n"
    context = build_prompt_context(answered(page(cell(3, "import os"), failed)))
    text = for_answer(context, 12_000).messages[1].text
    assert "In [7]:1: x = load()" in text
    assert "In [7]:2: fit(x)" in text


@each_row(
    ("key", "expected"),
    [
        ("In [5]:1", "In [5]:1"),
        ("Cell In[5], line 1", "In [5]:1"),
        ("cell 2:1", "cell 2:1"),
        ("run.ipynb:4", "In [5]:1"),
        ("In [9]:1", None),
    ],
)
@each_row("has_file", [True, False])
def test_a_models_change_of_a_cell_is_taken(
    key: str, expected: str | None, has_file: bool, answered: Answered, triage: Triage
) -> None:
    """It is written where the cell's row is; without the file, the traceback's row is what it may change."""
    context = answered(ALIAS)
    report = context.assessment.report
    if not has_file:
        root = report.root
        assert root is not None
        frames = tuple(replace(frame, file="In [5]", line=1, place="") for frame in root.frames)
        told = replace(root, frames=frames)
        events = tuple(told if event is root else event for event in report.events)
        report = replace(report, launches=(), root=told, events=events)
        expected = expected if "In" in key else None
    pick = Proposal(framework="code", kind="code", key=key, before="np.float(3)", to="float(3)")
    made = code_change(pick, "", report, own_advice(triage.library, ["user-code-error"], ()))
    if expected is None:
        assert isinstance(made, str)
        return
    assert not isinstance(made, str)
    assert made.key == expected
    edits = suggested_edits([made], context.files, report, triage.library) if has_file else ()
    assert [json.loads(edit.written)["cells"][1]["source"] for edit in edits] == [["float(3)"]] * has_file
