#!/bin/bash
#SBATCH --time=00:00:16
# the queue's limit, stood in for by timeout(1)
echo "[$(date '+%T')] srun: walltime 16 s"
timeout --signal=TERM --verbose 16 torchrun --standalone --nproc_per_node 2 train.py
rc=$?
echo "[$(date '+%T')] step finished with $rc"
exit $rc
