"""What a message's words alone say: heard where nothing that is known tells a cause, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

from ingest.logs.inputs.sources import from_text
from ingest.logs.stacks.stack import Frame
from service.pipeline.triage import Triage
from service.scoring.message_evidence import WORDS_WEIGHT, message_votes
from tests.factories import event
from tests.tables import each_row

COLUMN = "plumkit.errors.CrateError: The column 'grades' is missing from the training dataset"


def traced(message: str) -> str:
    """Put a message below a call of a package that nobody knows."""
    call = (
        '  File "/opt/env/lib/python3.11/site-packages/plumkit/crates.py", line 8, in load\n    check(crate)'
    )
    return f"Traceback (most recent call last):\n{call}\n{message}\n"


@each_row(
    ("message", "cause"),
    [
        (COLUMN, "dataset-schema"),
        (
            "plumkit.errors.CrateError: plum_parallel_size (3) must divide the attention heads (32)",
            "parallelism-invalid",
        ),
        (
            "plumkit.errors.CrateError: Model architecture PlumForCausalLM is not supported by crates",
            "model-unsupported",
        ),
    ],
)
def test_a_message_that_nobody_knows_is_a_hypothesis_by_its_words(
    message: str, cause: str, triage: Triage
) -> None:
    answer = triage.diagnose(triage.read(from_text(traced(message)), "en")).first
    assert (answer.verdict, answer.cause, answer.standing) == ("diagnosed", cause, "hypothesis")


@each_row(
    "message",
    [
        "plumkit.errors.CrateError: worker died",
        "plumkit.errors.CrateError",
        "plumkit.errors.CrateError: request failed",
    ],
)
def test_words_that_may_mean_anything_name_no_cause(message: str, triage: Triage) -> None:
    answer = triage.diagnose(triage.read(from_text(traced(message)), "en")).first
    assert (answer.verdict, answer.cause) == ("unknown", "insufficient-evidence")


CALLED = """Traceback (most recent call last):
  File "/home/ana/job/train.py", line 88, in <module>
    main()
  File "/home/ana/job/train.py", line 71, in main
    crate = plumkit.load(path)
  File "/opt/env/lib/python3.11/site-packages/plumkit/crates.py", line 8, in load
    check(crate)
"""


def test_that_what_nobody_knows_is_by_default_of_the_jobs_own_call(triage: Triage) -> None:
    """But not where the type or the words say that the reason is elsewhere."""
    causes = {
        message: triage.diagnose(triage.read(from_text(f"{CALLED}{message}\n"), "en")).first.cause
        for message in (
            "plumkit.errors.CrateError",
            "plumkit.errors.CrateError: odd crate",
            "LookupError: odd crate",
            "plumkit.errors.WorkerLostError: odd crate",
            "plumkit.errors.CrateTimeout",
            "plumkit.errors.CrateError: CUDA error 719",
        )
    }
    own, elsewhere = [*causes.values()][:3], [*causes.values()][3:]
    assert own == ["user-code-error"] * 3, causes
    assert "user-code-error" not in elsewhere, causes


def test_what_a_line_is_known_to_say_is_not_asked_of_its_words() -> None:
    unknown = event(6, body=COLUMN, cause=None, strength="hints")
    assert message_votes(unknown).keys() == {"dataset-schema"}
    assert max(message_votes(unknown).values()) <= WORDS_WEIGHT
    known = [
        event(6, body=COLUMN, cause="disk-full", strength=strength)
        for strength in ("states", "suggests", "hints")
    ]
    followers = [
        event(6, body=COLUMN, cause=None, strength="hints", pattern_role=role)
        for role in ("collateral", "wrapper")
    ]
    assert not any(message_votes(root) for root in (*known, *followers))


def test_that_sure_words_outweigh_what_the_type_of_an_exception_suggests(triage: Triage) -> None:
    """A pattern's word stands against them; so does what a type suggests where the words are less sure."""
    body = "RuntimeError: Found dtype Float but expected BFloat16"
    told = event(
        6,
        body=body,
        exception="RuntimeError",
        frames=(Frame("/env/lib/python3.11/site-packages/torch/autograd/__init__.py", 251, "backward"),),
        cause="config-key-invalid",
        strength="suggests",
        handler="unknown-exception",
    )
    assert message_votes(told).keys() == {"dtype-unsupported"}
    assert not message_votes(replace(told, cause="dtype-unsupported"))
    assert not message_votes(replace(told, handler=None))
    # A package's own type is a name for what happened; the job's own code speaks of the job.
    assert not message_votes(replace(told, exception="zmq.error.Again"))
    assert not message_votes(replace(told, frames=(Frame("/job/train.py", 3, "<module>"),)))
    assert not message_votes(replace(told, body="plumkit.errors.CrateError: the request has failed again"))


CHECK = "AssertionError: Fast attention should be used for `use_packing`"


@each_row(
    ("message", "launch", "is_option"),
    [
        (CHECK, "trainer:\n  use_packing: true\n\njob.yaml", True),
        (CHECK, "python train.py --use-packing true\nrun.sh", True),
        # Nobody sets it, only code has the name, or the message is no check's.
        (CHECK, "trainer:\n  packing: true\n\njob.yaml", False),
        (CHECK, "run(use_packing=True)\nrun.py", False),
        (CHECK.replace("AssertionError", "KeyError"), "use_packing: true\njob.yaml", False),
    ],
)
def test_that_a_check_which_names_an_option_of_the_job_is_about_it(
    message: str, launch: str, is_option: bool
) -> None:
    told = event(
        6,
        body=message,
        exception=message.split(":")[0],
        cause="user-code-error",
        strength="suggests",
        handler="unknown-exception",
    )
    assert message_votes(told, [launch], "option") == ({"option": WORDS_WEIGHT} if is_option else {})
