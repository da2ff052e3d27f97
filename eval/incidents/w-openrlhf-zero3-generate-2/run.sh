#!/bin/bash
#SBATCH --job-name=qwen_ppo_z3
#SBATCH --account=ufr@a100
#SBATCH --constraint=a100
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=32
#SBATCH --hint=nomultithread
#SBATCH --time=20:00:00
#SBATCH --output=%x_%j.log
#SBATCH --error=%x_%j.log

module purge
module load cpuarch/amd
module load cuda/12.1.0 gcc/12.2.0
set -x
source activate orlhf
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=29511
export NCCL_DEBUG=WARN
export TORCH_NCCL_ASYNC_ERROR_HANDLING=1
export PYTHONFAULTHANDLER=1
export HF_HUB_OFFLINE=1
cd /lustre/fswork/projects/ufr21ab/OpenRLHF/examples

read -r -d '' training_commands <<EOT
train_ppo.py \
    --pretrain /lustre/fsmisc/dataset/HuggingFace_Models/Qwen/Qwen1.5-7B-Chat \
    --reward_pretrain /lustre/fswork/projects/ufr21ab/ckpt/qwen1.5-7b-rm-fr \
    --save_path /lustre/fswork/projects/ufr21ab/ckpt/qwen1.5-7b-ppo-fr \
    --save_steps -1 \
    --logging_steps 1 \
    --eval_steps -1 \
    --micro_train_batch_size 1 \
    --train_batch_size 64 \
    --micro_rollout_batch_size 2 \
    --rollout_batch_size 256 \
    --max_epochs 1 \
    --prompt_max_len 512 \
    --generate_max_len 768 \
    --zero_stage 3 \
    --bf16 \
    --actor_learning_rate 5e-7 \
    --critic_learning_rate 9e-6 \
    --init_kl_coef 0.01 \
    --prompt_data /lustre/fswork/projects/ufr21ab/data/fr_instruct_prompts \
    --prompt_data_probs 1.0 \
    --input_key instruction \
    --max_samples 20000 \
    --normalize_reward \
    --adam_offload \
    --flash_attn \
    --gradient_checkpointing
EOT

srun --kill-on-bad-exit=0 torchrun \
    --nproc_per_node 4 \
    --nnodes $SLURM_NNODES \
    --rdzv_id $SLURM_JOB_ID \
    --rdzv_backend c10d \
    --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT \
    $training_commands
