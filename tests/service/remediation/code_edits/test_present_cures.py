"""What the job's file at hand has already is told as such: the file was edited after the run."""

from __future__ import annotations

from ingest.configfiles.settings import Setting
from ingest.logs.stacks.stack import Frame
from service.composition.diagnosis_view import diagnosis_view
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.given_since import given_since, listed_already
from tests.service.composition.test_message_forms import SITE, raised
from tests.service.factories import failed, proposal, report
from tests.tables import each_row
from tests.warm import explained

SAVE = 'torch.save(net, f"models/{step}.pt")'
LOG = raised(
    "RuntimeError: Parent directory models does not exist.",
    f"/job/train.py:4:fit:{SAVE}",
    f"{SITE}/torch/serialization.py:288:__init__:super().__init__(writer)",
)


@each_row(
    ("before", "shift", "is_told"),
    [
        # The folder is made by now, in a row that was not there.
        ('    os.makedirs("models", exist_ok=True)\n', 1, True),
        # It was made when the run failed, of another folder, or in a function that is none of the failure's.
        ('    os.makedirs("models", exist_ok=True)\n', 0, False),
        ('    os.makedirs("logs", exist_ok=True)\n', 1, False),
        ('    pass\ndef other():\n    os.makedirs("models")\ndef fit():\n', 4, False),
    ],
    ids=["mended", "as-it-ran", "another-folder", "another-function"],
)
def test_that_an_edit_which_the_file_has_is_nothing_to_do(
    before: str, shift: int, *, is_told: bool, triage: Triage
) -> None:
    """Only where another row stands at the line that failed: else the file is as it ran, and did not help."""
    rows = ["import os, torch", "def fit():", *(["    a = 1"] if shift else []), before.rstrip("\n")]
    text = "\n".join([*rows, ""])
    answer = explained(triage, LOG, ConfigFile("train.py", f"{text}    {SAVE}\n"))
    first = answer.changes[0]
    assert first.kind == "code"
    assert ("nothing to do" in str(first.to)) is is_told
    assert (answer.suggestion is None) is is_told


def test_that_an_expression_which_the_function_has_by_now_is_nothing_to_do(triage: Triage) -> None:
    """The weights are moved in a row of their own, which was not there when the run failed."""
    call = "loss = F.cross_entropy(out, y, weight=alpha)"
    found = "got weight is on cpu, different from other tensors on cuda:0"
    method = "(when checking argument in method wrapper_CUDA_nll_loss_forward)"
    log = raised(
        f"RuntimeError: Expected all tensors to be on the same device, but {found} {method}",
        f"/job/train.py:3:forward:{call}",
        f"{SITE}/torch/nn/functional.py:3462:cross_entropy:return torch._C._nn.cross_entropy_loss(",
    )
    head = "from torch.nn import functional as F\ndef forward(out, y, alpha):\n"
    for text, is_told in (
        (f"{head}    alpha = alpha.to(out.device)\n    {call}\n", True),
        (f"{head}    {call}\n", False),
    ):
        answer = explained(triage, log, ConfigFile("train.py", text))
        assert ("nothing to do" in str(answer.changes[0].to)) is is_told
        assert (answer.suggestion is None) is is_told


ROOT = failed(
    text="ValueError: evaluation requires an eval_dataset.",
    frames=(Frame("/job/train.py", 9, "<module>", "trainer.train()"),),
)


@each_row(
    ("text", "key", "is_told"),
    [
        ("t = SFTTrainer(eval_dataset=rows)\ntrainer.train()\n", "Trainer.eval_dataset", True),
        ("t = SFTTrainer(eval_dataset=None)\ntrainer.train()\n", "Trainer.eval_dataset", False),
        # The message does not ask for it.
        ("t = SFTTrainer(processor=rows)\ntrainer.train()\n", "Trainer.processor", False),
        ("torch.cuda.set_device(rank)\ntrainer.train()\n", "torch.cuda.set_device", True),
        ("set_device(rank)\ntrainer.train()\n", "torch.cuda.set_device", False),
    ],
)
def test_that_what_the_code_gives_by_now_is_told_first(text: str, key: str, *, is_told: bool) -> None:
    """An argument that the message asks for, or a call that was proposed, which the edited code has."""
    told = report(ROOT, launches=(f"{text}\ntrain.py",))
    found = given_since([proposal(key, "the rows to evaluate on"), proposal("rows", 8)], told, "en")
    assert ("nothing to do" in str(found[0].to)) is is_told
    assert len(found) == 2


def test_that_a_file_as_it_ran_gives_nothing_since() -> None:
    text = "t = SFTTrainer(eval_dataset=rows)\n" + "\n" * 7 + "trainer.train()\n"
    told = report(ROOT, launches=(f"{text}\ntrain.py",))
    (found,) = given_since([proposal("Trainer.eval_dataset", "the rows to evaluate on")], told, "en")
    assert found.to == "the rows to evaluate on"


@each_row(
    ("listed", "to", "is_told"),
    [
        ("==0.43.2", ">=0.43.2", True),
        ("==0.42.0", ">=0.43.2", False),
        (">=0.40", ">=0.43.2", False),
        ("==0.1.97", "install", True),
        ("==0.1.97", "newer than what is installed", False),
    ],
)
def test_that_a_package_which_the_list_has_is_to_be_installed_from_it(
    listed: str, to: str, *, is_told: bool
) -> None:
    """The run's environment was not made from the list: a change of the list changes nothing there."""
    own = Setting("Some_Package", listed, 0, "package", file="requirements.txt")
    frozen = Setting("some-package", "==0.1.2+cu117", 0, "package", file="installed.txt")
    change = proposal("some-package", to, kind="package", framework="pip")
    (found,) = listed_already([change], [own, frozen], "en")
    assert ("`requirements.txt` lists" in found.why) is is_told


def test_that_of_several_lists_the_one_that_has_the_release_is_named() -> None:
    """What the run's environment was frozen to is another list than what it was to be made from."""
    own = [
        Setting("torch", value, 0, "package", file=file)
        for file, value in (("environment.yml", "==2.6.0"), ("frozen.txt", "==2.0.1"))
    ]
    change = proposal("torch", ">=2.3", kind="package", framework="pip")
    (found,) = listed_already([change], own, "en")
    assert ("`environment.yml` lists" in found.why, found.from_) == (True, None)


REFUSED = "IndexError: Dimension out of range (expected to be in range of [-1, 0], but got 1)"


@each_row(
    ("failed_row", "rows", "told"),
    [
        # The call is made otherwise, or no more: the job is to be started with the file as it is.
        (
            "loss = score(out, labels)",
            ["    x = 1", "    loss = score(out.unsqueeze(0), labels.unsqueeze(0))"],
            "row 4: `loss = score(out.unsqueeze(0), labels.unsqueeze(0))`; start the job again",
        ),
        ("tracker.finish()", ["    x = 1", "    save(x)"], "no longer calls `tracker.finish` there; start"),
        ("tracker.finish()", ["    x = 1", "    run.finish()"], "row 4: `run.finish()`; start the job"),
        ("loss = score(out, labels)", ["    loss = score(out, labels)"], ""),
    ],
    ids=["otherwise", "no-more", "by-another", "as-it-ran"],
)
def test_that_a_call_which_the_file_makes_otherwise_by_now_is_nothing_to_edit(
    failed_row: str, rows: list[str], told: str, triage: Triage
) -> None:
    """The advice for the row as it ran is told behind it, and nothing is to be looked at first."""
    log = raised(
        REFUSED,
        f"/job/train.py:3:fit:{failed_row}",
        f"{SITE}/torch/nn/functional.py:1316:log_softmax:ret = input.log_softmax(dim)",
    )
    text = "\n".join(["import torch", "def fit(out, labels):", *rows, ""])
    answer = explained(triage, log, ConfigFile("train.py", text))
    first = answer.changes[0] if answer.changes else None
    assert told in (str(first.to) if first is not None else "")
    is_again = "Start the job again with the files as they are now" in answer.explanation
    assert is_again is bool(told)


GONE = "TypeError: build() got an unexpected keyword argument 'width'"
LOOKS = "ValueError: mode is none of a, b"
NO_FILE = "FileNotFoundError: [Errno 2] No such file or directory: 'runs/a/last.pt'"


@each_row(
    ("message", "failed_row", "rows", "told"),
    [
        (
            "NameError: name 'math' is not defined",
            "y = math.sqrt(x)",
            ["import math", "def fit(x):", "    y = math.sqrt(x)"],
            "`math`",
        ),
        (
            "NameError: name 'math' is not defined",
            "y = math.sqrt(x)",
            ["def fit(x):", "    y = math.sqrt(x)"],
            "",
        ),
        # The row reads otherwise by now.
        (
            "NameError: name 'math' is not defined",
            "y = math.sqrt(x)",
            ["import math", "def fit(x):", "    print(math.sqrt(x + 1))"],
            "`math`",
        ),
        (
            "NameError: name 'math' is not defined",
            "y = math.sqrt(x)",
            ["import math", "def fit(x):", "    print(math.sqrt(x + 1))", "    import math"],
            "",
        ),
        (
            "UnboundLocalError: local variable 'best' referenced before assignment",
            "if x > best:",
            ["def fit(x):", "    best = 0", "    if x > best:", "        best = x"],
            "`best`",
        ),
        (
            "UnboundLocalError: local variable 'best' referenced before assignment",
            "if x > best:",
            ["def fit(x):", "    best = 0", "    del best", "    if x > best:", "        best = x"],
            "",
        ),
        (
            GONE,
            "net = build(",
            ["def fit(x):", "    net = build(", "        depth=x,", "    )"],
            "no longer gives `width`",
        ),
        (GONE, "net = build(", ["def fit(x):", "    net = build(", "        **x,", "    )"], ""),
        (
            NO_FILE,
            "f = open(x)",
            ["def fit(x):", "    if exists(x):", "        f = open(x)"],
            "guards this row",
        ),
        (NO_FILE, "f = open(x)", ["def fit(x):", "    if exists(x) or x:", "        f = open(x)"], ""),
        (
            NO_FILE,
            "f = open(x)",
            ["def fit(x):", "    if not exists(x):", "        return", "    f = open(x)"],
            "guards this row",
        ),
        (
            NO_FILE,
            "f = open(x)",
            ["def fit(x):", "    try:", "        f = open(x)", "    except OSError:", "        f = None"],
            "guards this row",
        ),
        (
            NO_FILE,
            "f = open(x)",
            ["def fit(x):", "    try:", "        f = open(x)", "    except OSError:", "        raise"],
            "",
        ),
        (
            LOOKS,
            'raise ValueError("mode is none of a, b")',
            ["def fit(x):", "    return x"],
            "no longer has this check",
        ),
        (
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x512 and 1024x10)",
            "y = head(x)",
            ["head = nn.Linear(512, 10)", "def fit(x):", "    y = head(x)"],
            "makes the layer for that width",
        ),
    ],
)
def test_that_what_the_file_rules_out_by_now_is_nothing_to_do(
    message: str, failed_row: str, rows: list[str], told: str, triage: Triage
) -> None:
    """A name that is bound, a guard, an argument or a check that is gone: it cannot fail so again."""
    log = raised(message, f"/job/train.py:9:fit:{failed_row}")
    answer = explained(triage, log, ConfigFile("train.py", "\n".join([*rows, ""])))
    said = str(answer.changes[0].to) if answer.changes else ""
    assert (bool(told), told) == ("nothing to do" in said, told if told in said else said)


def test_that_a_file_which_moved_is_told_where_no_change_says_so(triage: Triage) -> None:
    """The row that ran out of memory stands elsewhere by now."""
    log = raised(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "/job/train.py:9:fit:out = model(batch)",
        f"{SITE}/torch/nn/modules/module.py:1511:_call_impl:return forward_call(*args, **kwargs)",
    )
    file = ConfigFile("train.py", "def fit(model, batch):\n    out = model(batch)\n")
    assert "the line that failed is row 2 now" in explained(triage, log, file).explanation


def test_that_words_on_a_row_that_has_changed_say_so_beside_them(triage: Triage) -> None:
    """In a paragraph of its own, which no screen cuts away with the reasons of the change."""
    log = raised("IndexError: list index out of range", "/job/train.py:9:fit:total += times[i] + REST")
    file = ConfigFile("train.py", "def fit(times, i):\n    total += times[i] + REST + losses[i]\n")
    view = diagnosis_view(explained(triage, log, file), "en")
    assert view.first_changes[0].key == "train.py:9"
    assert "reads `total += times[i] + REST + losses[i]` now (row 2)" in view.part("since")


def test_that_a_file_of_the_same_name_is_not_the_one_that_failed(triage: Triage) -> None:
    """Many a folder has a `utils.py`: one without the function says nothing of its rows."""
    log = raised("NameError: name 'math' is not defined", "/job/core/utils.py:2:fit:y = math.sqrt(x)")
    for text, is_told in (
        ("import math\ndef fit(x):\n    print(x)\n", True),
        ("import math\ndef wrap(x):\n    print(x)\n", False),
    ):
        answer = explained(triage, log, ConfigFile("utils.py", text))
        assert ("nothing to do" in str(answer.changes[0].to)) is is_told
        assert "has changed since" not in answer.explanation
