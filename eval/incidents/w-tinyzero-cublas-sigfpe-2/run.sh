#!/bin/bash
#SBATCH -J tinyzero-cd3b
#SBATCH -p h20
#SBATCH -N 2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=48
#SBATCH --mem=600G
#SBATCH -t 2-00:00:00
#SBATCH -o logs/%x-%j.out
#SBATCH -e logs/%x-%j.out

module purge
module load gcc/11.4.0 anaconda3/2024.02
source activate zero
cd /public/home/lzhao/work/TinyZero
echo "== $(date) job $SLURM_JOB_ID on $SLURM_JOB_NODELIST"
nvidia-smi -L
pip list 2>/dev/null | grep -Ei "^(torch|vllm|ray|flash|transformers|xformers|nvidia-cu)"

export N_GPUS=4
export BASE_MODEL=/public/home/lzhao/models/Qwen2.5-3B
export DATA_DIR=/public/home/lzhao/data/countdown
export ROLLOUT_TP_SIZE=2
export EXPERIMENT_NAME=countdown-qwen2.5-3b-2x4
export VLLM_ATTENTION_BACKEND=XFORMERS
export WANDB_MODE=offline
export NCCL_SOCKET_IFNAME=bond0
export HYDRA_FULL_ERROR=1

nodes=( $(scontrol show hostnames $SLURM_JOB_NODELIST) )
head=${nodes[0]}
head_ip=$(srun -N1 -n1 -w $head hostname --ip-address | awk '{print $1}')
echo "head $head $head_ip"
srun -N1 -n1 -w $head ray start --head --node-ip-address=$head_ip --port=6380 --num-cpus=48 --num-gpus=4 --object-store-memory=64424509440 --block &
sleep 20
srun -N1 -n1 -w ${nodes[1]} ray start --address=$head_ip:6380 --num-cpus=48 --num-gpus=4 --object-store-memory=64424509440 --block &
sleep 20

export RAY_ADDRESS=$head_ip:6380
srun --overlap -N1 -n1 -w $head python3 -u -m verl.trainer.main_ppo \
    data.train_files=$DATA_DIR/train.parquet \
    data.val_files=$DATA_DIR/test.parquet \
    data.train_batch_size=256 \
    data.val_batch_size=1312 \
    data.max_prompt_length=256 \
    data.max_response_length=1024 \
    actor_rollout_ref.model.path=$BASE_MODEL \
    actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.model.enable_gradient_checkpointing=True \
    actor_rollout_ref.actor.use_dynamic_bsz=True \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.ppo_mini_batch_size=128 \
    actor_rollout_ref.actor.ppo_micro_batch_size=8 \
    actor_rollout_ref.rollout.log_prob_micro_batch_size=8 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=$ROLLOUT_TP_SIZE \
    actor_rollout_ref.rollout.gpu_memory_utilization=0.35 \
    actor_rollout_ref.ref.log_prob_micro_batch_size=8 \
    critic.optim.lr=1e-5 \
    critic.model.path=$BASE_MODEL \
    critic.model.enable_gradient_checkpointing=True \
    critic.ppo_micro_batch_size=8 \
    algorithm.kl_ctrl.kl_coef=0.001 \
    trainer.logger=['console','wandb'] \
    +trainer.val_before_train=False \
    trainer.default_hdfs_dir=null \
    trainer.n_gpus_per_node=$N_GPUS \
    trainer.nnodes=$SLURM_NNODES \
    trainer.save_freq=100 \
    trainer.test_freq=50 \
    trainer.project_name=TinyZero \
    trainer.experiment_name=$EXPERIMENT_NAME \
    trainer.total_epochs=15
