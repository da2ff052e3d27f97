#!/bin/bash
set -x
export PYTHONUNBUFFERED=1
export RAY_memory_monitor_refresh_ms=0
export VLLM_WORKER_MULTIPROC_METHOD=spawn

python3 -m verl.trainer.main config=config.yaml
