import os
import time

import requests

URL = os.environ.get("JUDGE_URL", "http://127.0.0.1:8000/v1/chat/completions")


def judge(prompt, answer):
    body = {"model": "judge-7b", "messages": [{"role": "user", "content": f"Q: {prompt}\nA: {answer}\nScore 0-1."}], "max_tokens": 4}
    for attempt in range(4):
        try:
            r = requests.post(URL, json=body, timeout=10)
            r.raise_for_status()
            return float(r.json()["choices"][0]["message"]["content"])
        except requests.exceptions.ConnectionError as e:
            print(f"[reward] judge call failed ({attempt + 1}/4): {type(e).__name__}")
            if attempt == 3:
                raise
            time.sleep(2**attempt / 2)


for step in range(3):
    rewards = [judge("1+1", str(a)) for a in (1, 2, 3)]
    print(f"step {step} rewards {rewards}")
