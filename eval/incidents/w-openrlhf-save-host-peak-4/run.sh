#!/usr/bin/env bash
# inside pod openrlhf-13b-0 (8x A800-SXM4-80GB, limits.memory: 480Gi)
set -x
export NCCL_IB_DISABLE=1
export TOKENIZERS_PARALLELISM=false
export RAY_memory_monitor_refresh_ms=0   # otherwise ray kills workers at random

ray stop
ray start --head --node-ip-address 0.0.0.0 --num-gpus 8 --object-store-memory 32212254720

ray job submit --address="http://127.0.0.1:8265" \
    --runtime-env-json='{"working_dir": "/workspace/OpenRLHF"}' \
    -- python3 examples/train_ppo_ray.py \
    --ref_num_nodes 1 \
    --ref_num_gpus_per_node 1 \
    --reward_num_nodes 1 \
    --reward_num_gpus_per_node 1 \
    --critic_num_nodes 1 \
    --critic_num_gpus_per_node 2 \
    --actor_num_nodes 1 \
    --actor_num_gpus_per_node 4 \
    --pretrain /data/ckpt/ziya2-13b-sft-v3 \
    --reward_pretrain /data/ckpt/rm-llama2-7b-zh \
    --save_path /data/ckpt/ziya2-13b-ppo-0312 \
    --micro_train_batch_size 2 \
    --train_batch_size 64 \
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
    --prompt_data /data/prompts/zh_mix_0305.jsonl \
    --prompt_data_probs 1.0 \
    --max_samples 4096 \
    --normalize_reward \
    --actor_init_on_gpu \
    --adam_offload \
    --flash_attn \
    --gradient_checkpointing \
    --logging_steps 1 \
    --save_steps -1
