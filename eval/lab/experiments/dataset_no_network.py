from datasets import load_dataset

print("downloading train split")
ds = load_dataset("openai/gsm8k", "main", split="train")
print(ds)
