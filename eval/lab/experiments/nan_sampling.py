import torch
from torch import nn

torch.manual_seed(7)


class TinyLM(nn.Module):
    def __init__(self, v=128, d=64):
        super().__init__()
        self.emb = nn.Embedding(v, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.out = nn.Linear(d, v)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


lm = TinyLM()
opt = torch.optim.SGD(lm.parameters(), lr=60000.0, momentum=0.9)


@torch.no_grad()
def rollout(n=4, length=12):
    x = torch.zeros(n, 1, dtype=torch.long)
    for _ in range(length):
        probs = torch.softmax(lm(x)[:, -1] / 0.7, dim=-1)
        x = torch.cat([x, torch.multinomial(probs, 1)], dim=1)
    return x


for step in range(200):
    seqs = rollout()
    reward = (seqs == 5).float().sum(1)
    logits = lm(seqs[:, :-1])
    logp = torch.log_softmax(logits, -1).gather(-1, seqs[:, 1:, None]).squeeze(-1).sum(1)
    loss = -(logp * (reward - reward.mean())).mean() - 0.01 * torch.logsumexp(logits, -1).exp().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print({"step": step, "pg_loss": round(loss.item(), 4), "reward": reward.mean().item(), "kl": logp.mean().item()})
