import logging
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
logging.basicConfig(level=logging.INFO, format=f"%(asctime)s | rank {rank} | %(message)s")
log = logging.getLogger()
dist.init_process_group("gloo", timeout=timedelta(seconds=25))
w = torch.zeros(1024)
for step in range(6):
    g = torch.randn(1024)
    dist.all_reduce(g)
    w -= 1e-3 * g
    log.info("step %d |w| %.5f", step, w.norm())
log.info("epoch 0 finished, running pass@1 on the held-out set")
if rank == 0:
    for i in range(12):
        time.sleep(5)
        log.info("eval: %d/12 shards scored, %.1f s/shard", i + 1, 5.0)
    torch.save(w, "best.pt")
dist.barrier()
log.info("epoch 1")
