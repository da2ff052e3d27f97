import tiny
from transformers import AutoTokenizer

tiny.save("base-model", template=False)
tok = AutoTokenizer.from_pretrained("base-model")
data = [[{"role": "user", "content": f"what is {i} ?"}] for i in range(10)]
print("tokenizer:", type(tok).__name__, len(tok))
ids = [tok.apply_chat_template(m, add_generation_prompt=True) for m in data]
print(sum(map(len, ids)))
