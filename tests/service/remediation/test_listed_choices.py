"""What a job's own files list beside a setting is what may be put there."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

SAVED = "Saved checkpoint to runs/a/step_4000.pt\n"
STEPS = "".join(f"step {step}: loss 2.{step}\n" for step in range(3900, 4400, 100))
ENDED = "slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\n"


@each_row(
    ("row", "saved", "to"),
    [
        ("start_from_checkpoint: fresh  # fresh | latest\n", True, "latest"),
        ("resume: none  # one of: none, auto_resume\n", True, "auto_resume"),
        ("init_from: gpt2  # scratch, resume or gpt2\n", True, "resume"),
        ("# one of: none, latest\nresume: none\n", True, "latest"),
        # What is listed beside it does not go on, is for other values, or there is nothing to go on from.
        ("init_from: gpt2  # gpt2 | gpt2-xl\n", True, None),
        ("# mode: none, latest\nmode: x\nresume: none\n", True, None),
        ("resume: old  # latest | last\n", True, None),
        ("resume: none  # none | latest\n", False, None),
    ],
)
def test_that_a_choice_for_going_on_is_taken_from_beside_the_setting(
    triage: Triage, row: str, saved: bool, to: str | None
) -> None:
    """The patch writes it, and where none is listed the change stays in words."""
    log = (SAVED if saved else "") + STEPS + ENDED
    made = explained(triage, log, ConfigFile("run.yaml", f"max_steps: 9000\n{row}"))
    own = next(each for each in reversed(row.split("\n")) if each and each[0] != "#")
    key, _, now = own.split("#")[0].strip().partition(": ")
    change = next(each for each in made.changes if each.key == key)
    if to is None:
        assert change.to == "what goes on from the last checkpoint"
    else:
        assert (change.from_, str(change.to)) == (now, to)
        assert f"+{key}: {to}" in (made.patch or "")


@each_row(
    "code",
    [
        "p.add_argument('--resume', choices=['no', 'last', 'best'], default='no')\n",
        "p.add_argument(\n    '--resume',\n    choices=[\n        'no',\n        'last',\n    ],\n)\n",
        "p.add_argument('--resume', type=str,\n               choices=('no', 'last'))\n",
        "@click.option('--resume', type=click.Choice(['no', 'last']), default='no')\n",
        "class Options:\n    resume: Literal['no', 'last'] = 'no'\n",
    ],
)
def test_that_the_choices_of_a_parser_count_too(triage: Triage, code: str) -> None:
    files = [ConfigFile("train.py", code), ConfigFile("run.sh", "python train.py --resume no --steps 9000\n")]
    made = explained(triage, SAVED + STEPS + ENDED, *files)
    assert "+python train.py --resume last --steps 9000\n" in (made.patch or "")


def test_that_the_choices_of_the_next_option_are_none_of_this_one(triage: Triage) -> None:
    own = "p.add_argument('--resume',\n    default='no')"
    other = "p.add_argument('--to', choices=['no', 'last'])"
    code = f"def options(p):\n  {own}\n  {other}\n"
    files = [ConfigFile("train.py", code), ConfigFile("run.sh", "python train.py --resume no --steps 9000\n")]
    assert "--resume last" not in (explained(triage, SAVED + STEPS + ENDED, *files).patch or "")


def test_that_a_checkpoint_whose_writing_began_counts_once_steps_follow(triage: Triage) -> None:
    files = [ConfigFile("run.yaml", "resume: none  # none | latest\n")]
    begun = "saving checkpoint to runs/a\n"
    went_on = explained(triage, begun + STEPS + ENDED, *files)
    cut = explained(triage, STEPS + begun + ENDED, *files)
    assert [str(made.changes[0].to) for made in (went_on, cut)] == [
        "latest",
        "what goes on from the last checkpoint",
    ]
