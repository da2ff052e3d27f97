#!/bin/bash
# Qwen3-14B PPO 单机 8 卡 A100-80G   (kubeflow PyTorchJob 的 entrypoint)
set -u
export NCCL_DEBUG=WARN
export RAY_memory_monitor_refresh_ms=0     # 之前 ray 自己误杀,先关掉
SAVE=/cfs/ckpt/rlhf/qwen3-14b-ppo-v3

log() { echo "[$(date '+%F %T')] [启动脚本] $*"; }
# 后台看容器内存,anon 变化超过 10G 打一行
( last=0
  while sleep 8; do
    an=$(( $(awk '/^anon /{print $2}' /sys/fs/cgroup/memory.stat) / 1073741824 ))
    d=$(( an - last )); [ ${d#-} -lt 10 ] && continue
    last=$an
    echo "[$(date '+%F %T')] [内存] 已用 $(( $(cat /sys/fs/cgroup/memory.current) / 1073741824 ))G / 上限 $(( $(cat /sys/fs/cgroup/memory.max) / 1073741824 ))G,其中 anon ${an}G"
  done ) &
MON=$!

log "启动 ray"
ray start --head --node-ip-address 0.0.0.0 --num-gpus 8 --dashboard-host 0.0.0.0
log "提交任务"
ray job submit --address="http://127.0.0.1:8265" \
   --runtime-env-json='{"working_dir": "/workspace/OpenRLHF"}' \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --ref_num_nodes 1 --ref_num_gpus_per_node 4 \
   --reward_num_nodes 1 --reward_num_gpus_per_node 2 \
   --critic_num_nodes 1 --critic_num_gpus_per_node 2 \
   --actor_num_nodes 1 --actor_num_gpus_per_node 4 \
   --vllm_num_engines 2 --vllm_tensor_parallel_size 1 \
   --vllm_gpu_memory_utilization 0.85 \
   --colocate_actor_ref --colocate_critic_reward \
   --vllm_sync_backend nccl \
   --pretrain /cfs/models/qwen3-14b-sft-v7 \
   --reward_pretrain /cfs/models/qwen3-14b-rm-v2 \
   --save_path $SAVE --ckpt_path $SAVE/ckpt \
   --save_steps 1 --max_ckpt_num 2 --save_hf_ckpt --load_checkpoint \
   --micro_train_batch_size 4 --train_batch_size 128 \
   --micro_rollout_batch_size 8 --rollout_batch_size 1024 \
   --n_samples_per_prompt 1 --max_epochs 1 --num_episodes 1 \
   --prompt_max_len 1024 --generate_max_len 1024 --max_samples 60000 \
   --zero_stage 2 --bf16 --adam_offload --gradient_checkpointing \
   --actor_learning_rate 5e-7 --critic_learning_rate 9e-6 --init_kl_coef 0.01 \
   --prompt_data /cfs/data/ppo_prompt_60k.jsonl --input_key prompt --apply_chat_template \
   --normalize_reward --packing_samples --attn_implementation flash_attention_2 \
   --use_tensorboard $SAVE/tb
RC=$?
kill $MON
log "任务退出,返回码 $RC"
log "memory.events: $(tr '\n' ' ' < /sys/fs/cgroup/memory.events)"
exit $RC
