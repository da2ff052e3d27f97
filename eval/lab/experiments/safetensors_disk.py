import tiny
from datasets import Dataset
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

tok = tiny.tokenizer()
ds = Dataset.from_dict({"text": ["what is the sum of one and two ?"] * 400}).map(lambda b: tok(b["text"]), batched=True, remove_columns=["text"])
args = TrainingArguments("out", per_device_train_batch_size=4, max_steps=80, logging_steps=5, save_steps=10, use_cpu=True, report_to=[])
Trainer(
    model=tiny.model(vocab_size=40000),
    args=args,
    train_dataset=ds,
    data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
).train()
