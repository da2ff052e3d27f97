import tiny
from datasets import Dataset
from transformers import Trainer, TrainingArguments

tok = tiny.tokenizer()
ds = Dataset.from_dict({"question": ["what is one and two ?"] * 50, "response": ["answer three"] * 50})
ds = ds.map(lambda b: {"tokens": tok(b["question"])["input_ids"], "targets": tok(b["response"])["input_ids"]}, batched=True)
args = TrainingArguments("out", per_device_train_batch_size=4, max_steps=10, use_cpu=True, report_to=[])
Trainer(model=tiny.model(), args=args, train_dataset=ds).train()
