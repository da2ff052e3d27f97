import pandas as pd
import tiny

tiny.save("models/tiny-qwen")
rows = [
    {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": f"what is {i} + one ?"}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": str(i + 1)},
        "extra_info": {"index": i, "split": "train"},
    }
    for i in range(256)
]
pd.DataFrame(rows).to_parquet("train.parquet")
pd.DataFrame(rows[:32]).to_parquet("test.parquet")
print("wrote train.parquet test.parquet models/tiny-qwen")
