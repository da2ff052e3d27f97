import torch
from transformers import GPT2Config, GPT2LMHeadModel

VOCAB = 1000
SPECIAL = {"<think>": 1000, "</think>": 1001, "<pad>": 1002}

model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_positions=256, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
print(f"model vocab {model.config.vocab_size}, tokenizer vocab {VOCAB + len(SPECIAL)} (added {list(SPECIAL)})")
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(3)
for step in range(20):
    ids = torch.randint(0, VOCAB, (2, 64))
    if step >= 4:
        ids[:, -8:] = SPECIAL["<pad>"]
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    opt.step()
    opt.zero_grad()
    print(f"step {step}: loss {out.loss.item():.4f} max id {int(ids.max())}")
