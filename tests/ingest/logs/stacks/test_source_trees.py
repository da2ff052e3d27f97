"""Frameworks that run out of their own checkouts: their files are no code of the job's."""

from __future__ import annotations

import pytest

from ingest.logs.stacks.own_calls import is_own
from ingest.logs.stacks.stack import Frame
from tests.factories import ReadLog
from tests.tables import each_row

TREES = (
    "torchtitan/torchtitan/train.py",
    "torchtitan/torchtitan/distributed/parallel_dims.py",
    "torchtune/torchtune/training/checkpointing/_utils.py",
    "NeMo-RL/nemo_rl/algorithms/grpo.py",
    "AReaL/areal/engine/fsdp_engine.py",
    "SkyRL/skyrl-train/skyrl_train/trainer.py",
    "rllm/rllm/engine/agent_execution_engine.py",
    "slime/slime/backends/megatron_utils/actor.py",
    "ROLL/roll/pipeline/base_worker.py",
    "prime-rl/src/prime_rl/trainer/rl/train.py",
    "open-instruct/open_instruct/grpo_fast.py",
    "trlx/trlx/trainer/accelerate_base_trainer.py",
    "maxtext/src/maxtext/integration/vllm/adapter.py",
    "maxtext/MaxText/train.py",
    "litgpt/litgpt/finetune/lora.py",
    "nanotron/src/nanotron/trainer.py",
    "llm-foundry/llmfoundry/command_utils/train.py",
    "composer/composer/trainer/trainer.py",
    "ColossalAI/colossalai/booster/booster.py",
    "xtuner/xtuner/engine/hooks/chat.py",
    "unsloth/unsloth/models/llama.py",
    "fairseq/fairseq_cli/train.py",
    "detectron2/detectron2/engine/defaults.py",
    "mmdetection/mmdet/apis/train.py",
    "opencompass/opencompass/tasks/openicl_infer.py",
    "lm-evaluation-harness/lm_eval/evaluator.py",
    "lighteval/src/lighteval/pipeline.py",
    "VLMEvalKit/vlmeval/inference.py",
    "gpt-neox/megatron/model/transformer.py",
    "OpenRLHF/openrlhf/trainer/ppo_trainer.py",
    "TinyZero/verl/trainer/main_ppo.py",
)
# Folders that are called like a framework, and hold the job's own code.
OWN = (
    "torchtitan-notes/run.py",
    "torchtitan/my_run.py",
    "slime/train.py",
    "roll/data.py",
    "composer/songs/train.py",
    "my_areal/engine/fsdp.py",
    "fairseq-fork/scripts/go.py",
    "examples/unsloth/train.py",
    "megatron_run/model/bert.py",
)


@each_row("folder", ["/workspace/", "/home/lark/code/", "/opt/", "C:\\lark\\"])
def test_that_a_frameworks_tree_is_nobodys_own(folder: str) -> None:
    def frame(path: str) -> Frame:
        return Frame(folder.replace("\\", "/") + path, 10, "step", "x")

    assert [path for path in TREES if is_own(frame(path))] == []
    assert [path for path in OWN if not is_own(frame(path))] == []


CALLS = (
    'Traceback (most recent call last):\n  File "{0}", line 30, in main\n    trainer.fit()\n'
    '  File "/workspace/torchtitan/torchtitan/distributed/parallel_dims.py", line 55, in build\n'
    "    return self.mesh[name]\nKeyError: 'dp_shard_cp'\n"
)


@pytest.mark.parametrize(
    ("script", "cause"),
    [("/workspace/torchtitan/torchtitan/train.py", "framework-bug"), ("/job/start.py", "user-code-error")],
)
def test_that_a_slip_in_a_tree_is_its_own_unless_the_job_calls_it(
    read: ReadLog, script: str, cause: str
) -> None:
    root = read(CALLS.format(script)).root
    assert root is not None
    assert root.cause == cause
