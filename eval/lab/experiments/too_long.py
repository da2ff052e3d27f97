import torch
from transformers import GPT2Config, GPT2LMHeadModel

MAX_PROMPT, MAX_RESPONSE = 192, 128
model = GPT2LMHeadModel(GPT2Config(vocab_size=500, n_positions=256, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1))
torch.manual_seed(0)
lengths = [40, 90, 120, 130, 192]
for i, n in enumerate(lengths):
    prompt = torch.randint(2, 500, (2, n))
    out = torch.cat([prompt, torch.randint(2, 500, (2, MAX_RESPONSE))], dim=1)
    print(f"batch {i}: prompt {n} + response {MAX_RESPONSE} = {out.shape[1]} tokens, model positions {model.config.n_positions}")
    logp = model(out).logits.log_softmax(-1)
    print(f"batch {i}: mean logp {logp.mean().item():.3f}")
