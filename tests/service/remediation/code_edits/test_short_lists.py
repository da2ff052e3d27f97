"""A function that a framework calls gives a number for each row."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

LOG = """Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
    trainer.train()
  File "/usr/lib/python3.10/dist-packages/trl/trainer/grpo_trainer.py", line 1042, in _calculate_rewards
    rewards_per_func[:, i] = torch.tensor(output_reward_func, dtype=torch.float32, device=device)
{said}
"""
FEWER = (
    "RuntimeError: The expanded size of the tensor (16) must match the existing size (15) at non-singleton "
    "dimension 0.  Target sizes: [16].  Tensor sizes: [15]"
)
ARRAY = "ValueError: could not broadcast input array from shape (15,) into shape (16,)"
MORE = FEWER.replace("(15)", "(17)")
TRAIN = "from scores import {name}\n\ntrainer = GRPOTrainer(model, reward_funcs=[{name}])\ntrainer.train()\n"
SKIPS = """def length_reward(completions, **kwargs):
    out = []
    for text in completions:
        if not text:
            continue
        out.append(len(text) / 100)
    return out
"""
NO_ELSE = """def length_reward(completions, **kwargs):
    out = []
    for text in completions:
        if len(text) > 9:
            out.append(1.0)
        elif text:
            out.append(0.5)
    return out
"""
TRIES = """def length_reward(completions, **kwargs):
    out = []
    for text in completions:
        try:
            out.append(float(text))
        except ValueError:
            print(text)
    return out
"""
WHOLE = SKIPS.replace("            continue", "            out.append(0.0)\n            continue")
WITHIN = """def length_reward(completions, **kwargs):
    out = []
    for text in completions:
        for word in text:
            out.append(1.0)
    return out
"""
BRANCH = NO_ELSE.replace("        elif text:\n            out.append(0.5)\n", "")


@each_row(
    ("said", "body", "put"),
    [
        (FEWER, SKIPS, ["            out.append(0.0)"]),
        (ARRAY, SKIPS, ["            out.append(0.0)"]),
        (FEWER, BRANCH, ["        else:", "            out.append(0.0)"]),
        # More than the rows are none left out; every way appends; what a loop within does is not told.
        (MORE, SKIPS, []),
        (FEWER, WHOLE, []),
        (FEWER, WITHIN, []),
    ],
)
def test_that_a_row_without_a_number_gets_one(triage: Triage, said: str, body: str, put: list[str]) -> None:
    files = (ConfigFile("train.py", TRAIN.format(name="length_reward")), ConfigFile("scores.py", body))
    made = explained(triage, LOG.format(said=said), *files)
    rows = [row for row in (made.suggestion or "").split("\n") if row.startswith("+") and "+++" not in row]
    assert rows == [f"+{row}" for row in put]
    assert not put or made.changes[0].key.startswith("scores.py:")


@each_row("body", [NO_ELSE, TRIES])
def test_that_a_place_that_is_no_row_of_its_own_is_only_told(triage: Triage, body: str) -> None:
    files = (ConfigFile("train.py", TRAIN.format(name="length_reward")), ConfigFile("scores.py", body))
    made = explained(triage, LOG.format(said=FEWER), *files)
    assert made.changes[0].key.startswith("scores.py:")
    assert "append(0.0)" in str(made.changes[0].to)


def test_that_a_function_that_nobody_hands_on_is_none_of_the_failure(triage: Triage) -> None:
    made = explained(triage, LOG.format(said=FEWER), ConfigFile("scores.py", SKIPS))
    assert not any(change.key.startswith("scores.py") for change in made.changes)


def test_that_what_other_lists_are_filled_with_is_left_to_their_owner(triage: Triage) -> None:
    body = SKIPS.replace("length_reward", "weights_of")
    files = (ConfigFile("train.py", TRAIN.format(name="weights_of")), ConfigFile("scores.py", body))
    made = explained(triage, LOG.format(said=FEWER), *files)
    told = [str(change.to) for change in made.changes if change.key.startswith("scores.py")]
    assert (made.suggestion, ["VALUE" in word for word in told]) == (None, [True])
