import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

rank = int(os.environ["RANK"])
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
torch.manual_seed(0)
model = DDP(nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)))
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)

for step in range(100):
    x = torch.randn(32, 64)
    loss = (model(x) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 0:
        if rank == 0:
            print(f"[rank0] step {step} loss {loss.item():.5f}", flush=True)
    if step == 30:
        stats = torch.tensor([loss.item(), float(step)])
        if rank == 0:
            dist.broadcast(stats, src=0)
        else:
            dist.all_reduce(stats)
    time.sleep(0.02)
dist.destroy_process_group()
