#!/bin/bash
set -x
python3 prepare.py
python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=$PWD/train.parquet \
    data.val_files=$PWD/test.parquet \
    data.train_batch_size=32 \
    data.max_prompt_length=64 \
    data.max_response_length=32 \
    actor_rollout_ref.model.path=$PWD/models/tiny-qwen \
    actor_rollout_ref.actor.ppo_mini_batch_size=16 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=4 \
    trainer.logger=['console'] \
    trainer.n_gpus_per_node=1 \
    trainer.nnodes=1 \
    trainer.total_epochs=1 actor_rollout_ref.rollout.gpu_memory_utilisation=0.4
