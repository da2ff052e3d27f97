"""The first change of a failing message that is pasted alone: what one would try first at night."""

from __future__ import annotations

from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

SHARED = """\
  File "/env/lib/python3.11/site-packages/transformers/trainer.py", line 2480, in _save
    save()
RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk"""
SPLIT = "AssertionError: num_heads (52) must be divisible by mp_size (8)"


@each_row(
    ("log", "key", "to"),
    [
        # The message names the limit, in words or by a number that is beyond it.
        (
            "ValueError: Worker failed with error 'LoRA rank 32 is greater than max_lora_rank 16.'",
            "--max-lora-rank",
            32,
        ),
        ("ValueError: Prompt length 1377 exceeds max_prompt_length 1024", "max_prompt_length", "1377"),
        (SPLIT, "mp_size", "4"),
        (
            "AssertionError: heads 28 must be divisible by tensor-model-parallel-size 8",
            "tensor_model_parallel_size",
            "4",
        ),
        (
            "ValueError: number of required GPUs exceeds the total number of available GPUs in the cluster",
            "--tensor-parallel-size",
            None,
        ),
        ("ValueError: Placement group bundle cannot have more than 1 GPU.", "placement_group_bundles", None),
        (
            (
                "ValueError: Call to add_lora method failed: LoRA is not enabled. Use --enable-lora "
                "to enable LoRA."
            ),
            "--enable-lora",
            True,
        ),
        ("ValueError: Unknown dtype: bf17", "--dtype", "auto"),
        (
            "ValueError: Unknown quantization method: foo. Must be one of ['awq', 'gptq'].",
            "--quantization",
            None,
        ),
        (
            (
                "ValueError: CUDAGraphMode.FULL is not supported with FlexAttentionBackend backend (support: "
                "AttentionCGSupport.NEVER) ; please try cudagraph_mode=PIECEWISE"
            ),
            "--compilation-config",
            '{"cudagraph_mode": "PIECEWISE"}',
        ),
        ("ValueError: Token id 151859 is out of vocabulary", "--tokenizer", None),
        # What verl's forks say too is verl's where nothing shows the fork.
        (
            "AssertionError: only support equal chunk. Got size of DataProto 30 and chunk 8.",
            "data.train_batch_size",
            None,
        ),
        (
            "AssertionError: rollout world_size: 1 is not divisible by infer_tp: 2",
            "actor_rollout_ref.rollout.tensor_model_parallel_size",
            1,
        ),
        ("RuntimeError: Prompt length 1377 is longer than 1024.", "data.filter_overlong_prompts", True),
        ("NotImplementedError: sequence_length=1203 is larger than max_length=1024", "data.max_length", 1216),
        (
            "ValueError: Total available GPUs 4 is less than total desired GPUs 8",
            "trainer.n_gpus_per_node",
            4,
        ),
        (
            "AssertionError: disable CUDA graph (enforce_eager = False) if free cache engine",
            "actor_rollout_ref.rollout.enforce_eager",
            True,
        ),
        ("AssertionError: Rollout vllm with mode sync not found", "actor_rollout_ref.rollout.mode", "async"),
        (
            "ValueError: Invalid loss_agg_mode: token_mean",
            "actor_rollout_ref.actor.loss_agg_mode",
            "token-mean",
        ),
        ("NotImplementedError: Unknown advantage estimator simply: grpoo", "algorithm.adv_estimator", None),
        (
            ("AssertionError: validation gen temperature should be greater than 0 when enabling do_sample"),
            "actor_rollout_ref.rollout.val_kwargs.temperature",
            1,
        ),
        (
            "ValueError: If using curriculum, num_workers must be 0 to prevent data caching.",
            "data.dataloader_num_workers",
            0,
        ),
        (
            ("AssertionError: micro_batch_size is needed to be passed in when not using dynamic batch size"),
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
            4,
        ),
        (
            "AssertionError: max_token_len must be set when use_dynamic_bsz is True",
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
            16384,
        ),
        ("AssertionError: GRPO needs rollout.n > 1.", "actor_rollout_ref.rollout.n", 8),
        ("AssertionError: wanbd is not supported", "trainer.logger", None),
        ("AssertionError: resume ckpt must specify the global_steps", "trainer.resume_from_path", None),
        (
            ("AssertionError: Make sure the last char in src is not / because it will cause error. Got /m/"),
            "actor_rollout_ref.model.path",
            None,
        ),
        (
            "ValueError: actor cannot use FSDP's CPU offload when gradient accumulation is enabled.",
            "worker.actor.fsdp.enable_cpu_offload",
            False,
        ),
        (
            "AssertionError: Agent loop x not registered, registered agent loops: dict_keys(['y'])",
            "actor_rollout_ref.rollout.agent.default_agent_loop",
            None,
        ),
        (
            "AttributeError: Reward function 'compute_score' not found in '/d/reward.py'.",
            "custom_reward_function.name",
            None,
        ),
        # Readers of configurations name the key.
        (
            "Could not append to config. An item is already at 'trainer.val_before_train'.",
            "trainer.val_before_train",
            None,
        ),
        ("Error merging override trainer.n_gpus_per_node=eight", "trainer.n_gpus_per_node", None),
        (
            "Ambiguous value for argument 'data.train_files=a.parquet,b.parquet'",
            "data.train_files",
            "[a.parquet,b.parquet]",
        ),
        (
            "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: rollout.name",
            "rollout.name",
            None,
        ),
        (
            "omegaconf.errors.InterpolationKeyError: Interpolation key 'model.fused' not found",
            "model.fused",
            None,
        ),
        (
            "Cannot find primary config 'ppo_trainr'. Check that it's in your config search path.",
            "--config-name",
            None,
        ),
        ("You must specify 'model_engine', e.g, model_engine=<OPTION>", "model_engine", None),
        # Trainers' arguments that do not go together.
        (
            "ValueError: Quantization is only compatible with the LoRA or OFT method.",
            "finetuning_type",
            "lora",
        ),
        (
            "ValueError: `predict_with_generate` is incompatible with DeepSpeed ZeRO-3.",
            "predict_with_generate",
            False,
        ),
        ("ValueError: Please specify dataset for training.", "dataset", None),
        ("ValueError: Please make sure eval_dataset be provided or val_size >1e-6", "val_size", 0.1),
        ("ValueError: Cannot resize embedding layers of a quantized model.", "resize_vocab", False),
        ("ValueError: Distributed training does not support layer-wise GaLore.", "galore_layerwise", False),
        (
            ("ValueError: self.dataset: [], self.cached_dataset: []. Please input the training dataset."),
            "--dataset",
            None,
        ),
        ("ValueError: Packing and lazy_tokenize are incompatible.", "--lazy_tokenize", False),
        ("ValueError: Liger loss does not support padding free yet.", "--use_liger_kernel", False),
        ("ValueError: unhandled prompt tokenization strategy: alpacax", "datasets", None),
        (
            (
                "ValueError: Please set lora_modules_to_save to [`embed_tokens`, `lm_head`] when "
                "using an adapter and changing the special tokens."
            ),
            "lora_modules_to_save",
            "[embed_tokens, lm_head]",
        ),
        ("AssertionError: `--eval_dataset` is only supported with `--remote_rm_url`.", "eval_dataset", None),
        (
            (
                "ValueError: Using --fsdp xxx together with --deepspeed is not possible, deactivate "
                "one of those flags."
            ),
            "fsdp",
            None,
        ),
        (
            (
                "ValueError: You cannot specify a scheduler in the config file and in the code at "
                "the same time."
            ),
            "scheduler",
            None,
        ),
        (
            "ValueError: Hostfile contains a bad entry: gpu-node-1, unable to proceed with launching",
            "--hostfile",
            None,
        ),
        (
            "AssertionError: Not enough buffers 0 for swapping 1",
            "zero_optimization.offload_param.buffer_count",
            10,
        ),
        (
            (
                "AssertionError: You are using an untested ZeRO Optimizer. Please add "
                '<"zero_allow_untested_optimizer": true> in the configuration file to use it.'
            ),
            "zero_allow_untested_optimizer",
            True,
        ),
        (
            "`Trainer(devices=0)` value is not a valid input using cuda accelerator.",
            "Trainer.devices",
            "auto",
        ),
        (
            (
                "lightning.fabric.utilities.exceptions.MisconfigurationException: You selected an "
                "invalid strategy name: `strategy='ddpp'`. It must be either a string or an instance "
                "of `lightning.pytorch.strategies.Strategy`."
            ),
            "Trainer.strategy",
            "auto",
        ),
        (
            (
                "ValueError: `val_check_interval` (1000) must be less than or equal to the number of "
                "the training batches (200)."
            ),
            "Trainer.val_check_interval",
            1.0,
        ),
        (
            (
                "ValueError: You set `devices=8` in Lightning, but the number of tasks per node "
                "configured in SLURM `--ntasks-per-node=1` does not match."
            ),
            "--ntasks-per-node",
            8,
        ),
        (
            (
                "lightning.fabric.utilities.exceptions.MisconfigurationException: "
                "`ModelCheckpoint(monitor='val_acc')` could not find the monitored key in the "
                "returned metrics: ['train_loss', 'epoch']."
            ),
            "ModelCheckpoint.monitor",
            None,
        ),
        (
            (
                "ValueError: Cannot use chat template functions because tokenizer.chat_template is "
                "not set and no template argument was passed!"
            ),
            "tokenizer.chat_template",
            None,
        ),
        (
            (
                "ValueError: The model is offloaded on CPU or disk - CPU & disk offloading is not "
                "supported for ValueHead models."
            ),
            "from_pretrained.device_map",
            '{"": 0}',
        ),
        (SHARED, "save_safetensors", False),
        # The machine's side.
        (
            ("sbatch: error: Batch job submission failed: Requested node configuration is not available"),
            "--gres",
            None,
        ),
        (
            (
                "sbatch: error: Batch job submission failed: Invalid account or account/partition "
                "combination specified"
            ),
            "--account",
            None,
        ),
        ("sbatch: error: Batch job submission failed: Invalid qos specification", "--qos", None),
        (
            (
                "Warning  FailedScheduling  4s  default-scheduler  0/2 nodes are available: 2 "
                "Insufficient nvidia.com/gpu."
            ),
            "resources.limits.nvidia.com/gpu",
            None,
        ),
        (
            "RuntimeError: Unrecognized CachingAllocator option: expandable_segment",
            "PYTORCH_CUDA_ALLOC_CONF",
            "expandable_segments:True",
        ),
        (
            (
                "Job supervisor actor failed to start within 900.0 seconds. This timeout can be "
                "configured by setting the environment variable RAY_JOB_START_TIMEOUT_SECONDS."
            ),
            "RAY_JOB_START_TIMEOUT_SECONDS",
            None,
        ),
    ],
)
def test_that_a_message_alone_leads_to_its_first_change(
    log: str, key: str, to: object, triage: Triage
) -> None:
    first = next(iter(explained(triage, f"{log}\n").changes), None)
    assert first is not None
    assert (first.key, to if to is None else first.to) == (key, to)


@each_row(
    "log",
    [
        # A value for another setting than the one that is wrong.
        ("ValueError: Unknown quantization method: foo.", "--gpu-memory-utilization"),
        (
            (
                "AssertionError: You are using an untested ZeRO Optimizer. Please add "
                '<"zero_allow_untested_optimizer": true> in the configuration file to use it.'
            ),
            "bf16.enabled",
        ),
        ("ValueError: Please reduce the length of the prompt: max_model_len is 4096", "max_model_len"),
        ("ValueError: Total available GPUs 0 is less than total desired GPUs 8", "trainer.n_gpus_per_node"),
        # What only a tool logs so, and another package says.
        (
            (
                "<class 'pyarrow.lib.ArrowInvalid'>: JSON parse error: Column() changed from object "
                "to array in row 0"
            ),
            "data.prompt_key",
        ),
        ("openai.BadRequestError: Error code: 400 - {'object': 'error', 'message': 'x'}", "HF_HUB_OFFLINE"),
    ],
)
def test_that_no_change_is_offered_that_cannot_cure(log: str, triage: Triage) -> None:
    text, key = log
    assert key not in {change.key for change in explained(triage, f"{text}\n").changes}
