"""An edit follows from the message and the very statement; what is not certain is not written."""

from __future__ import annotations

import ast
from pathlib import Path

from ingest.logs.stacks.stack import Frame
from service.composition.diagnosis_view import as_written, diagnosis_view
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.code_edits.failing_code import JobFile, failing_code
from service.remediation.code_edits.matching import filled, matches
from service.remediation.code_edits.source_text import printed_source
from tests.service.composition.test_message_forms import SITE, raised
from tests.service.patching.applying import applied
from tests.tables import each_row
from tests.warm import explained

TRAIN = (
    "import torch\n\n\ndef main(model, out):\n    # Ünïcode before it\n"
    "    model.save(out)\n    print(np.zeros(3))\n"
)


@each_row(
    ("pattern", "code", "found"),
    [
        ("$x.numpy()", "a = b.c.numpy()", ["b.c.numpy()"]),
        ("$x.numpy()", "a = b.numpy(force=True)", []),
        ("$x.view(...)", "a = b.view(1, *sizes)", ["b.view(1, *sizes)"]),
        ("$f(..., strict=$v)", "m.load(s, strict=True, x=1)", ["m.load(s, strict=True, x=1)"]),
        ("$f($x, $x)", "f(a, a) + f(a, b)", ["f(a, a)"]),
        ("@Linear(400, ...)", "nn.Linear(16 * 5 * 5, 10)", ["nn.Linear(16 * 5 * 5, 10)"]),
        ("@Linear(400, ...)", "Linear(400)", ["Linear(400)"]),
        ("f'{$x:d}'", "print(f'{a}: {b:d}')", ["f'{b:d}'"]),
        ("for $i in $n: ...", "for epoch in epochs:", ["for epoch in epochs:\n    pass"]),
        ("$w -= $e", "w -= lr * g", ["w -= lr * g"]),
    ],
)
def test_a_pattern_finds_what_it_stands_for(pattern: str, code: str, found: list[str]) -> None:
    source = printed_source(code)
    assert source is not None
    nodes = [match.node for match in matches(pattern, ast.walk(source.tree))]
    told = [ast.JoinedStr([node]) if isinstance(node, ast.FormattedValue) else node for node in nodes]
    assert [ast.unparse(node) for node in told] == found


@each_row("value", ["a b", "x; import os", "f()", "a.b()", "__import__('os')", "1 + 1", "a\nb", ""])
def test_that_a_message_puts_nothing_but_names_and_numbers_into_code(value: str) -> None:
    assert filled("$x.{name}", {"name": value}) is None


def test_that_text_of_a_message_stands_in_quotes() -> None:
    told = filled("$x[{name!r}]", {"name": "a'] + f(\"b"})
    assert told is not None
    assert isinstance(ast.parse(told.replace("$x", "x"), mode="eval").body, ast.Subscript)


@each_row(
    ("line", "name", "text", "at"),
    [
        (3, "train.py", "a\nb\nrun(x)\n", 3),
        # The file was edited since: the very row stands a little off.
        (9, "src/train.py", "a\nb\nrun(x)\n", 3),
        (3, "other.py", "a\nb\nrun(x)\n", None),
        (3, "lib/train.py", "a\nb\nrun(x)\n", None),
        # Which of two rows it was cannot be told.
        (9, "train.py", "a\nrun(x)\nrun(x)\n", None),
        (3, "train.py", "a\nb\nrun(y)\n", None),
    ],
)
def test_the_statement_is_taken_from_the_file_that_has_the_printed_row(
    line: int, name: str, text: str, at: int | None
) -> None:
    frames = [Frame("/home/someone/src/train.py", line, "main", "run(x)")]
    code = next(failing_code(frames, [JobFile(name, text)]))
    assert (code.file is not None, code.statement.lineno) == (at is not None, at or 1)


def test_a_statement_whose_texts_and_numbers_alone_are_others_is_the_same_call() -> None:
    """A run's name or a number is often edited before the next start."""
    frames = [Frame("/job/train.py", 2, "main", 'tracker.start("first", settings)')]
    code = next(failing_code(frames, [JobFile("train.py", 'a\nb\ntracker.start("second", settings)\n')]))
    assert (code.file is not None, code.statement.lineno) == (True, 3)


CHAINED = (
    "Traceback (most recent call last):\n"
    '  File "/env/lib/python3.10/site-packages/datasets/builder.py", line 1831, in _write\n'
    "    writer.write_table(table)\n"
    "OSError: [Errno 28] No space left on device\n"
    "\nThe above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 3, in <module>\n'
    "    rows = load_dataset(name, cache_dir=CACHE)\n"
    '  File "/env/lib/python3.10/site-packages/datasets/load.py", line 2084, in load_dataset\n'
    "    builder.download_and_prepare()\n"
    "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset\n"
)


def test_the_own_statement_of_a_chained_exception_is_edited(triage: Triage) -> None:
    """A package raises its own first, and again where the job's code called it."""
    file = ConfigFile(
        "train.py", "import os\nCACHE = '/dev/shm/cache'\nrows = load_dataset(name, cache_dir=CACHE)\n"
    )
    answer = explained(triage, CHAINED, file)
    assert "+CACHE = os.path.expanduser(" in (answer.suggestion or "")


def test_where_the_file_is_at_hand_the_edit_is_a_diff_that_applies(triage: Triage, tmp_path: Path) -> None:
    log = raised("NameError: name 'np' is not defined", "/job/train.py:7:main:print(np.zeros(3))")
    answer = explained(triage, log, ConfigFile("train.py", TRAIN))
    first = answer.changes[0]
    assert (first.kind, first.key, first.status) == ("code", "train.py:7", "unverified")
    shown = as_written(diagnosis_view(answer).changes[0])
    assert shown == "train.py:7: add at the top of the file: import numpy as np"
    assert answer.patch is None
    after = applied(tmp_path, TRAIN, answer.suggestion or "", "train.py")
    assert after == TRAIN.replace("import torch\n", "import torch\nimport numpy as np\n")


@each_row(
    "log",
    [
        # The name is a package's own.
        raised("NameError: name 'np' is not defined", f"{SITE}/some/loader.py:9:read:y = np.zeros(3)"),
        # What failed is not what the statement says.
        raised("AttributeError: 'DataParallel' object has no attribute 'step'", "/job/a.py:9:fit:run(model)"),
    ],
)
def test_that_no_edit_is_offered_of_what_did_not_fail(log: str, triage: Triage) -> None:
    changes = explained(triage, log, language="en").changes
    assert [item.to for item in changes if item.kind == "code" and "->" in str(item.to)] == []


@each_row(
    ("code", "told"),
    [
        # The very edit stands there already.
        ("print('a')\nfor i in range(n):\n    pass\n", ("nothing to do", "")),
        ("print('a')\nfor i in tqdm(n):\n    pass\n", ("there, row 2: `for i in tqdm(n):`", "once more")),
        ("print('a')\nprint('b')\n", ("has no such row any more", "once more")),
    ],
    ids=["mended", "another-row", "gone"],
)
def test_a_file_that_no_longer_has_the_failing_row_is_said_to_have_changed(
    code: str, told: tuple[str, str], triage: Triage
) -> None:
    log = raised("TypeError: 'int' object is not iterable", "/job/train.py:2:main:for i in n:")
    first = explained(triage, log, ConfigFile("train.py", code)).changes[0]
    assert told[0] in str(first.to)
    assert told[1] in first.why
