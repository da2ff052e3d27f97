#!/bin/bash
# node0 10.28.4.31 (this script), node1 10.28.4.32; each 8x A100-SXM4-80GB, 503G RAM, docker --shm-size=200g
# node0: RAY_memory_usage_threshold=0.99 ray start --head --port=6379 --dashboard-host=0.0.0.0
# node1: RAY_memory_usage_threshold=0.99 ray start --address=10.28.4.31:6379
set -x
export PYTHONUNBUFFERED=1
export NCCL_SOCKET_IFNAME=eth0
export WANDB_MODE=offline

python3 -m verl.trainer.main config=config.yaml 2>&1 | tee train_docvqa_mp.log
