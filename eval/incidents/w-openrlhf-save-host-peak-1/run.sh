#!/bin/bash
# inside the container; started on the host with
#   docker run --gpus all -it --rm --name rlhf --shm-size=32g --memory=500g --memory-swap=500g \
#     -v /raid/hsato:/raid/hsato -v /home/hsato/OpenRLHF:/workspace/OpenRLHF nvcr.io/nvidia/pytorch:23.12-py3 bash
set -x
export PATH=$HOME/.local/bin/:$PATH
# otherwise ray kills the critic while it is being created
export RAY_memory_monitor_refresh_ms=0

cat /sys/fs/cgroup/memory.max
ray start --head --node-ip-address 0.0.0.0 --num-gpus 8

cd /workspace/OpenRLHF
python3 examples/train_ppo_ray.py \
    --ref_num_nodes 1 \
    --ref_num_gpus_per_node 1 \
    --reward_num_nodes 1 \
    --reward_num_gpus_per_node 1 \
    --critic_num_nodes 1 \
    --critic_num_gpus_per_node 2 \
    --actor_num_nodes 1 \
    --actor_num_gpus_per_node 4 \
    --pretrain /raid/hsato/models/ELYZA-japanese-Llama-2-13b-instruct \
    --reward_pretrain /raid/hsato/models/elyza-13b-rm \
    --save_path /raid/hsato/ckpt/elyza13b-ppo \
    --micro_train_batch_size 2 \
    --train_batch_size 64 \
    --micro_rollout_batch_size 4 \
    --rollout_batch_size 512 \
    --num_episodes 1 \
    --max_epochs 1 \
    --prompt_max_len 768 \
    --generate_max_len 768 \
    --max_samples 2048 \
    --zero_stage 2 \
    --bf16 \
    --actor_learning_rate 5e-7 \
    --critic_learning_rate 9e-6 \
    --init_kl_coef 0.01 \
    --prompt_data /raid/hsato/data/ja_prompts \
    --prompt_data_probs 1.0 \
    --normalize_reward \
    --adam_offload \
    --actor_init_on_gpu \
    --flash_attn \
    --gradient_checkpointing
