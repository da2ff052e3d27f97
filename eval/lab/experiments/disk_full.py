import os
import shutil

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(6)])
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
os.makedirs("outputs", exist_ok=True)
for step in range(1, 601):
    if step % 10 == 0 or step == 1:
        loss = model(torch.randn(4, 1024)).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        print(f"{step}/600 | loss {loss.item():.6f} | lr 1e-4 | disk {shutil.disk_usage('.').used >> 20}M used")
    if step % 40 == 0:
        path = f"outputs/step_{step}.pt"
        torch.save({"model": model.state_dict(), "optimizer": opt.state_dict(), "step": step}, path)
        print(f"checkpoint -> {path}")
