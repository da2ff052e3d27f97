"""A file that is not as the run read it is patched only where the change follows for it too."""

from __future__ import annotations

from service.patching.changed_files import ChangedFile, changed_file, holder_of, tell_changed, tell_held
from service.patching.patches import ConfigFile, FileEdit
from service.patching.target import PatchTarget
from tests.service.factories import failed, proposal, report, setting
from tests.tables import each_row

TARGET = PatchTarget("python", "flag", ("--rows",), 8, "flag")


def _changed(text: str, **printed: str) -> ChangedFile | None:
    told = report(failed(), settings=[setting(name, value) for name, value in printed.items()])
    edit = FileEdit(ConfigFile("run.sh", text), text)
    return changed_file([edit], [TARGET], told)


@each_row(
    ("text", "rows", "then"),
    [
        ("python train.py --rows 32\n", "16", "16"),
        ("python train.py --rows 16\n", "16", None),
        # Of two commands the second one is the run's, and nobody knows what a shell fills in.
        ("python train.py --rows 32\npython train.py --rows 16\n", "16", None),
        ("python train.py --rows $ROWS\n", "16", None),
    ],
)
def test_that_a_value_other_than_the_printed_one_is_found(text: str, rows: str, then: str | None) -> None:
    found = _changed(text, rows=rows)
    assert (found.then if found else None) == then


@each_row(
    ("now", "then", "to", "others", "holds"),
    [
        ("32", "16", 8, 0, True),
        ("4", "16", 8, 0, False),
        ("256", "768", 896, 0, True),
        ("256", "768", 896, 3, False),
        ("bf16", "16", 8, 0, False),
    ],
)
def test_that_the_change_must_go_the_same_way_for_the_file(
    now: str, then: str, to: int, others: int, *, holds: bool
) -> None:
    """And of a file that differs in more than this another one ran."""
    assert ChangedFile("run.sh", "rows", now, then, others).holds(to) is holds


def test_that_a_tracker_s_record_tells_what_the_run_had() -> None:
    """The program is as it is now; what W&B kept of the run is what the run had."""
    text = "python train.py --rows 5\n"
    record = ConfigFile("config.yaml", "_wandb:\n  value: {}\nrows:\n  value: 20\n")
    edit = FileEdit(ConfigFile("run.sh", text), text.replace("5", "8"))
    found = changed_file([edit], [TARGET], report(failed()), [edit.file, record])
    assert found is not None
    assert (found.now, found.then, found.holds(8)) == ("5", "20", False)


def test_that_the_change_tells_both_values() -> None:
    made = ChangedFile("run.sh", "rows", "32", "16", 0)
    (told,) = tell_changed([proposal("--rows", 8, why="Fewer.")], made, "en")
    assert told.from_ == "16"
    assert "`run.sh` says 32" in told.why


def test_that_a_default_of_code_is_told_as_overridden() -> None:
    """A command gives an option another value than the program's default, and the file is as it was."""
    made = ChangedFile("train.py", "rows", "32", "16", 0)
    (told,) = tell_changed([proposal("--rows", 8, why="Fewer.")], made, "en")
    assert "not the 32 of `train.py`" in told.why
    assert "has changed since, or another file" not in told.why


@each_row(
    ("text", "held"),
    [
        ("python train.py --rows 8\n", True),
        ("python train.py --rows 16\n", False),
        ("python train.py --rows 8\npython train.py --rows 16\n", False),
        ("python train.py\n", False),
    ],
)
def test_that_a_file_which_has_the_value_by_now_is_named(text: str, *, held: bool) -> None:
    """The run had another one, so that it is only to be started again."""
    name = holder_of(TARGET, [ConfigFile("run.sh", text)])
    assert name == ("run.sh" if held else "")
    (told,) = tell_held([proposal("--rows", 8, why="Fewer.")], "run.sh", "en")
    assert (
        told.why
        == "Fewer. `run.sh` has this value already: the run was made before, so start it again with it."
    )
