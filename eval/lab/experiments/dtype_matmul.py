import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r: int = 8):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(r, base.in_features) * 0.01)
        self.b = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + (x @ self.a.T) @ self.b.T


torch.manual_seed(0)
base = nn.Sequential(nn.Linear(256, 1024), nn.SiLU(), nn.Linear(1024, 256)).to(torch.bfloat16)
for i in (0, 2):
    base[i] = LoRALinear(base[i])
n = sum(p.numel() for p in (base[0].a, base[0].b, base[2].a, base[2].b))
print(f"trainable params: {n:,} || all params: {sum(p.numel() for p in base.parameters()):,}")
opt = torch.optim.AdamW([p for k, p in base.named_parameters() if k.endswith((".a", ".b"))], lr=2e-4)
for step in range(10):
    x = torch.randn(4, 256, dtype=torch.bfloat16)
    loss = base(x).float().pow(2).mean()
    loss.backward()
    opt.step()
    print(step, loss.item())
