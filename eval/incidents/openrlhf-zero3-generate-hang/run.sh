#!/bin/bash
set -x
read -r -d '' training_commands <<EOF
examples/train_ppo.py \
    --pretrain /models/lumen-14b-chat \
    --reward_pretrain /models/lumen-14b-rm \
    --save_path /output/lumen-ppo \
    --micro_train_batch_size 1 \
    --train_batch_size 64 \
    --micro_rollout_batch_size 2 \
    --rollout_batch_size 256 \
    --max_epochs 1 \
    --prompt_max_len 1024 \
    --generate_max_len 1024 \
    --zero_stage 3 \
    --bf16 \
    --actor_learning_rate 5e-7 \
    --critic_learning_rate 9e-6 \
    --init_kl_coef 0.01 \
    --prompt_data /data/ppo_prompts \
    --max_samples 20000 \
    --normalize_reward \
    --adam_offload \
    --flash_attn \
    --gradient_checkpointing
EOF
deepspeed --num_gpus 8 $training_commands
