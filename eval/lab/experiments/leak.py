import torch

policy = torch.nn.Linear(4096, 64)
opt = torch.optim.Adam(policy.parameters(), lr=1e-4)
history = []


def rss_gib():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 2**20


for step in range(2000):
    obs = torch.randn(1024, 4096)
    logits = policy(obs)
    loss = logits.logsumexp(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss + 0 * obs.sum(dim=1).mean() + 0 * (policy(obs).mean()))
    if step % 5 == 0:
        print(f"step={step} perf/cpu_memory_used_gb={rss_gib():.3f} actor/loss={loss.item():.4f} timing_s/step=0.03")
