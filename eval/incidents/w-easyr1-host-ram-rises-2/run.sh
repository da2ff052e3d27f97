#!/bin/bash
#SBATCH --job-name=docqa-grpo
#SBATCH --account=project_465
#SBATCH --partition=gpumedium
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=64
#SBATCH --gres=gpu:a100:4
#SBATCH --mem=440G
#SBATCH --time=24:00:00
#SBATCH --output=slurm-%j.out

module purge
module load gcc/13.1.0 cuda/12.4.1 python-data/3.11
module list
source /scratch/project_465/venvs/easyr1/bin/activate
cd /scratch/project_465/mhakala/EasyR1

export HF_HOME=/scratch/project_465/hf
export HF_HUB_OFFLINE=1
export OMP_NUM_THREADS=8
export GLOO_SOCKET_IFNAME=ib0
export NCCL_SOCKET_IFNAME=ib0
export RAY_TMPDIR=/tmp/ray_$SLURM_JOB_ID
export TENSORBOARD_DIR=/scratch/project_465/mhakala/tb/$SLURM_JOB_ID

mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
HEAD=${NODES[0]}
HEAD_IP=$(srun --overlap -N1 -n1 -w "$HEAD" bash -c "ip -4 -o addr show ib0 | awk '{print \$4}' | cut -d/ -f1")
echo "[$(date +%T)] nodes: ${NODES[*]}  head: $HEAD_IP"
srun --overlap -N1 -n1 -w "$HEAD" bash -c "nvidia-smi --query-gpu=index,name,memory.total --format=csv; free -g"

srun --overlap -N1 -n1 -w "$HEAD" --cpus-per-task=64 --mem=440G \
  ray start --head --node-ip-address="$HEAD_IP" --port=6379 --num-cpus=64 --num-gpus=4 --block &
sleep 30
srun --overlap -N1 -n1 -w "${NODES[1]}" --cpus-per-task=64 --mem=440G \
  ray start --address="$HEAD_IP:6379" --node-ip-address="$(srun --overlap -N1 -n1 -w "${NODES[1]}" bash -c "ip -4 -o addr show ib0 | awk '{print \$4}' | cut -d/ -f1")" --num-cpus=64 --num-gpus=4 --block &
sleep 30

export RAY_ADDRESS="$HEAD_IP:6379"
python3 -u -m verl.trainer.main config=config.yaml
