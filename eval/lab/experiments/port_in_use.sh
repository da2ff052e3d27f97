#!/usr/bin/env bash
set -e
cd "$(dirname "$0")"
MASTER_PORT=${MASTER_PORT:-29500}
echo "== baseline run =="
torchrun --nproc_per_node 1 --master_port $MASTER_PORT wait_job.py &
sleep 9
echo "== ablation: no kl =="
torchrun --nproc_per_node 2 --master_port $MASTER_PORT check.py
