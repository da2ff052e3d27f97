#!/bin/bash
cd /root/proj/EasyR1
export PYTHONUNBUFFERED=1
MODEL_PATH=/root/models/Qwen2.5-VL-7B-Instruct
pip list 2>/dev/null | grep -iE "^(verl|vllm|torch|ray|transformers) "
free -g | head -2
set -x
python3 -m verl.trainer.main \
    config=examples/config.yaml \
    data.train_files=/root/data/longdoc/train.parquet \
    data.val_files=/root/data/longdoc/val.parquet \
    data.max_prompt_length=22000 \
    data.max_response_length=2048 \
    data.rollout_batch_size=256 \
    data.max_pixels=1605632 \
    worker.actor.model.model_path=${MODEL_PATH} \
    worker.actor.global_batch_size=64 \
    worker.actor.micro_batch_size_per_device_for_update=1 \
    worker.actor.micro_batch_size_per_device_for_experience=2 \
    worker.actor.offload.offload_params=true \
    worker.actor.offload.offload_optimizer=true \
    worker.rollout.tensor_parallel_size=1 \
    worker.rollout.gpu_memory_utilization=0.55 \
    worker.rollout.limit_images=16 \
    worker.rollout.max_num_batched_tokens=24576 \
    trainer.experiment_name=qwen2_5_vl_7b_longdoc \
    trainer.logger=[console] \
    trainer.val_before_train=false \
    trainer.n_gpus_per_node=8
