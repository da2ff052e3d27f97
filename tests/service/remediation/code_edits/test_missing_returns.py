"""A function that a framework calls by the job's settings gives a number on every way."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

LOG = """Traceback (most recent call last):
  File "/usr/lib/python3.10/dist-packages/verl/trainer/ppo/reward.py", line 122, in compute_reward
    reward_result = reward_fn(data, return_dict=True)
  File "/usr/lib/python3.10/dist-packages/verl/workers/reward_manager/naive.py", line 95, in __call__
    reward_tensor[i, valid_response_length - 1] = reward
TypeError: can't assign a NoneType to a torch.FloatTensor
"""
RUN = "python3 -m verl.trainer.main_ppo custom_reward_function.path=/w/score.py {name}\n"
NAMED = "custom_reward_function.name=judge"
BRANCH = """def judge(a, b):
    if a == b:
        return 1
    if a:
        if b:
            return {value}
"""


@each_row(
    ("body", "name", "put"),
    [
        (BRANCH.format(value="-0.5"), NAMED, "    return 0.0"),
        (BRANCH.format(value="0.25"), NAMED, "    return 0.0"),
        (
            "def judge(a):\n  try:\n    return 1.0\n  except ValueError:\n    print(a)\n",
            NAMED,
            "  return 0.0",
        ),
        # Every way returns, what is returned is no number, or another function is the one that is named.
        (BRANCH.format(value="0.25") + "    raise ValueError\n", NAMED, ""),
        (
            "def judge(a):\n    try:\n        return 1.0\n    except ValueError:\n        return 0.0\n",
            NAMED,
            "",
        ),
        ("def judge(a):\n    while True:\n        if a():\n            return 1.0\n", NAMED, ""),
        (BRANCH.format(value="{'score': 0}"), NAMED, ""),
        ("def judge(a):\n    if a:\n        yield 1.0\n    if not a:\n        return 1.0\n", NAMED, ""),
        (BRANCH.format(value="0.25"), "custom_reward_function.name=other", ""),
    ],
)
def test_that_a_way_without_a_return_gets_one(triage: Triage, body: str, name: str, put: str) -> None:
    files = ConfigFile("run.sh", RUN.format(name=name)), ConfigFile("score.py", body)
    made = explained(triage, LOG, *files)
    rows = [row for row in (made.suggestion or "").split("\n") if row.startswith("+") and "+++" not in row]
    assert rows == ([f"+{put}"] if put else [])
    assert not put or made.changes[0].key == f"score.py:{body.count(chr(10))}"


@each_row("name", ["pick_rate", "upgrade_step", "underscored_step"])
def test_that_the_value_of_another_function_is_left_to_its_caller(triage: Triage, name: str) -> None:
    """Of a reward a row that nobody thought of earns nothing; what a schedule gives, nobody knows."""
    body = BRANCH.format(value="0.25").replace("judge", name)
    answer = explained(
        triage,
        LOG.replace("reward", "rate"),
        ConfigFile("run.yaml", f"rate_function:\n  name: {name}\n"),
        ConfigFile("rates.py", body),
    )
    told = [str(change.to) for change in answer.changes if change.key.startswith("rates.py")]
    assert (answer.suggestion, [word.rpartition(" ")[2].strip("`") for word in told]) == (None, ["VALUE"])
