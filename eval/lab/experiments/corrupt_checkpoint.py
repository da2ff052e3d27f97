"""Train a little, get preempted, resume: the usual loop."""

import os
import signal
import sys

import torch

CKPT = "ckpt/last.pt"
os.makedirs("ckpt", exist_ok=True)
model = torch.nn.Linear(2048, 1024)
opt = torch.optim.AdamW(model.parameters())
start = 0
if os.path.exists(CKPT):
    print(f"found {CKPT} ({os.path.getsize(CKPT) / 2**20:.1f} MiB), resuming")
    state = torch.load(CKPT, map_location="cpu")
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    start = state["step"]
for step in range(start, start + 5):
    loss = model(torch.randn(8, 2048)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}")


class Cut:
    """Stand for the node's power: the file system stops taking bytes half-way through the save."""

    def __init__(self, f, limit):
        self.f, self.left = f, limit

    def write(self, b):
        n = len(bytes(b))
        if n > self.left:
            self.f.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= n
        return self.f.write(b)

    def flush(self):
        self.f.flush()


print("saving checkpoint ...", file=sys.stderr)
with open(CKPT, "wb") as f:
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": start + 5}, Cut(f, 14_000_000))
