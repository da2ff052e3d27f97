#!/bin/bash
set -x
python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 --ref_num_gpus_per_node 4 \
   --actor_num_nodes 1 --actor_num_gpus_per_node 4 \
   --vllm_num_engines 2 --vllm_tensor_parallel_size 2 \
   --colocate_all_models --vllm_enable_sleep --deepspeed_enable_sleep \
   --vllm_gpu_memory_utilization 0.6 \
   --pretrain /models/fern-3b --remote_rm_url http://rm-0:5000/get_reward \
   --advantage_estimator group_norm --n_samples_per_prompt 8 --use_kl_loss --kl_estimator k3 \
   --micro_train_batch_size 4 --train_batch_size 128 \
   --micro_rollout_batch_size 8 --rollout_batch_size 64 \
   --prompt_max_len 1024 --generate_max_len 2048 \
   --zero_stage 3 --bf16 --packing_samples --gradient_checkpointing \
   --prompt_data /data/math_12k --input_key problem --apply_chat_template \
   --save_path /output/fern-grpo --save_steps 10 --ckpt_path /output/fern-ckpt
