#!/bin/bash
# simpleRL-reason (verl 版, v1 分支), vllm 0.6.3 / torch 2.4.0 / ray 2.12.0
export VLLM_ATTENTION_BACKEND=XFORMERS
export HYDRA_FULL_ERROR=1
export PYTHONUNBUFFERED=1
ray start --head --port 6379 --num-gpus 8 --dashboard-host 0.0.0.0
echo "==> 集群就绪,开始训练 $(date '+%T')"
python -u /app/tools/memwatch.py &      # 整机内存,每隔几分钟一行
python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files=/data/simplelr_qwen_level3to5/train.parquet \
  data.val_files=/data/simplelr_qwen_level3to5/test.parquet \
  data.train_batch_size=1024 \
  data.val_batch_size=500 \
  data.max_prompt_length=1024 \
  data.max_response_length=8192 \
  actor_rollout_ref.model.path=/data/models/Qwen2.5-14B \
  actor_rollout_ref.model.use_remove_padding=True \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.optim.lr=5e-7 \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size=8 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.0001 \
  actor_rollout_ref.actor.entropy_coeff=0.001 \
  actor_rollout_ref.actor.clip_ratio=0.2 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl \
  actor_rollout_ref.actor.fsdp_config.param_offload=False \
  actor_rollout_ref.actor.fsdp_config.grad_offload=False \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.temperature=1.0 \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.55 \
  actor_rollout_ref.rollout.enforce_eager=True \
  actor_rollout_ref.rollout.free_cache_engine=True \
  actor_rollout_ref.rollout.max_num_batched_tokens=9216 \
  actor_rollout_ref.rollout.micro_rollout_batch_size=1024 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size=64 \
  actor_rollout_ref.ref.log_prob_micro_batch_size=64 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  algorithm.kl_ctrl.kl_coef=0.0001 \
  critic.ppo_micro_batch_size=4 \
  trainer.critic_warmup=0 \
  trainer.logger=['console'] \
  trainer.project_name=zoo14b \
  trainer.experiment_name=q14b_grpo_8k_r3 \
  trainer.n_gpus_per_node=8 \
  trainer.nnodes=1 \
  trainer.save_freq=20 \
  trainer.test_freq=10 \
  trainer.default_local_dir=/data/ckpt/q14b_grpo_8k_r3 \
  trainer.total_epochs=20
rc=$?
echo "==> 训练进程退出 rc=$rc $(date '+%T'),清理 ray"
ray stop
exit $rc
