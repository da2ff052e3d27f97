#!/bin/bash
set -x
export PATH=$HOME/.local/bin:$PATH
# container: docker run --gpus all --shm-size 64g --memory 480g ...
ray job submit --address="http://127.0.0.1:8265" \
    --runtime-env-json='{"working_dir": "/workspace/rlhf"}' \
    -- python3 examples/train_ppo_ray.py \
    --ref_num_nodes 1 \
    --ref_num_gpus_per_node 1 \
    --reward_num_nodes 1 \
    --reward_num_gpus_per_node 1 \
    --critic_num_nodes 1 \
    --critic_num_gpus_per_node 2 \
    --actor_num_nodes 1 \
    --actor_num_gpus_per_node 4 \
    --pretrain /models/polar-13b-sft \
    --reward_pretrain /models/polar-13b-rm \
    --save_path /output/polar-13b-ppo \
    --micro_train_batch_size 2 \
    --train_batch_size 128 \
    --micro_rollout_batch_size 4 \
    --rollout_batch_size 512 \
    --max_epochs 1 \
    --num_episodes 1 \
    --prompt_max_len 1024 \
    --generate_max_len 768 \
    --zero_stage 2 \
    --bf16 \
    --actor_learning_rate 5e-7 \
    --critic_learning_rate 9e-6 \
    --init_kl_coef 0.02 \
    --prompt_data /data/prompts_zh_en.jsonl \
    --max_samples 512 \
    --normalize_reward \
    --adam_offload \
    --flash_attn \
    --gradient_checkpointing
