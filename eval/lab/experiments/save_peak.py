import io
import resource
import time

import torch

net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(24)])
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)


def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


for step in range(1, 21):
    loss = net(torch.randn(2, 2048)).pow(2).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(f"step {step:>3} loss {loss.item():.4e} max_rss {rss():.0f} MiB")
print(f"[{time.strftime('%H:%M:%S')}] gathering full state dict on cpu (rank0_only=True)")
full = {k: v.detach().clone() for k, v in net.state_dict().items()}
optim = {k: {n: t.clone() for n, t in s.items()} for k, s in opt.state_dict()["state"].items()}
print(f"[{time.strftime('%H:%M:%S')}] serializing, max_rss {rss():.0f} MiB")
buffer = io.BytesIO()
torch.save({"model": full, "optim": optim}, buffer)
open("full.pt", "wb").write(buffer.getvalue())
print("saved full.pt")
