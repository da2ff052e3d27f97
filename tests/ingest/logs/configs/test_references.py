"""Variables in a job's own files: the run's value, else what stands for one that is not given."""

from __future__ import annotations

from ingest.configfiles.settings import Setting
from ingest.logs.configs.references import resolved
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
