import tiny
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

tiny.save("tiny-qwen")
ds = Dataset.from_list([{"instruction": f"what is {i} + 1 ?", "output": f"answer {i + 1}"} for i in range(100)])
print(ds)
cfg = SFTConfig(output_dir="out", dataset_text_field="text", max_length=64, per_device_train_batch_size=2, max_steps=5, use_cpu=True, report_to=[])
SFTTrainer(model="tiny-qwen", args=cfg, train_dataset=ds).train()
