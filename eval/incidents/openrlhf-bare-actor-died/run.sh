#!/bin/bash
ray job submit --address="http://127.0.0.1:8265" -- python3 -m openrlhf.cli.train_ppo_ray --zero_stage 3 --vllm_num_engines 4 --pretrain /models/base
