import argparse

import torch
from torch import nn


def build(vocab, hidden):
    return nn.ModuleDict(
        {
            "embed_tokens": nn.Embedding(vocab, hidden),
            "block": nn.TransformerEncoderLayer(hidden, 4, hidden * 4, batch_first=True),
            "lm_head": nn.Linear(hidden, vocab, bias=False),
        }
    )


parser = argparse.ArgumentParser()
parser.add_argument("--vocab", type=int, default=32000)
parser.add_argument("--hidden", type=int, default=128)
parser.add_argument("--resume")
parser.add_argument("--save")
args = parser.parse_args()
print(args)
model = build(args.vocab, args.hidden)
print(f"params: {sum(p.numel() for p in model.parameters()) / 1e6:.2f}M")
if args.resume:
    print(f"=> resuming from {args.resume}")
    model.load_state_dict(torch.load(args.resume)["model"])
for i in range(3):
    x = torch.randint(0, args.vocab, (2, 16))
    loss = model["lm_head"](model["block"](model["embed_tokens"](x))).logsumexp(-1).mean()
    print(f"iter {i} loss {loss.item():.4f}")
if args.save:
    torch.save({"model": model.state_dict(), "iter": 3}, args.save)
    print("saved", args.save)
