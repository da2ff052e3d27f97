"""Whole answers of short logs whose message, to one who knows the framework's source, names the setting at
fault.
"""

from __future__ import annotations

from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

SITE = "/env/lib/python3.11/site-packages"
NO_SYNC = f"""\
  File "{SITE}/transformers/trainer.py", line 2480, in _inner_training_loop
    with context():
  File "{SITE}/accelerate/accelerator.py", line 901, in no_sync
    with context():
  File "{SITE}/deepspeed/runtime/engine.py", line 2011, in no_sync
"""
ASSERTED = (
    f"{NO_SYNC}AssertionError: no_sync context manager is incompatible with gradient partitioning logic "
    "of ZeRO stage 3\n"
)
MISMATCH = """\
ValueError: Please correct the following DeepSpeed config values that mismatch TrainingArguments values:
- ds fp16.enabled=True vs hf fp16|fp16_full_eval+fp16_backend(amp)=False
"""
STRUCT = """\
  File "/job/agents/train.py", line 12, in run
    lr = config.models.one.actor_rollout_ref.actor.optim.lr_warmup_steps
omegaconf.errors.ConfigAttributeError: Key 'lr_warmup_steps' is not in struct
    full_key: models.one.actor_rollout_ref.actor.optim.lr_warmup_steps
"""
ONE_ANSWER = "{'loss': 0.0, 'grad_norm': nan, 'reward': 0.75, 'reward_std': nan, 'kl': 0.001, 'epoch': 0.0}\n"
NAN = "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n"
AXOLOTL = f"""\
  File "{SITE}/axolotl/utils/config/__init__.py", line 198, in validate_config
    AxolotlInputConfig(
pydantic_core._pydantic_core.ValidationError: 1 validation error for AxolotlInputConfig
pretraining_dataset
  Input should be a valid list [type=list_type, input_value={{'path': 'web'}}, input_type=dict]
"""
DDP = "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.\n"
ACCELERATE = "Distributed environment: MULTI_GPU  Backend: nccl\nNum processes: 2\nDevice: cuda:0\n"
DUPLICATE = "ncclInvalidUsage: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 4000\n"
RENDEZVOUS = (
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store "
    "has failed. See inner exception for details.\n"
)
TRACE = (
    f'  File "{SITE}/deepspeed/runtime/zero/partitioned_param_coordinator.py", line 201, in reset_step\n  '
    "  x\nRuntimeError: still have inflight params [1]\n"
)
PARSER = f'  File "{SITE}/llamafactory/hparams/parser.py", line 233, in get_train_args\n    x\n'
OOM = "ray.exceptions.RayTaskError(OutOfMemoryError): ray::{call}() (pid=71, ip=10.0.0.9)\n"


@each_row(
    ("log", "cause", "key", "to"),
    [
        (ASSERTED, "package-incompatible", "transformers", ">=4.48"),
        (ASSERTED, "package-incompatible", "gradient_accumulation_steps", 1),
        (NO_SYNC, "package-incompatible", "deepspeed", "<0.16"),
        (MISMATCH, "config-key-invalid", "fp16.enabled", "auto"),
        (
            STRUCT,
            "config-key-invalid",
            "actor_rollout_ref.actor.optim.lr_warmup_steps",
            "the value that the YAML of the code's own release has",
        ),
        (ONE_ANSWER + NAN, "nan-or-inf", "num_generations", 8),
        (AXOLOTL, "config-key-invalid", "pretraining_dataset", None),
        (DDP, "user-code-error", "DistributedDataParallel.find_unused_parameters", True),
        (ACCELERATE + DUPLICATE, "nccl-device-misuse", "num_processes", None),
        (
            RENDEZVOUS,
            "rendezvous-failed",
            "--rdzv_endpoint",
            "the IP of node 0 and a port that is open there",
        ),
        (TRACE, "framework-bug", "zero_optimization.stage3_prefetch_bucket_size", 0),
        (
            "ValueError: ZeRO inference only makes sense with ZeRO Stage 3 - please adjust your config\n",
            "config-key-invalid",
            "zero_optimization.stage",
            3,
        ),
        (
            f"{PARSER}ValueError: Unsloth is incompatible with DeepSpeed ZeRO-3.\n",
            "config-key-invalid",
            "use_unsloth",
            False,
        ),
        (
            (
                "AssertionError: pre-scale gradients is not yet supported with ZeRO-2 with reduce scatter "
                "enabled\n"
            ),
            "config-key-invalid",
            "prescale_gradients",
            False,
        ),
        (
            (
                "ERROR 08-20 09:48:31 [pynccl_wrapper.py:229] Failed to load NCCL library from "
                "/opt/nccl/lib/libnccl.so.2.21.5. It is\n"
            ),
            "abi-mismatch",
            "VLLM_NCCL_SO_PATH",
            "unset",
        ),
        (
            "Exception: Could not find the transformer layer class to wrap in the model.\n",
            "config-key-invalid",
            "fsdp_config.fsdp_transformer_layer_cls_to_wrap",
            None,
        ),
    ],
)
def test_that_the_setting_which_the_message_is_about_is_proposed(
    log: str, cause: str, key: str, to: object, triage: Triage
) -> None:
    answer = explained(triage, log)
    assert (answer.verdict, answer.cause) == ("diagnosed", cause)
    assert [change.to for change in answer.changes if change.key == key][:1] == (
        [to] if to is not None else [answer.changes[0].to]
    )


@each_row(
    ("call", "cause"),
    [
        ("RolloutActor.wake_up", "gpu-oom-rollout"),
        ("LLMActor.backload_to_gpu", "gpu-oom-rollout"),
        ("WorkerDict.actor_rollout_update_actor", "gpu-oom-training"),
        ("WorkerDict.ref_compute_ref_log_prob", "gpu-oom-logits"),
        ("main_task", "insufficient-evidence"),
    ],
)
def test_that_a_remote_calls_name_tells_which_phase_ran_out_of_memory(
    call: str, cause: str, triage: Triage
) -> None:
    """A task that only waits for others, though, may pass on Ray's own memory monitor."""
    assert explained(triage, OOM.format(call=call)).cause == cause
