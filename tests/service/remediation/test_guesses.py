"""Changes that the cause alone calls for: which kinds of them were right too seldom to be put forward."""

from __future__ import annotations

from corpus.message import words
from eval.guess_odds import GuessedFirst, counted
from ingest.logs.inputs import sources
from service.composition.diagnosis_view import diagnosis_view
from service.pipeline.triage import Triage
from service.remediation.guesses import (
    LEAST_ODDS,
    GuessCount,
    GuessOdds,
    is_advised,
    kind_of_guess,
    shipped,
    with_guesses,
)
from service.schemas.diagnosis import ProposedChange
from tests.service.factories import diagnosis, proposal
from tests.tables import each_row
from tests.warm import INCIDENTS, diagnosed

ODDS = GuessOdds(
    rows=(
        GuessCount(kind="wait", stated=True, right=0, of=10),
        GuessCount(kind="env", stated=True, right=9, of=10),
    )
)


def bare(key: str, **fields: object) -> ProposedChange:
    """Make a change that the cause alone calls for."""
    return proposal(key, is_bare=True, **fields)


def test_that_a_guess_stands_behind_what_the_job_calls_for(triage: Triage) -> None:
    """What must follow it is one too; what only helps to find out stays last."""
    library = triage.library
    look = proposal("NCCL_DEBUG", purpose="find-out", kind="env", framework="env")
    changes = [
        bare("init_process_group.timeout", framework="pytorch"),
        proposal("beside", goes_with="init_process_group.timeout"),
        bare("SOME_VARIABLE", kind="env", framework="env"),
        proposal("ddp_timeout", framework="transformers"),
        look,
    ]
    found = with_guesses(changes, "established", library, ODDS)
    assert [(change.key, change.guess) for change in found] == [
        ("SOME_VARIABLE", False),
        ("ddp_timeout", False),
        ("init_process_group.timeout", True),
        ("beside", True),
        ("NCCL_DEBUG", False),
    ]
    assert [is_advised(change) for change in found] == [True, True, False, False, False]


def test_that_what_was_never_counted_is_no_guess(triage: Triage) -> None:
    unseen = with_guesses([bare("x.timeout")], "hypothesis", triage.library, GuessOdds(rows=()))
    assert not unseen[0].guess


@each_row(
    ("framework", "key", "kind", "counted_as"),
    [
        ("pytorch", "init_process_group.timeout", "setting", "wait"),
        ("env", "RAY_health_check_failure_threshold", "env", "wait"),
        ("pytorch", "DataLoader.batch_size", "setting", "argument"),
        ("transformers", "per_device_train_batch_size", "setting", "setting"),
        ("env", "HF_TOKEN", "env", "env"),
        ("pip", "torch", "package", "package"),
    ],
)
def test_by_which_kind_a_change_is_counted(
    framework: str, key: str, kind: str, counted_as: str, triage: Triage
) -> None:
    change = proposal(key, framework=framework, kind=kind)
    assert kind_of_guess(framework, key, change.kind, triage.library) == counted_as


def test_that_the_shipped_counts_call_longer_waits_guesses_and_packages_none() -> None:
    table = shipped()
    for stated in (True, False):
        assert table.odds("wait", stated=stated) < LEAST_ODDS < table.odds("package", stated=stated)


def test_that_right_ones_are_counted_by_kind() -> None:
    found = [
        GuessedFirst("env", True, True),
        GuessedFirst("env", True, False),
        GuessedFirst("env", False, True),
    ]
    assert [(row.stated, row.right, row.of) for row in counted(found).rows] == [(False, 1, 1), (True, 1, 2)]


def test_that_a_view_shows_guesses_apart() -> None:
    """A screen that has nothing else begins with what to look at."""
    shown = diagnosis_view(diagnosis(changes=(proposal(), proposal("a.timeout", guess=True))))
    assert ([change.key for change in shown.changes], [change.key for change in shown.guesses]) == (
        ["data.size"],
        ["a.timeout"],
    )
    alone = diagnosis_view(diagnosis(changes=(proposal("a.timeout", guess=True),), checks=("look",)))
    assert (alone.changes, alone.checks_come_first) == ((), True)
    assert words("diagnosis.guesses", "en") == alone.words("guesses")


def test_that_guesses_take_no_other_change_s_place(triage: Triage) -> None:
    """The numbers of the log speak for the allocator's segments; a smaller batch is a measure of the case."""
    found = diagnosed(triage, sources.from_path(INCIDENTS / "ember-whimbrel" / "log.txt")).changes
    assert [(change.key, change.guess) for change in found] == [
        ("PYTORCH_CUDA_ALLOC_CONF", False),
        ("DataLoader.batch_size", True),
    ]


def test_that_a_longer_wait_is_never_written_for_a_late_rank_alone(triage: Triage) -> None:
    """Nothing says that what is waited for would come."""
    found = diagnosed(triage, sources.from_path(INCIDENTS / "lab-almandine" / "log.txt"))
    waits = [change for change in found.changes if "timeout" in change.key and change.from_ is None]
    assert waits
    assert all(change.guess for change in waits)
    assert "timeout" not in (found.patch or "")
