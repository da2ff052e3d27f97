#!/bin/bash
# started on the head node; ray is already up: ray start --head --node-ip-address 0.0.0.0 --num-gpus 8
set -x
export VLLM_ATTENTION_BACKEND=XFORMERS
export RAY_DEDUP_LOGS=1
HEAD_IP=10.8.0.21; HEAD_PORT=8265; RUN=verl-grpo_simplelr_qwen_level3to5_Qwen2.5-7B
( while true; do echo "[memwatch] $(date +%H:%M:%S) $(free -g | awk '/Mem:/{print "used="$3"G free="$4"G total="$2"G"}')"; sleep 600; done ) &
ray job submit --address=http://${HEAD_IP}:${HEAD_PORT} \
  --entrypoint-num-cpus=1 \
  --runtime-env-json='{"working_dir": "/share/simpleRL-reason", "env_vars": {"http_proxy": "", "https_proxy": ""}}' \
  -- python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files=/share/data/simplelr_qwen_level3to5/train.parquet \
  data.val_files=/share/data/simplelr_qwen_level3to5/test.parquet \
  data.train_batch_size=1024 \
  data.val_batch_size=500 \
  data.max_prompt_length=1024 \
  data.max_response_length=8192 \
  actor_rollout_ref.model.path=/share/models/Qwen2.5-7B \
  actor_rollout_ref.actor.optim.lr=5e-7 \
  actor_rollout_ref.model.use_remove_padding=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.0001 \
  actor_rollout_ref.actor.entropy_coeff=0.001 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.fsdp_config.param_offload=False \
  actor_rollout_ref.actor.fsdp_config.grad_offload=False \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
  actor_rollout_ref.rollout.temperature=1.0 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size=160 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.75 \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.enable_chunked_prefill=False \
  actor_rollout_ref.rollout.max_num_batched_tokens=10216 \
  actor_rollout_ref.rollout.micro_rollout_batch_size=1024 \
  actor_rollout_ref.ref.log_prob_micro_batch_size=160 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  algorithm.kl_ctrl.kl_coef=0.001 \
  critic.ppo_micro_batch_size_per_gpu=4 \
  trainer.critic_warmup=0 \
  trainer.logger=['console'] \
  trainer.project_name=verl_train \
  trainer.remove_previous_ckpt=False \
  trainer.experiment_name=$RUN \
  trainer.n_gpus_per_node=8 \
  trainer.nnodes=1 \
  trainer.remove_clip=False \
  trainer.save_freq=20 \
  trainer.test_freq=5 \
  trainer.default_local_dir=/share/ckpt/$RUN \
  trainer.total_epochs=20 2>&1 | tee -a /share/logs/$RUN.log
