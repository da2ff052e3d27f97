import time

import torch

f = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
print("eager", f(torch.randn(8, 64)).std().item())
g = torch.compile(f)
t = time.time()
print("compiled", g(torch.randn(8, 64)).std().item(), f"warm-up {time.time() - t:.1f}s")
