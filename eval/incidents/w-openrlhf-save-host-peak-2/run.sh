#!/bin/bash
#SBATCH -p a800
#SBATCH -A nlp-fin
#SBATCH -J ppo-llama2-13b
#SBATCH -N 2
#SBATCH -t 72:00:00
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=96
#SBATCH --mem=360G
#SBATCH --overcommit
#SBATCH --output=train_ppo_13b_%j.out

module load singularity/3.11.4 slurm-tools
IMG=/data/nlp-fin/images/openrlhf_0.2.8_pt2312.sif
PROJ=/data/nlp-fin/chenyw/OpenRLHF
SING="singularity exec --nv -B /data:/data -B $PROJ:/openrlhf --pwd /openrlhf $IMG"
echo "$(date '+%Y-%m-%d %H:%M:%S') Job ${SLURM_JOB_ID} started ..."

nodes_array=( $(scontrol show hostnames "$SLURM_JOB_NODELIST") )
node_1=${nodes_array[0]}
ip=$(srun -N1 -n1 -w $node_1 hostname -i)
port=6379
ip_head=$ip:$port
echo "IP Head: $ip_head"

echo "STARTING HEAD at $node_1"
srun --overlap -N1 -n1 -w "$node_1" $SING ray start --head --node-ip-address=$ip --port=$port --num-gpus=8 --num-cpus=96 --block &
sleep 15
for ((i = 1; i < SLURM_JOB_NUM_NODES; i++)); do
  node_i=${nodes_array[$i]}
  echo "STARTING WORKER $i at $node_i"
  srun --overlap -N1 -n1 -w "$node_i" $SING ray start --address $ip_head --num-gpus=8 --num-cpus=96 --block &
  sleep 1
done
sleep 30

srun --overlap -N1 -n1 -w "$node_1" $SING ray job submit --address=http://localhost:8265 \
    --runtime-env-json='{"working_dir": "/openrlhf", "excludes": ["/ckpt/", "/.git/"]}' \
    -- python3 examples/train_ppo_ray.py \
    --actor_num_nodes 1 \
    --actor_num_gpus_per_node 4 \
    --critic_num_nodes 1 \
    --critic_num_gpus_per_node 4 \
    --ref_num_nodes 1 \
    --ref_num_gpus_per_node 2 \
    --reward_num_nodes 1 \
    --reward_num_gpus_per_node 2 \
    --vllm_num_engines 4 \
    --vllm_tensor_parallel_size 1 \
    --pretrain /data/models/Llama-2-13b-sft-fin \
    --reward_pretrain /data/models/Llama-2-13b-rm-fin \
    --save_path /data/nlp-fin/chenyw/ckpt/ppo_13b_fin \
    --micro_train_batch_size 2 \
    --train_batch_size 128 \
    --micro_rollout_batch_size 4 \
    --rollout_batch_size 512 \
    --num_episodes 1 \
    --max_epochs 1 \
    --max_samples 2048 \
    --prompt_max_len 1024 \
    --generate_max_len 512 \
    --zero_stage 2 \
    --bf16 \
    --adam_offload \
    --actor_learning_rate 5e-7 \
    --critic_learning_rate 9e-6 \
    --init_kl_coef 0.01 \
    --prompt_data /data/nlp-fin/chenyw/data/fin_prompts \
    --prompt_data_probs 1.0 \
    --input_key prompt \
    --normalize_reward \
    --flash_attn \
    --gradient_checkpointing

echo "$(date '+%Y-%m-%d %H:%M:%S') Job ${SLURM_JOB_ID} stopped ..."
