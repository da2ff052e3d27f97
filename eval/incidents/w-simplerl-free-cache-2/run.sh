#!/bin/bash
#SBATCH --job-name=zoo-14b
#SBATCH --partition=p5-queue
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=96
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --output=/fsx/home/npatel/runs/%x/%j.out

module load libfabric-aws/1.22.0amzn4.0 openmpi5/5.0.3
source /fsx/home/npatel/miniforge3/bin/activate simplerl
export FI_PROVIDER=efa NCCL_DEBUG=WARN
export VLLM_ATTENTION_BACKEND=XFORMERS
export WANDB_MODE=offline
export RAY_DEDUP_LOGS=1
export WORKING_DIR=/fsx/home/npatel/simpleRL-reason
export HDFS_DATA_PATH=/fsx/home/npatel/data/simplerl
export HDFS_MODEL_PATH=/fsx/models
export HDFS_CHECKPOINT_PATH=/fsx/home/npatel/ckpt

nodes=($(scontrol show hostnames $SLURM_JOB_NODELIST))
HEAD_IP=$(srun -N1 -n1 -w ${nodes[0]} hostname -I | awk '{print $1}')
echo "job $SLURM_JOB_ID nodes ${nodes[@]} head $HEAD_IP"
srun -N1 -n1 -w ${nodes[0]} ray start --head --node-ip-address=$HEAD_IP --port=6379 --num-gpus=8 --block &
sleep 20
srun -N1 -n1 -w ${nodes[1]} ray start --address=$HEAD_IP:6379 --num-gpus=8 --block &
sleep 20

cd $WORKING_DIR
srun --overlap -N1 -n1 -w ${nodes[0]} ray job submit --address=http://$HEAD_IP:8265 \
  --entrypoint-num-cpus=1 \
  --runtime-env-json='{"working_dir": "'${WORKING_DIR}'", "env_vars": {"http_proxy": "", "https_proxy": ""}}' \
  -- python -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files=$HDFS_DATA_PATH/simplelr_qwen_level3to5/train.parquet \
  data.val_files=$HDFS_DATA_PATH/simplelr_qwen_level3to5/test.parquet \
  data.train_batch_size=512 \
  data.val_batch_size=500 \
  data.max_prompt_length=1024 \
  data.max_response_length=4096 \
  actor_rollout_ref.model.path=$HDFS_MODEL_PATH/Qwen2.5-14B \
  actor_rollout_ref.actor.optim.lr=5e-7 \
  actor_rollout_ref.model.use_remove_padding=True \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.0001 \
  actor_rollout_ref.actor.entropy_coeff=0.001 \
  actor_rollout_ref.actor.clip_ratio=0.2 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl \
  actor_rollout_ref.actor.fsdp_config.param_offload=False \
  actor_rollout_ref.actor.fsdp_config.grad_offload=False \
  actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.temperature=1.0 \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=2 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.rollout.free_cache_engine=True \
  actor_rollout_ref.rollout.enforce_eager=True \
  actor_rollout_ref.rollout.swap_space=40 \
  actor_rollout_ref.rollout.enable_chunked_prefill=False \
  actor_rollout_ref.rollout.max_num_batched_tokens=6120 \
  actor_rollout_ref.rollout.micro_rollout_batch_size=512 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size=160 \
  actor_rollout_ref.ref.log_prob_micro_batch_size=160 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  algorithm.kl_ctrl.kl_coef=0.001 \
  critic.ppo_micro_batch_size_per_gpu=4 \
  trainer.critic_warmup=0 \
  trainer.logger=['console','wandb'] \
  trainer.project_name=zoo \
  trainer.experiment_name=qwen2.5-14b-l3to5 \
  trainer.n_gpus_per_node=8 \
  trainer.nnodes=2 \
  trainer.remove_clip=False \
  trainer.remove_previous_ckpt=False \
  trainer.save_freq=20 \
  trainer.test_freq=10 \
  trainer.default_local_dir=$HDFS_CHECKPOINT_PATH/qwen2.5-14b-l3to5 \
  trainer.total_epochs=20
