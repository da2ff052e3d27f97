#!/bin/bash
# 2 x 8 A100-SXM4-40GB, no ray
export NCCL_SOCKET_IFNAME=bond0
export NCCL_IB_HCA=mlx5_0,mlx5_1,mlx5_4,mlx5_5
export NCCL_DEBUG=WARN
export TOKENIZERS_PARALLELISM=false
export CUDA_DEVICE_MAX_CONNECTIONS=1
cd /mnt/pfs/rlhf/OpenRLHF

deepspeed --hostfile /mnt/pfs/rlhf/hostfile --master_addr gpu-a17 --master_port 29611 \
    examples/train_ppo.py \
    --pretrain /mnt/pfs/models/Qwen1.5-14B-Chat \
    --reward_pretrain /mnt/pfs/rlhf/ckpt/qwen1.5-7b-rm-0418 \
    --save_path /mnt/pfs/rlhf/ckpt/qwen1.5-14b-ppo \
    --ckpt_path /mnt/pfs/rlhf/ckpt/qwen1.5-14b-ppo/ckpt \
    --save_steps 50 \
    --logging_steps 1 \
    --eval_steps -1 \
    --micro_train_batch_size 1 \
    --train_batch_size 128 \
    --micro_rollout_batch_size 2 \
    --rollout_batch_size 512 \
    --max_epochs 1 \
    --num_episodes 1 \
    --prompt_max_len 1024 \
    --generate_max_len 1024 \
    --zero_stage 3 \
    --bf16 \
    --actor_learning_rate 5e-7 \
    --critic_learning_rate 9e-6 \
    --init_kl_coef 0.01 \
    --prompt_data /mnt/pfs/rlhf/data/prompt_mix_40k.jsonl \
    --prompt_data_probs 1.0 \
    --max_samples 40000 \
    --normalize_reward \
    --actor_init_on_gpu \
    --adam_offload \
    --flash_attn \
    --gradient_checkpointing 2>&1 | tee logs/ppo_z3_0423.log
