set -x
python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 --ref_num_gpus_per_node 1 \
   --actor_num_nodes 1 --actor_num_gpus_per_node 2 \
   --vllm_num_engines 4 --vllm_tensor_parallel_size 1 \
   --vllm_gpu_memory_utilization 0.5 --vllm_sync_backend nccl \
   --pretrain /models/Qwen2.5-7B --remote_rm_url http://10.8.0.40:5000/score \
   --micro_train_batch_size 4 --train_batch_size 256 \
   --zero_stage 2 --gradient_checkpointing --flash_attn \
   --prompt_data /data/mathmix --save_path /out/q7b
