"""A key on the wrong level goes to the right one, with those beside it that stand wrong as well."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

LOG = (
    "Traceback (most recent call last):\n"
    '  File "/w/verl/trainer/main.py", line 94, in main\n    ppo_config = OmegaConf.merge(a, b)\n'
    "omegaconf.errors.ConfigKeyError: Key '{leaf}' not in '{kind}'\n    full_key: {key}\n"
    "    reference_type={kind}\n    object_type={kind}\n"
)
FILE = """worker:
  actor:
    fsdp:
      enable_rank0_init: true
{rows}    optim:
      lr: 1.0e-6
  rollout:
    n: 5
trainer:
  total_epochs: 2
data:
  max_prompt_length: 64
"""


@each_row(
    ("rows", "key", "after"),
    [
        (
            "      offload_optimizer: true\n", "worker.actor.fsdp.offload_optimizer",
            "    offload:\n      offload_optimizer: true\n",
        ),
        (
            "      offload_params: false\n      offload_optimizer: true\n",
            "worker.actor.fsdp.offload_optimizer",
            "    offload:\n      offload_optimizer: true\n      offload_params: false\n",
        ),
        # A level too high.
        (
            "    enable_full_shard: true\n", "worker.actor.enable_full_shard",
            "      enable_full_shard: true\n",
        ),
    ],
)  # fmt: skip
def test_that_a_key_moves_with_its_siblings(triage: Triage, rows: str, key: str, after: str) -> None:
    log = LOG.format(leaf=key.rpartition(".")[2], kind="FSDPConfig", key=key)
    text = "# EasyR1\n" + FILE.format(rows=rows)
    made = explained(triage, log, ConfigFile("run.sh", RUN), ConfigFile("config.yaml", text))
    assert made.changes[0].replaces == key
    added = [row for row in (made.patch or "").split("\n") if row.startswith("+") and "+++" not in row]
    gone = [row for row in (made.patch or "").split("\n") if row.startswith("-") and "---" not in row]
    assert sorted(gone) == sorted(f"-{row}" for row in rows.splitlines())
    assert all(row[1:] in after.splitlines() for row in added)
    assert added


RUN = "python3 -m verl.trainer.main config=config.yaml worker.rollout.tensor_parallel_size=2\n"


def test_that_a_key_of_another_part_is_no_home(triage: Triage) -> None:
    """What the rollout lacks may be the actor's, which says nothing of the rollout."""
    key = "worker.rollout.offload_optimizer"
    log = LOG.format(leaf="offload_optimizer", kind="RolloutConfig", key=key)
    text = FILE.format(rows="").replace("    n: 5\n", "    n: 5\n    offload_optimizer: true\n")
    made = explained(triage, log, ConfigFile("run.sh", RUN), ConfigFile("config.yaml", text))
    assert not any(change.replaces for change in made.changes)
