import os
import sys
import time

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
os.makedirs("data", exist_ok=True)
if rank == 0:
    for i in range(7):
        torch.save(torch.randint(0, 50257, (256, 128)), f"data/part-{i:05d}.pt")
dist.barrier()
emb = torch.nn.Embedding(50257, 32)
print(f"[{time.strftime('%X')}] rank {rank}/{dist.get_world_size()} ready, torch {torch.__version__}", file=sys.stderr)
for shard in range(rank, 8, dist.get_world_size()):
    ids = torch.load(f"data/part-{shard:05d}.pt")
    for step in range(4):
        loss = emb(ids[step * 64 : (step + 1) * 64]).pow(2).mean()
        dist.all_reduce(loss)
        if rank == 0:
            print(f"[{time.strftime('%X')}] shard {shard} step {step} loss {loss.item():.4f}", file=sys.stderr)
        time.sleep(0.1)
dist.barrier()
