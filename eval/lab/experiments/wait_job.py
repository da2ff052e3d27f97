import time

import torch.distributed as dist

dist.init_process_group("gloo")
for epoch in range(60):
    print(f"baseline epoch {epoch} reward {0.31 + epoch / 400:.3f}", flush=True)
    time.sleep(1)
