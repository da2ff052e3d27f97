#!/usr/bin/env bash
export RAY_DEDUP_LOGS=0
( sleep 14; kill -9 "$(ps -eo pid,args | awk '/ray::PolicyWorker/ && !/awk/ {print $1; exit}')" ) >/dev/null 2>&1 &
python train_grpo.py --rollout-n 8 --steps 400
