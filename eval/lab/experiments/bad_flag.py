import argparse

p = argparse.ArgumentParser(description="SFT on a single node")
p.add_argument("--model_name_or_path", required=True)
p.add_argument("--per_device_train_batch_size", type=int, default=1)
p.add_argument("--learning_rate", type=float, default=1e-5)
p.add_argument("--lr_scheduler", choices=["cosine", "linear", "constant"], default="cosine")
p.add_argument("--bf16", action="store_true")
args = p.parse_args()
print(vars(args))
