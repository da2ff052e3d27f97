import time
import traceback
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
net = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
model = DDP(net)
opt = torch.optim.SGD(model.parameters(), lr=0.02)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.05, total_steps=60)
scale = 65536.0


def fetch_shard(i):
    for attempt in range(3):
        try:
            if i == 2 and attempt == 0:
                raise ConnectionResetError(104, "Connection reset by peer")
            return torch.randn(64, 32)
        except OSError as e:
            print(f"WARNING [rank {rank}] shard {i} attempt {attempt + 1}/3 failed: {e!r}; retrying in 1s", flush=True)
            if rank == 0:
                traceback.print_exc()
            time.sleep(1)
    raise RuntimeError("unreachable")


warnings.warn("`use_reentrant` will default to False in a future version", FutureWarning)
for step in range(60):
    x = fetch_shard(step // 10)
    loss = (model(x).squeeze() - x.sum(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    if step == 7:
        scale /= 2
        if rank == 0:
            print(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {scale}", flush=True)
    else:
        opt.step()
    sched.step()
    if rank == 0 and step % 3 == 0:
        print(f" iteration {step:8d}/      60 | lm loss: {loss.item():.6E} | loss scale: {scale:.1f} | grad norm: 1.{step:03d} |", flush=True)
if rank == 0:
    torch.save(model.module.state_dict(), "final.pt")
    print("  successfully saved checkpoint at iteration      60 to final.pt", flush=True)
dist.barrier()
dist.destroy_process_group()
