import json
import random

import ray

with open("gsm_mix.jsonl", "w") as f:
    for i in range(4000):
        row = {"prompt": f"Q{i}: what is {i} + {i + 1}?", "answer": str(2 * i + 1), "source": "gsm"}
        if 2500 <= i < 3000:
            row = {"question": row["prompt"], "solution": row["answer"], "source": "math"}
        f.write(json.dumps(row) + "\n")

ray.init(num_cpus=2, include_dashboard=False)


def to_chat(row):
    return [{"role": "user", "content": row["prompt"]}], row["answer"]


@ray.remote
def preprocess(lines, start):
    out = []
    for line in lines:
        out.append(to_chat(json.loads(line)))
    print(f"chunk@{start}: {len(out)} rows")
    return out


@ray.remote
def shuffle(*chunks):
    rows = [r for c in chunks for r in c]
    random.shuffle(rows)
    return rows


lines = open("gsm_mix.jsonl").read().splitlines()
chunks = [preprocess.remote(lines[s : s + 500], s) for s in range(0, len(lines), 500)]
train = ray.get(shuffle.remote(*chunks))
print("train rows:", len(train))
