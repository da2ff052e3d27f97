import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 1024

    def __getitem__(self, i):
        return torch.randn(3, 448, 448), i % 10


net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(192, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
dl = DataLoader(Images(), batch_size=16, num_workers=2)
print(f"train: {len(dl.dataset)} images, {len(dl)} batches, workers={dl.num_workers}")
for it, (x, y) in enumerate(dl):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"epoch 0 it {it}/{len(dl)} loss {loss.item():.3f}")
