import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(4) * dist.get_rank()
dist.all_reduce(x)
print(f"rank {dist.get_rank()}: sanity check {x.tolist()}")
dist.destroy_process_group()
