#!/bin/bash
# started once before:  ray start --head --node-ip-address 10.60.11.5 --port 6379 --dashboard-port 8265 --num-gpus 8
export NCCL_DEBUG=WARN
export VLLM_ATTENTION_BACKEND=XFORMERS
export TOKENIZERS_PARALLELISM=true
export HYDRA_FULL_ERROR=1
export HEAD_IP=10.60.11.5
export HEAD_PORT=8265
export ARNOLD_WORKER_NUM=1
WORKING_DIR=/nvme/wz/simpleRL-reason
DATA=/nvme/wz/data/simplelr_math_35
MODEL=/nvme/models/Llama-3.1-8B
RUN_NAME=verl-grpo-llama31-8b-math35-n8-r4096
MAXTOK=$((1024 + 4096 + 1000))

ray job submit --address=http://${HEAD_IP}:${HEAD_PORT} \
  --entrypoint-num-cpus=1 \
  --runtime-env-json='{
        "working_dir": "'${WORKING_DIR}'",
        "env_vars": {
          "http_proxy": "",
          "https_proxy": "",
          "VLLM_ATTENTION_BACKEND": "XFORMERS"
        }
    }' \
  -- python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files=$DATA/train.parquet \
  data.val_files=$DATA/test.parquet \
  data.train_batch_size=1024 \
  data.val_batch_size=500 \
  data.max_prompt_length=1024 \
  data.max_response_length=4096 \
  actor_rollout_ref.model.path=$MODEL \
  actor_rollout_ref.actor.optim.lr=5e-7 \
  actor_rollout_ref.model.use_remove_padding=True \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size=16 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.001 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl \
  actor_rollout_ref.actor.entropy_coeff=0.001 \
  actor_rollout_ref.actor.clip_ratio=0.2 \
  actor_rollout_ref.actor.fsdp_config.param_offload=False \
  actor_rollout_ref.actor.fsdp_config.grad_offload=False \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.temperature=1.0 \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.75 \
  actor_rollout_ref.rollout.enforce_eager=True \
  actor_rollout_ref.rollout.free_cache_engine=True \
  actor_rollout_ref.rollout.enable_chunked_prefill=False \
  actor_rollout_ref.rollout.max_num_batched_tokens=$MAXTOK \
  actor_rollout_ref.rollout.micro_rollout_batch_size=512 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size=160 \
  actor_rollout_ref.ref.log_prob_micro_batch_size=160 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  algorithm.kl_ctrl.kl_coef=0.001 \
  critic.ppo_micro_batch_size=4 \
  trainer.critic_warmup=0 \
  trainer.logger=['console','wandb'] \
  trainer.project_name=simplerl_l31 \
  trainer.experiment_name=$RUN_NAME \
  trainer.remove_previous_ckpt=True \
  trainer.n_gpus_per_node=8 \
  trainer.nnodes=$ARNOLD_WORKER_NUM \
  trainer.save_freq=20 \
  trainer.test_freq=5 \
  trainer.default_local_dir=/nvme/wz/ckpt/$RUN_NAME \
  trainer.total_epochs=20
