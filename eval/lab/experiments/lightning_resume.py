import lightning as L
import torch


class Net(L.LightningModule):
    def __init__(self, hidden=64):
        super().__init__()
        self.enc = torch.nn.Linear(32, hidden)
        self.head = torch.nn.Linear(hidden, 2)

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.head(self.enc(x).relu()), y)
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


data = torch.utils.data.TensorDataset(torch.randn(512, 32), torch.randint(0, 2, (512,)))
dl = torch.utils.data.DataLoader(data, batch_size=32)
L.seed_everything(1)
for run, hidden in enumerate((64, 64, 96)):
    trainer = L.Trainer(accelerator="cpu", max_epochs=run + 1, log_every_n_steps=4, default_root_dir="runs")
    trainer.fit(Net(hidden), dl, ckpt_path="runs/last.ckpt" if run else None, weights_only=False)
    trainer.save_checkpoint("runs/last.ckpt")
