"""`strategy="ddp"` on two simulated GPUs, by `launch`: training, `sync_dist`, equal weights"""

import pytorch_lightning
import torch


class Net(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


torch.manual_seed(0)
x = torch.randn(16, 3)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
options = {"accelerator": "gpu", "devices": 2, "strategy": "ddp"}
options |= {"logger": False, "enable_checkpointing": False, "max_epochs": 9}
options |= {"enable_progress_bar": False, "enable_model_summary": False}
trainer = pytorch_lightning.Trainer(**options)
net = Net()
trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=4))
said = net.layer.weight.sum().item(), trainer.callback_metrics["loss"].item()
every = [None, None]
torch.distributed.all_gather_object(every, said)
assert every[0] == every[1], every
if trainer.is_global_zero:
    print(trainer.global_step, trainer.callback_metrics["loss"].item() < 0.05)
