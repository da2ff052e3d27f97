#!/bin/bash
# 容器入口: docker compose up trainer   (openrlhf==0.5.9.post1 deepspeed==0.16.3 torch==2.5.1 transformers==4.48.3)
set -u
say() { echo "【$(date '+%m-%d %H:%M:%S')】$*"; }
say "开始训练: 14B PPO, zero3, 8 卡"
# 日志 20 分钟没动静就把每个 rank 的栈打出来(一次)
( while sleep 60; do
    age=$(( $(date +%s) - $(stat -c %Y /logs/train.log) ))
    if [ $age -gt 1200 ]; then
      say "日志已 ${age} 秒没有更新,打印各 rank 调用栈"
      nvidia-smi --query-gpu=index,utilization.gpu,power.draw,memory.used --format=csv,noheader
      for p in $(pgrep -f 'openrlhf.cli.train_ppo --pretrain' | sort -n | tail -8); do py-spy dump --pid $p | head -24; done
      break
    fi
  done ) & DOG=$!

deepspeed --module openrlhf.cli.train_ppo \
   --pretrain /models/Qwen2.5-14B-Instruct \
   --reward_pretrain /models/qwen2.5-14b-rm-medqa \
   --save_path /ckpt/medqa-ppo-14b \
   --ckpt_path /ckpt/medqa-ppo-14b/ckpt \
   --save_steps -1 --logging_steps 1 --eval_steps -1 \
   --micro_train_batch_size 1 --train_batch_size 64 \
   --micro_rollout_batch_size 2 --rollout_batch_size 128 \
   --max_epochs 1 --num_episodes 1 \
   --prompt_max_len 1024 --generate_max_len 1024 \
   --zero_stage 3 --bf16 --adam_offload --gradient_checkpointing --flash_attn \
   --actor_learning_rate 5e-7 --critic_learning_rate 9e-6 --init_kl_coef 0.01 \
   --prompt_data /data/medqa_prompts.jsonl --input_key question --apply_chat_template \
   --max_samples 20000 --normalize_reward 2>&1 | tee /logs/train.log
RC=${PIPESTATUS[0]}
kill $DOG 2>/dev/null
say "训练结束, 退出码=$RC"
exit $RC
