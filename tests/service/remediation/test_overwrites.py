"""A row of the job's own code that sets anew what a change gives from outside is told with its place."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.remediation.overwrites import overwriting_row, tell_overwritten
from tests.service.factories import failed, proposal, report, setting
from tests.tables import each_row

SETS = 'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = str(card)\n'


@each_row(
    ("kind", "framework", "key", "code", "place"),
    [
        ("env", "env", "CUDA_VISIBLE_DEVICES", SETS, "train.py:2"),
        ("env", "env", "CUDA_VISIBLE_DEVICES", SETS.replace("]", "]["), ""),
        ("env", "env", "CUDA_VISIBLE_DEVICES", 'x = os.environ["CUDA_VISIBLE_DEVICES"]\n', ""),
        ("env", "env", "HF_HOME", SETS, ""),
        ("flag", "python", "--batch-size", "args.batch_size = 64\n", "train.py:1"),
        ("setting", "python", "model.width", "    config['width'] = 7\n", "train.py:1"),
        # A row that works on what was given, a comparison, another owner, and another framework's setting.
        ("flag", "python", "--batch-size", "args.batch_size = max(args.batch_size, 1)\n", ""),
        ("flag", "python", "--batch-size", "args.batch_size == 64\n", ""),
        ("flag", "python", "--batch-size", "sampler.batch_size = 64\n", ""),
        ("flag", "vllm", "--batch-size", "args.batch_size = 64\n", ""),
    ],
)
def test_that_the_row_is_found_that_sets_a_value_anew(
    kind: str, framework: str, key: str, code: str, place: str
) -> None:
    """An assignment of the variable or the option, which does not read it."""
    change = proposal(key, 1, kind=kind, framework=framework)
    found = overwriting_row(change, report(failed(), launches=(f"{code}\njob/train.py",)))
    assert (found[0] if found else "") == place


def test_that_the_change_says_where_its_value_is_lost() -> None:
    """The reason goes on with file, line and row, in the language of the answer."""
    change = proposal("CUDA_VISIBLE_DEVICES", "0", kind="env", framework="env", why="Cards that are free.")
    told = report(failed(), launches=(f"{SETS}\ntrain.py",))
    (english,) = tell_overwritten([change], told, "en")
    (chinese,) = tell_overwritten([change], told, "zh")
    assert english.why.startswith("Cards that are free. ")
    assert "train.py:2" in english.why
    assert "train.py:2" in chinese.why
    assert english.why != chinese.why


def test_that_what_only_another_program_runs_sets_nothing() -> None:
    """A module's own part, behind the guard, does not run where another file is the program."""
    code = f"import os\nif __name__ == '__main__':\n    {SETS.splitlines()[1]}\nx = 1\n"
    change = proposal("CUDA_VISIBLE_DEVICES", "0", kind="env", framework="env")
    ran = report(failed(frames=(Frame("/job/train.py", 3, "<module>"),)), launches=(f"{code}\ndata.py",))
    assert overwriting_row(change, ran) is None
    itself = report(failed(frames=(Frame("/job/data.py", 3, "<module>"),)), launches=(f"{code}\ndata.py",))
    assert overwriting_row(change, itself) is not None


def test_that_the_option_is_changed_which_the_code_takes_the_value_from() -> None:
    code = "os.environ['CUDA_VISIBLE_DEVICES'] = str(args.cards)\n"
    change = proposal("CUDA_VISIBLE_DEVICES", "free ones", kind="env", framework="env")
    told = report(failed(), launches=(f"{code}\ntrain.py",))
    (made,) = tell_overwritten([change], told, "en", [setting("cards", "0,1")])
    assert (made.framework, made.key, made.from_) == ("python", "--cards", "0,1")
