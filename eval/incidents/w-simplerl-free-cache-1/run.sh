#!/bin/bash
# single box, 8x A100 80G, 1 TB
export VLLM_ATTENTION_BACKEND=XFORMERS
export HYDRA_FULL_ERROR=1
export TOKENIZERS_PARALLELISM=true
cd /home/dpetrov/simpleRL-reason

ray stop -f >/dev/null 2>&1
ray start --head --num-gpus 8 --disable-usage-stats

# keep an eye on the box
( while true; do free -g | awk -v t="$(date +%T)" '/Mem/{m="Mem: total "$2" used "$3" free "$4" shared "$5} /Swap/{print "["t"] " m " | swap used "$3}'; sleep 180; done ) &
WATCH=$!
trap "kill $WATCH" EXIT

python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files=/data/dpetrov/simplelr_qwen_level3to5/train.parquet \
  data.val_files=/data/dpetrov/simplelr_qwen_level3to5/test.parquet \
  data.train_batch_size=1024 \
  data.val_batch_size=500 \
  data.max_prompt_length=1024 \
  data.max_response_length=6144 \
  actor_rollout_ref.model.path=/data/dpetrov/models/Mistral-Nemo-Base-2407 \
  actor_rollout_ref.actor.optim.lr=5e-7 \
  actor_rollout_ref.model.use_remove_padding=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=1e-4 \
  actor_rollout_ref.actor.entropy_coeff=0.001 \
  actor_rollout_ref.actor.clip_ratio=0.2 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.fsdp_config.param_offload=False \
  actor_rollout_ref.actor.fsdp_config.grad_offload=False \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
  actor_rollout_ref.rollout.temperature=1.0 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size=160 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.enable_chunked_prefill=False \
  actor_rollout_ref.rollout.max_num_batched_tokens=8168 \
  actor_rollout_ref.rollout.micro_rollout_batch_size=1024 \
  actor_rollout_ref.ref.log_prob_micro_batch_size=160 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  algorithm.kl_ctrl.kl_coef=0.001 \
  critic.ppo_micro_batch_size_per_gpu=4 \
  trainer.critic_warmup=0 \
  trainer.logger=['console'] \
  trainer.project_name=simplerl-nemo \
  trainer.remove_previous_ckpt=True \
  trainer.experiment_name=nemo12b_l35_n8 \
  trainer.n_gpus_per_node=8 \
  trainer.nnodes=1 \
  trainer.remove_clip=False \
  trainer.save_freq=20 \
  trainer.test_freq=5 \
  trainer.default_local_dir=/data/dpetrov/ckpt/nemo12b_l35_n8 \
  trainer.total_epochs=20
