import os

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dp = int(os.environ.get("DP", 2))
tp = int(os.environ.get("TP", 2))
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    print(f"world={dist.get_world_size()} requested dp={dp} tp={tp}")
mesh = init_device_mesh("cpu", (dp, tp), mesh_dim_names=("dp", "tp"))
print(mesh)
