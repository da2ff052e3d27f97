import json

from datasets import load_dataset

with open("train.jsonl", "w") as f:
    for i in range(3000):
        f.write(json.dumps({"prompt": f"q{i}", "completion": f"a{i}"}) + "\n")
    f.write('{"prompt": "q3000", "complet')
ds = load_dataset("json", data_files="train.jsonl", split="train", streaming=False)
print(ds)
