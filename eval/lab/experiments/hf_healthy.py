import tiny
from datasets import Dataset
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

tok = tiny.tokenizer()
text = [f"question : what is {i % 60} + one ? answer {i % 60 + 1}" for i in range(400)]
ds = Dataset.from_dict({"text": text}).map(lambda b: tok(b["text"]), batched=True, remove_columns=["text"]).train_test_split(0.1)
args = TrainingArguments(
    "out",
    per_device_train_batch_size=8,
    max_steps=60,
    logging_steps=10,
    eval_strategy="steps",
    eval_steps=20,
    save_steps=30,
    use_cpu=True,
    report_to=[],
)
trainer = Trainer(
    model=tiny.model(),
    args=args,
    train_dataset=ds["train"],
    eval_dataset=ds["test"],
    data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
)
trainer.train()
trainer.save_model("out/final")
print("done, eval:", trainer.evaluate())
