import torch
import tiny
from accelerate import Accelerator

acc = Accelerator(cpu=True)
model = tiny.model(vocab_size=128)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randint(0, 128, (64, 32)))
model, opt, dl = acc.prepare(model, opt, torch.utils.data.DataLoader(data, batch_size=4))
acc.print("processes", acc.num_processes, "batches", len(dl))
for i, (ids,) in enumerate(dl):
    loss = model(input_ids=ids, labels=ids).loss
    acc.backward(loss)
    opt.step()
    opt.zero_grad()
    if i % 2 == 0:
        acc.print(f"step {i} loss {loss.item():.4f}")
    if i == 4:
        extra = model.generate(ids[:1, :4], max_new_tokens=4) if acc.is_main_process else None
acc.wait_for_everyone()
