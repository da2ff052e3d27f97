"""Renamed settings by framework, old name to new.

Found by reading what came and went, as no source declares them.

Only names that mean the same with the same values stand here: a setting whose unit or meaning changed is
another one, and so is one whose old name stays valid for something else. Names that a source declares itself
are found in it.
"""

from __future__ import annotations

from collections.abc import Mapping


def _moved(old: str, new: str, names: str) -> dict[str, str]:
    """Give the renames of a group whose place alone changed."""
    return {f"{old}{name}": f"{new}{name}" for name in names.split()}


_OPENRLHF_GROUPS = (
    ("actor_", "actor.", "num_gpus_per_node num_nodes"),
    ("critic_", "critic.", "num_gpus_per_node num_nodes"),
    ("ref_", "ref.", "num_gpus_per_node num_nodes"),
    ("reward_", "reward.", "num_gpus_per_node num_nodes clip_range"),
    (
        "vllm_",
        "vllm.",
        "enable_sleep gpu_memory_utilization num_engines sync_backend sync_with_ray tensor_parallel_size",
    ),
    ("", "vllm.", "enable_prefix_caching enforce_eager"),
    ("lora_", "ds.lora.", "alpha dropout rank"),
    ("wandb_", "logger.wandb.", "group org project run_name"),
    ("eval_", "eval.", "dataset n_samples_per_prompt split steps temperature"),
    (
        "",
        "ds.",
        (
            "adam_offload attn_implementation deepcompile grad_accum_dtype load_in_4bit overlap_comm "
            "packing_samples param_dtype "
            "ring_attn_size use_liger_kernel value_head_prefix zero_stage zpg"
        ),
    ),
    (
        "",
        "data.",
        (
            "apply_chat_template chosen_key dataloader_num_workers dataset_probs dataset_split "
            "disable_fast_tokenizer image_key "
            "input_key input_template label_key max_images_per_prompt max_len max_samples multiturn "
            "output_key prompt_key "
            "prompt_split rejected_key tokenizer_chat_template"
        ),
    ),
    (
        "",
        "train.",
        (
            "agent_func_path async_queue_size colocate_actor_ref colocate_critic_reward ema_beta "
            "enable_ema max_epochs "
            "num_episodes seed"
        ),
    ),
    ("", "actor.", "dual_clip eps_clip eps_clip_low_high freeze_visual_encoder policy_loss_type"),
    ("", "critic.", "save_value_network value_clip"),
    ("", "rollout.", "top_p vllm_generate_batch_size"),
    ("", "reward.", "overlong_buffer_len overlong_penalty_factor stop_properly_penalty_coef"),
    ("", "ckpt.", "best_metric_key save_steps"),
    ("", "algo.advantage.", "gamma lambd"),
    ("", "model.", "beta label_smoothing nll_loss_coef"),
)
_OPENRLHF = {name: new for group in _OPENRLHF_GROUPS for name, new in _moved(*group).items()} | {
    "adam_betas": "adam.betas",
    "advantage_estimator": "algo.advantage.estimator",
    "async_train": "train.async_enable",
    "ckpt_path": "ckpt.path",
    "colocate_all_models": "train.colocate_all",
    "compute_fp32_loss": "model.compute_fp32_loss_enable",
    "deepspeed_enable_sleep": "ds.enable_sleep",
    "disable_ds_ckpt": "ckpt.disable_ds",
    "ds_tensor_parallel_size": "ds.tensor_parallel_size",
    "dynamic_filtering": "algo.dynamic_filtering_enable",
    "dynamic_filtering_reward_range": "algo.dynamic_filtering_range",
    "flash_attn": "attn_implementation",
    "full_determinism": "train.full_determinism_enable",
    "init_kl_coef": "algo.kl.init_coef",
    "ipo": "model.ipo_enable",
    "kl_estimator": "algo.kl.estimator",
    "kl_horizon": "algo.kl.horizon",
    "kl_target": "algo.kl.target",
    "l2": "adam.weight_decay",
    "learning_rate": "adam.lr",
    "load_checkpoint": "ckpt.load_enable",
    "logging_steps": "logger.logging_steps",
    "margin_loss": "model.margin_loss_enable",
    "max_ckpt_mem": "ckpt.max_mem",
    "max_ckpt_num": "ckpt.max_num",
    "micro_rollout_batch_size": "rollout.micro_batch_size",
    "micro_train_batch_size": "train.micro_batch_size",
    "n_samples_per_prompt": "rollout.n_samples_per_prompt",
    "no_advantage_std_norm": "algo.advantage.no_std_norm",
    "normalize_reward": "reward.normalize_enable",
    "partial_rollout": "train.partial_rollout_enable",
    "prompt_data": "data.prompt_dataset",
    "prompt_data_probs": "data.prompt_probs",
    "remote_rm_url": "reward.remote_url",
    "ring_head_stride": "ds.ring_attn_head_stride",
    "rollout_batch_size": "rollout.batch_size",
    "rollout_max_tokens_per_gpu": "rollout.max_tokens_per_gpu",
    "save_hf_ckpt": "ckpt.save_hf",
    "save_path": "ckpt.output_dir",
    "target_modules": "ds.lora.target_modules",
    "temperature": "rollout.temperature",
    "train_batch_size": "train.batch_size",
    "train_max_tokens_per_gpu": "train.max_tokens_per_gpu",
    "use_ds_universal_ckpt": "ds.use_universal_ckpt",
    "use_dynamic_batch": "train.dynamic_batch_enable",
    "use_kl_loss": "algo.kl.use_loss",
    "enable_vllm_is_correction": "algo.advantage.is_correction_enable",
    "vllm_is_correction_type": "algo.advantage.is_correction_type",
    "vllm_is_truncated_threshold": "algo.advantage.is_correction_threshold",
}

RENAMES: dict[str, Mapping[str, str]] = {
    "verl": {
        "actor_rollout_ref.actor.checkpoint.contents": "actor_rollout_ref.actor.checkpoint.save_contents",
        "critic.checkpoint.contents": "critic.checkpoint.save_contents",
        "actor_rollout_ref.rollout.multi_turn.max_turns": (
            "actor_rollout_ref.rollout.multi_turn.max_assistant_turns"
        ),
        "trainer.val_generations_to_log_to_wandb": "trainer.log_val_generations",
        "actor_rollout_ref.ref.param_offload": "actor_rollout_ref.ref.megatron.param_offload",
        "custom_reward_function.path": "reward.custom_reward_function.path",
        "custom_reward_function.name": "reward.custom_reward_function.name",
        "reward_model.enable": "reward.reward_model.enable",
        "reward_model.model.path": "reward.reward_model.model_path",
    },
    "easyr1": {
        "worker.actor.ulysses_sequence_parallel_size": "worker.actor.ulysses_size",
        "worker.critic.ulysses_sequence_parallel_size": "worker.critic.ulysses_size",
        "worker.reward.score_function": "worker.reward.reward_function",
        "worker.reward.score_function_kwargs": "worker.reward.reward_function_kwargs",
    },
    "openrlhf": _OPENRLHF,
    "trl": {
        "use_liger": "use_liger_kernel",
        "use_num_logits_to_keep": "use_logits_to_keep",
        "normalize_advantage": "normalize_advantages",
        "vllm_max_model_len": "vllm_max_model_length",
        "wandb_log_unique_prompts": "log_unique_prompts",
        "vllm_guided_decoding_regex": "vllm_structured_outputs_regex",
        "torch_dtype": "dtype",
    },
    "llamafactory": {
        "dpo_beta": "pref_beta",
        "dpo_loss": "pref_loss",
        "dpo_ftx": "pref_ftx",
        "image_dir": "media_dir",
        "name_module_trainable": "freeze_trainable_modules",
        "num_layer_trainable": "freeze_trainable_layers",
        "badam_switch_block_every": "badam_switch_interval",
        "use_cache": "use_kv_cache",
        "image_resolution": "image_max_pixels",
        "video_resolution": "video_max_pixels",
    },
    "ms-swift": {
        "--sft_type": "--train_type",
        "--train_type": "--tuner_type",
        "--tools_prompt": "--agent_template",
        "--use_liger": "--use_liger_kernel",
        **_moved(
            "--",
            "--vllm_",
            "data_parallel_size disable_custom_all_reduce enable_prefix_caching enforce_eager "
            "gpu_memory_utilization limit_mm_per_prompt max_num_seqs pipeline_parallel_size "
            "tensor_parallel_size use_async_engine",
        ),
    },
    "vllm": {
        "--disable-log-requests": "--no-enable-log-requests",
        "--override-pooler-config": "--pooler-config",
        "--cuda-graph-sizes": "--cudagraph-capture-sizes",
    },
    "sglang": {
        "--nsa-prefill-backend": "--dsa-prefill-backend",
        "--nsa-decode-backend": "--dsa-decode-backend",
        "--oltp-traces-endpoint": "--otlp-traces-endpoint",
        "--file-storage-pth": "--file-storage-path",
        "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
        "--cuda-graph-bs": "--cuda-graph-bs-decode",
        "--max-micro-batch-size": "--pp-max-micro-batch-size",
        "--stream-output": "--incremental-streaming-output",
    },
    "deepspeed": {
        "zero_optimization.stage3_gather_fp16_weights_on_model_save": (
            "zero_optimization.stage3_gather_16bit_weights_on_model_save"
        )
    },
    "megatron": {
        "--use-custom-fsdp": "--use-megatron-fsdp",
        "--retro-workdir": "--retro-project-dir",
        "--keep-fp8-transpose-cache-when-using-custom-fsdp": "--keep-fp8-transpose-cache",
        "--override-opt_param-scheduler": "--override-opt-param-scheduler",
        "--use-checkpoint-opt_param-scheduler": "--use-checkpoint-opt-param-scheduler",
        "--cuda-graph-scope": "--cuda-graph-modules",
    },
    "transformers": {
        "evaluation_strategy": "eval_strategy",
        "push_to_hub_model_id": "hub_model_id",
        "push_to_hub_token": "hub_token",
        "fp16_backend": "half_precision_backend",
        "no_cuda": "use_cpu",
    },
    "pytorch": {
        "PYTORCH_CUDA_ALLOC_CONF": "PYTORCH_ALLOC_CONF",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_FR_BUFFER_SIZE",
    },
}
