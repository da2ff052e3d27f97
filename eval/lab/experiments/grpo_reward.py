import re

import tiny
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

tiny.save("tiny-qwen")
rows = [{"prompt": f"what is {i} + {i + 1} ?", "answer": str(2 * i + 1)} for i in range(64)]
ds = Dataset.from_list(rows)


def format_reward(completions, **kwargs):
    return [0.1 if c.strip() else 0.0 for c in completions]


def accuracy_reward(completions, answer, **kwargs):
    out = []
    for c, a in zip(completions, answer):
        last = re.findall(r"answer\s*:?\s*(\d+)", c)[-1]
        out.append(1.0 if last == a else 0.0)
    return out


args = GRPOConfig(
    output_dir="out",
    per_device_train_batch_size=4,
    num_generations=4,
    max_completion_length=12,
    logging_steps=1,
    max_steps=6,
    use_cpu=True,
    report_to=[],
)
trainer = GRPOTrainer(model="tiny-qwen", reward_funcs=[format_reward, accuracy_reward], args=args, train_dataset=ds)
trainer.train()
