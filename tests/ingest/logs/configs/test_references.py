"""Variables in a job's own files: the run's value, else what stands for one that is not given."""

from __future__ import annotations

from ingest.configfiles.settings import Setting
from ingest.logs.configs.references import as_run, resolved
from tests.tables import each_row


@each_row(
    ("written", "expected"),
    [
        ("${1:-8}", "8"),
        ("$SIZE", "16"),
        ("${SIZE}", "16"),
        ('${NAME:-"m/lark"}', "m/lark"),
        ("${ROOT}/out", "/data/out"),
        ("${LOOP}", "${LOOP}"),
        ("$(nproc)", "$(nproc)"),
        ("$GIVEN", "$GIVEN"),
        ("7", "7"),
    ],
)
def test_that_a_script_s_variables_are_filled_as_far_as_it_says_what_they_are(
    written: str, expected: str
) -> None:
    variables = [("SIZE", "${SIZE:-16}"), ("ROOT", "$BASE"), ("BASE", "/data"), ("LOOP", "${LOOP}")]
    own = [Setting("data.n", written, 0, "hydra"), *(Setting(*each, 0, "env") for each in variables)]
    assert resolved(own, ())[0].value == expected


def test_that_what_the_run_had_counts_before_a_script_s_default() -> None:
    own = [Setting("data.n", "${1:-8}", 0, "hydra"), Setting("data.m", "4", 0, "hydra")]
    shown = [
        Setting("data.n", "$N", 3, "hydra"),
        Setting("data.n", "32", 4, "hydra"),
        Setting("data.m", "5", 4, "dump"),
    ]
    assert [setting.value for setting in resolved(own, shown)] == ["32", "4"]


def kept(own: list[Setting], shown: list[Setting], last: int = 0) -> dict[str, str]:
    return {f"{item.file}:{item.key}": item.value for item in as_run(own, shown, last)}


def of(file: str, **values: str) -> list[Setting]:
    return [Setting(key, value, 0, "yaml", file=file) for key, value in values.items()]


def printed(line: int = 3, **values: str) -> list[Setting]:
    return [Setting(key, value, line, "dump") for key, value in values.items()]


def test_that_what_the_run_printed_wins_over_a_file() -> None:
    """A number or a switch of the log counts; what a program completes, and words, stay the file's."""
    own = of("a.yaml", batch_size="64", fp16="true", steps="-1", name="lark", rows="7", depth="12")
    shown = printed(batch_size="16", fp16="False", steps="500", name="/data/lark", rows="7.0", depth="12")
    assert kept(own, shown) == {
        "a.yaml:batch_size": "16",
        "a.yaml:fp16": "False",
        "a.yaml:steps": "-1",
        "a.yaml:name": "lark",
        "a.yaml:rows": "7",
        "a.yaml:depth": "12",
    }


def test_that_another_file_that_the_run_printed_wins_over_a_default() -> None:
    """Under the whole key of a configuration; the same file by another way to it stays as it is written."""
    own = [Setting("data.train", "~/rows/a.bin", 0, "yaml", file="a.yaml")]
    for value, wanted in (("/w/b.bin", "/w/b.bin"), ("/home/x/rows/a.bin", "~/rows/a.bin")):
        shown = [Setting("data.train", value, 3, "dump")]
        assert kept(own, shown) == {"a.yaml:data.train": wanted}


def test_that_of_several_prints_the_last_before_the_failure_counts() -> None:
    shown = [*printed(2, rows="8"), *printed(5, rows="4"), *printed(9, rows="2")]
    assert kept(of("a.yaml", rows="16"), shown, last=6) == {"a.yaml:rows": "4"}


def test_that_a_script_keeps_the_values_of_its_other_commands() -> None:
    """One of its commands is the run that is printed: what the others give is theirs."""
    own = [Setting("vocab", value, 0, "flag", file="run.sh") for value in ("32000", "32064")]
    assert [item.value for item in as_run(own, printed(vocab="32000"))] == ["32000", "32064"]


def test_that_a_file_of_another_run_tells_nothing_of_its_own() -> None:
    """More of its values are contradicted than confirmed: what it alone has is left out, packages are not."""
    own = [
        *of("other.yaml", batch="64", lr="0.1", depth="12", dropout="0.3"),
        Setting("torch", "==2.4.0", 0, "package", file="other.yaml"),
    ]
    shown = printed(batch="16", lr="0.01", depth="12")
    assert kept(own, shown) == {
        "other.yaml:batch": "16",
        "other.yaml:lr": "0.01",
        "other.yaml:depth": "12",
        "other.yaml:torch": "==2.4.0",
    }


def test_that_what_a_command_gives_beside_a_file_makes_it_no_other_run_s() -> None:
    own = of("base.yaml", batch="64", lr="0.1", dropout="0.3")
    shown = [Setting("batch", "16", 1, "hydra"), Setting("lr", "0.01", 1, "hydra")]
    assert kept(own, shown)["base.yaml:dropout"] == "0.3"
