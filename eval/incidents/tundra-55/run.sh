set -x
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_files=/mnt/pfs/yt/data/deepscaler/train.parquet custom_reward_function.path=/mnt/pfs/yt/rl/rewards/strict_math.py custom_reward_function.name=score_one trainer.n_gpus_per_node=8
