"""Where a job's own code failed, the first change says which part of the statement to mend, and how."""

from __future__ import annotations

import re

from corpus.message import is_chinese
from service.composition.diagnosis_view import as_written, diagnosis_view
from service.composition.shape_arithmetic import misfit
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.service.composition.test_message_forms import SITE, raised
from tests.tables import each_row
from tests.warm import explained


@each_row(
    ("log", "key", "act"),
    [
        (
            raised("ZeroDivisionError: division by zero", "/job/run.py:8:mean:return total / kept"),
            "run.py:8",
            "`kept` is 0",
        ),
        (
            raised(
                "AttributeError: 'NoneType' object has no attribute 'shape'",
                "/job/run.py:31:step:size = batch.mask.shape[0]",
            ),
            "run.py:31",
            "`batch.mask` is None",
        ),
        (
            raised("TypeError: 'NoneType' object is not subscriptable", "/job/a.py:4:load:x = found[0]"),
            "a.py:4",
            "`found` is None",
        ),
        (
            raised("KeyError: 'targets'", "/job/a.py:9:read:y = sample['targets']"),
            "a.py:9",
            "`sample` has no key 'targets'",
        ),
        (
            raised("IndexError: list index out of range", "/job/a.py:9:read:x = names[2]"),
            "a.py:9",
            "`names` has no entry `2`",
        ),
        (
            raised("ValueError: max() iterable argument is empty", "/job/a.py:9:best:return max(scores)"),
            "a.py:9",
            "`scores` is empty",
        ),
        (
            raised(
                "RuntimeError: shape '[8, 64, 3]' is invalid for input of size 960",
                "/job/a.py:9:forward:x = x.view(b, 64, 3)",
            ),
            "a.py:9",
            "(8 -> 5, 64 -> 40)",
        ),
        (
            raised(
                "TypeError: Decoder.forward() missing 1 required positional argument: 'mask'",
                "/job/a.py:9:forward:y = self.decoder.forward(x)",
            ),
            "a.py:9",
            "pass 'mask' in `self.decoder.forward(x)`",
        ),
        (
            raised(
                "UnboundLocalError: local variable 'norm' referenced before assignment",
                "/job/a.py:9:step:log(norm)",
            ),
            "a.py:9",
            "`del norm`",
        ),
        (
            raised("TypeError: string indices must be integers, not 'str'", "/job/a.py:9:read:x = row['a']"),
            "a.py:9",
            "`row` is a string here",
        ),
        (
            raised("TypeError: iteration over a 0-d tensor", "/job/a.py:9:read:for part in loss:"),
            "a.py:9",
            "for part in loss.reshape(-1):",
        ),
        (
            raised(
                "FileNotFoundError: [Errno 2] No such file or directory: 'runs/best.pt'",
                "/job/a.py:9:read:state = open(path)",
            ),
            "a.py:9",
            "the full path in place of `runs/best.pt`",
        ),
        (
            raised(
                "FileNotFoundError: [Errno 2] No such file or directory: '/data/runs/best.pt'",
                "/job/a.py:9:read:state = open(path)",
            ),
            "a.py:9",
            "a path that exists in place of `/data/runs/best.pt`",
        ),
        (
            raised("AssertionError", "/job/run.py:40:check:assert len(names) == width"),
            "run.py:40",
            "`len(names) == width` is false",
        ),
        (
            raised(
                "ImportError: cannot import name 'build' from 'src.nets' (/job/src/nets.py)",
                "/job/run.py:3:<module>:from src.nets import build",
            ),
            "run.py:3",
            "define `build` in `/job/src/nets.py`",
        ),
    ],
)
def test_the_first_change_names_what_to_mend_in_the_failing_statement(
    log: str, key: str, act: str, triage: Triage
) -> None:
    answer = explained(triage, log, language="en")
    first = answer.changes[0]
    assert (first.kind, first.key) == ("code", key)
    assert act in str(first.to)
    # Words on code are shown as they are, and are nothing that the catalogue has or a patch writes.
    view = diagnosis_view(answer)
    assert as_written(view.changes[0]) == f"{key}: {first.to}"
    assert (view.changes[0].doubt, answer.patch) == ("", None)


def test_that_it_reads_in_chinese_too(triage: Triage) -> None:
    log = raised("ZeroDivisionError: division by zero", "/job/run.py:8:mean:return total / kept")
    first = explained(triage, log, language="zh").changes[0]
    assert first.kind == "code"
    assert is_chinese(str(first.to))
    assert not re.search(r"[{}]", str(first.to))


@each_row(
    "log",
    [
        # No call of the job's own code led there.
        raised("KeyError: 'targets'", f"{SITE}/somewhere/loader.py:9:read:y = sample['targets']"),
        # Several parts of the statement may be the one.
        raised("ZeroDivisionError: division by zero", "/job/a.py:8:mean:return a / b + c / d"),
    ],
)
def test_that_nothing_is_advised_that_the_log_does_not_tell(log: str, triage: Triage) -> None:
    assert [item for item in explained(triage, log, language="en").changes if item.kind == "code"] == []


@each_row(
    ("shape", "size", "told"),
    [
        ("[33, 64, 10]", "3300", {"fits": "64 -> 10"}),
        ("(28,28)", "4096", {}),
        ("[4, 4, 3]", "24", {"fits": "4 -> 2"}),
        ("[4, 4, 8]", "64", {"fits": "4 -> 2, 8 -> 4"}),
        ("[16, 32, 64, 128]", "8192", {}),
        ("[-1, 6]", "40", {}),
        ("[2, 3]", "6", {}),
    ],
)
def test_a_shape_tells_by_which_other_entries_it_would_fit(
    shape: str, size: str, told: dict[str, str]
) -> None:
    assert misfit(shape, size) == told


def test_that_the_bare_beginning_of_a_call_is_not_quoted(triage: Triage) -> None:
    for code, is_told in (("raise ValueError(", False), ("raise ValueError(f'{n} left')", True)):
        log = raised("ValueError: three are left", f"/job/run.py:9:check:{code}")
        assert (code in explained(triage, log, language="en").explanation) == is_told


def test_that_repetitions_count_processes_only_where_the_log_tells_them_apart(triage: Triage) -> None:
    line = "KeyError: 'targets'\n"
    alone = explained(triage, line * 3, language="en").explanation
    ranks = explained(
        triage, "".join(f"[rank{rank}]: {line}" for rank in range(3)), language="en"
    ).explanation
    assert "came 3 times." in alone
    assert "came 3 times, from 3 processes" in ranks


@each_row(
    ("file", "error", "keys"),
    [
        # The one value that the message tells is an option's: to mend that is nearer than to mend the row.
        ("loss: hinge_v3\n", "KeyError: 'hinge_v3'", ["loss", "run.py:7"]),
        # What no option holds is the row's own matter.
        ("loss: hinge\n", "KeyError: 'hinge_v3'", ["run.py:7"]),
    ],
)
def test_that_the_setting_that_holds_what_the_message_tells_comes_before_words_on_the_row(
    file: str, error: str, keys: list[str], triage: Triage
) -> None:
    code = (
        "from omegaconf import OmegaConf\nimport losses\n\n\n"
        'cfg = OmegaConf.load("conf.yaml")\n\nmade = losses.table[cfg.loss]\n'
    )
    log = raised(error, "/job/run.py:7:<module>:made = losses.table[cfg.loss]")
    found = explained(triage, log, ConfigFile("run.py", code), ConfigFile("conf.yaml", file)).changes
    assert [change.key for change in found] == keys
