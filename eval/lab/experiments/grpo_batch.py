import tiny
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

tiny.save("tiny-qwen")
ds = Dataset.from_list([{"prompt": f"what is {i} + {i + 1} ?", "answer": str(2 * i + 1)} for i in range(24)])


def correct(completions, answer, **kwargs):
    return [float(a in c.split()) for c, a in zip(completions, answer)]


args = GRPOConfig(
    output_dir="out",
    per_device_train_batch_size=4,
    gradient_accumulation_steps=3,
    num_generations=8,
    max_completion_length=16,
    logging_steps=1,
    use_cpu=True,
    report_to=[],
)
print(f"train rows {len(ds)}, generations {args.num_generations}")
GRPOTrainer(model="tiny-qwen", reward_funcs=correct, args=args, train_dataset=ds).train()
