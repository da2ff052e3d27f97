#!/bin/bash
set -x
export TOKENIZERS_PARALLELISM=false
torchrun --standalone --nproc_per_node 2 \
    sft.py \
    --model_name_or_path Qwen/Qwen2.5-0.5B \
    --per_device_train_batch_size 4 \
    --lr_scheduler_type cosine \
    --lr 2e-5 \
    --bf16
