"""What a cluster has is set against what the job asks for before a count is raised."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

WAITS = (
    "(autoscaler +1m30s) Error: No available node types can fulfill resource request "
    "{'GPU': 2.0, 'CPU': 3.0}. "
    "Add suitable node types to this cluster to resolve this issue.\n"
)
THERE = (
    "WARNING 2026-11-25 03:03:01,214 controller 312 -- Deployment 'A' in application 'b' has 1 replicas that "
    'have taken more than 30s to be scheduled. Resources required for each replica: {"CPU": 3, "GPU": 2}, '
    'total resources available: {"CPU": %s}. Use `ray status` for more details.\n'
)
GROUP = """apiVersion: ray.io/v1
kind: RayCluster
spec:
  headGroupSpec:
    rayStartParams: {num-gpus: "0"}
    template:
      spec:
        containers:
          - {name: head, image: x}
  workerGroupSpecs:
    - groupName: cards
      rayStartParams: {num-cpus: "16", num-gpus: "0"}
      template:
        spec:
          containers:
            - name: worker
              image: x
              resources: {limits: {nvidia.com/gpu: "4"}}
"""


def test_that_a_group_is_told_the_cards_that_its_container_has(triage: Triage) -> None:
    made = explained(triage, THERE % "96.0" + WAITS, ConfigFile("cluster.yaml", GROUP))
    assert (made.changes[0].key, made.changes[0].to) == ("--num-gpus", 4)
    assert '+      rayStartParams: {num-cpus: "16", num-gpus: "4"}\n' in (made.patch or "")
    assert "headGroupSpec:\n-" not in (made.patch or "")


@each_row(("cpus", "raised"), [("96.0", False), ("2.0", True)])
def test_that_ample_slots_are_not_raised(triage: Triage, cpus: str, raised: bool) -> None:
    made = explained(triage, THERE % cpus + WAITS, ConfigFile("cluster.yaml", GROUP))
    assert ("--num-cpus" in {change.key for change in made.changes}) is raised


SLURM = "#!/bin/bash\n#SBATCH --gres=gpu:a100:4\nsrun ray start --head --num-gpus 4 --block &\nbash run.sh\n"
TRAIN = (
    "python3 -m openrlhf.cli.train_ppo_ray \\\n  --actor_num_nodes 1 \\\n  --actor_num_gpus_per_node 4 \\\n"
    "  --ref_num_nodes 1 \\\n  --ref_num_gpus_per_node %s \\\n  --vllm_num_engines 2 \\\n"
    "  --vllm_tensor_parallel_size 2\n"
)
STATUS = (
    " 8.0/64.0 CPU (8.0 used of 8.0 reserved in placement groups)\n"
    " %s/%s GPU (4.0 used of 8.0 reserved in placement groups)\n"
    "(autoscaler +2m40s) Warning: The following resource request cannot be scheduled right now: "
    "{'GPU': 1.0, 'CPU': 1.0}. This is likely due to all cluster resources being claimed by actors.\n"
)


@each_row(
    ("reference", "there", "shares"),
    [
        ("4", "8.0", True),
        # The two are of another number of cards, or twelve are there.
        ("2", "8.0", False),
        ("4", "12.0", False),
    ],
)
def test_that_what_the_parts_ask_for_is_summed(
    triage: Triage, reference: str, there: str, shares: bool
) -> None:
    files = [ConfigFile("job.slurm", SLURM), ConfigFile("run.sh", TRAIN % reference)]
    made = explained(triage, STATUS % (there, there), *files)
    keys = {change.key for change in made.changes}
    assert "--num-gpus" not in keys
    assert ("colocate_actor_ref" in keys) is shares
    assert not shares or "for 4 and the engines for 4: 12, and the cluster has 8" in (
        made.changes[0].proof or ""
    )
    assert ("+  --colocate_actor_ref\n" in (made.patch or "")) is shares


@each_row(
    ("options", "there", "shares"),
    [
        ("--critic_num_gpus_per_node 2", "12.0", True),
        ("--critic_num_gpus_per_node 1 --reward_num_gpus_per_node 1", "12.0", True),
        ("--critic_num_nodes 2 --critic_num_gpus_per_node 2", "12.0", True),
        # Even with one set less there are too few, or all have room.
        ("--critic_num_nodes 3 --critic_num_gpus_per_node 2", "12.0", False),
        ("--critic_num_gpus_per_node 2", "14.0", False),
    ],
)
def test_that_critic_and_reward_model_ask_for_cards_of_their_own(
    triage: Triage, options: str, there: str, shares: bool
) -> None:
    start = TRAIN.rstrip("\n") % "4" + f" \\\n  {options}\n"
    made = explained(triage, STATUS % (there, there), ConfigFile("run.sh", start))
    assert (made.changes[0].key == "colocate_actor_ref") is shares
    assert ("critic and reward model" in (made.changes[0].proof or "")) is shares


PRINTED = (
    "Namespace(critic_num_nodes=1, critic_num_gpus_per_node=8, reward_num_nodes=1, "
    "reward_num_gpus_per_node=8)\n"
)


@each_row(
    ("reference", "there", "options", "engines"),
    [
        ("2", "8.0", "", 1),
        ("3", "9.0", "", 1),
        # Not one has room, all have, or their cards are shared as it is.
        ("4", "9.0", "", None),
        ("2", "10.0", "", None),
        ("4", "7.0", "--colocate_actor_ref", None),
    ],
)
def test_that_as_many_engines_are_asked_for_as_the_others_leave_room(
    triage: Triage, reference: str, there: str, options: str, engines: int | None
) -> None:
    """What the program prints of parts that the job has not asks for nothing."""
    given = f"--advantage_estimator rloo --remote_rm_url /w/r.py {options}".rstrip()
    start = TRAIN.rstrip("\n") % reference + f" \\\n  {given}\n"
    made = explained(triage, PRINTED + STATUS % (there, there), ConfigFile("run.sh", start))
    told = {change.key: change.to for change in made.changes}
    assert told.get("vllm_num_engines") == engines
    assert engines is None or f"+  --vllm_num_engines {engines} " in (made.patch or "")


@each_row(("reference", "engines", "shares"), [("4", "2", True), ("2", "2", False), ("4", "1", False)])
def test_that_only_equal_parts_share_all_their_cards(
    triage: Triage, reference: str, engines: str, shares: bool
) -> None:
    """The script itself asserts it."""
    start = (TRAIN % reference).replace("--vllm_num_engines 2", f"--vllm_num_engines {engines}")
    start = start.rstrip("\n") + " \\\n  --advantage_estimator rloo --remote_rm_url /w/r.py\n"
    made = explained(triage, STATUS % ("4.0", "4.0"), ConfigFile("run.sh", start))
    assert ("colocate_all_models" in {change.key for change in made.changes}) is shares
