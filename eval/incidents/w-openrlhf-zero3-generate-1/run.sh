#!/bin/bash
source ~/.conda/etc/profile.d/conda.sh && conda activate orlhf
cd /home/ines/src/OpenRLHF/examples
export CUDA_VISIBLE_DEVICES=0,1,2,3
export PYTHONFAULTHANDLER=1
export NCCL_IB_DISABLE=1
export TOKENIZERS_PARALLELISM=false

read -r -d '' training_commands <<EOF
train_ppo.py \
    --pretrain /scratch/ines/models/Mistral-7B-SFT-beta \
    --reward_pretrain /scratch/ines/models/mistral-7b-rm \
    --save_path /scratch/ines/ckpt/ppo-mistral-z3 \
    --save_steps -1 \
    --logging_steps 1 \
    --eval_steps -1 \
    --micro_train_batch_size 2 \
    --train_batch_size 64 \
    --micro_rollout_batch_size 4 \
    --rollout_batch_size 512 \
    --max_epochs 1 \
    --prompt_max_len 1024 \
    --generate_max_len 1024 \
    --zero_stage 3 \
    --bf16 \
    --actor_learning_rate 5e-7 \
    --critic_learning_rate 9e-6 \
    --init_kl_coef 0.02 \
    --prompt_data Open-Orca/OpenOrca,Dahoas/full-hh-rlhf \
    --prompt_data_probs 0.5,0.5 \
    --max_samples 40000 \
    --normalize_reward \
    --adam_offload \
    --flash_attn \
    --gradient_checkpointing \
    --seed 1234
EOF

deepspeed --num_gpus 4 $training_commands
