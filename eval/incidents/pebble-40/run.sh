set -x
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024 actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.max_num_batched_token=16384 actor_rollout_ref.rollout.gpu_memory_utilization=0.5 trainer.total_epochs=15
