import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
w = torch.randn(256, 256)
for it in range(10_000):
    g = torch.randn_like(w)
    dist.all_reduce(g)
    w -= 0.01 * g
    if dist.get_rank() == 0 and it % 20 == 0:
        print(f"it {it} | norm {w.norm().item():.3f} | {20 / 0.5:.1f} it/s", flush=True)
    time.sleep(0.025)
