import torch
from torch.utils.data import DataLoader, TensorDataset

ds = TensorDataset(torch.randn(4096, 32), torch.randn(4096, 1))
print("building loaders")
loaders = [DataLoader(ds, batch_size=64, num_workers=16, persistent_workers=True) for _ in range(4)]
model = torch.nn.Linear(32, 1)
iters = []
for k, dl in enumerate(loaders):
    print(f"task {k}: starting {dl.num_workers} workers")
    iters.append(iter(dl))
for step in range(64):
    for it in iters:
        x, y = next(it)
        (model(x) - y).pow(2).mean().backward()
print("ok")
