"""`Trainer` on the CPU: `fit()`, `validate()`, `test()`, `predict()`, checkpoints, early stopping, a CSV log, `sync_dist`"""

import csv
import tempfile
from pathlib import Path

import pytorch_lightning
import torch
from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor
from pytorch_lightning.loggers import CSVLogger


class Net(pytorch_lightning.LightningModule):
    def __init__(self, width=8):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(3, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
        )

    def loss(self, batch):
        return torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("train", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        self.log("loss", self.loss(batch), sync_dist=True)

    def test_step(self, batch, index):
        self.log_dict({"test": self.loss(batch)})

    def predict_step(self, batch, index):
        return self.layers(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), 0.05)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


pytorch_lightning.seed_everything(0, verbose=False)
x = torch.randn(16, 3)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
loader = torch.utils.data.DataLoader(data, batch_size=4)
with tempfile.TemporaryDirectory() as folder:
    trainer = pytorch_lightning.Trainer(
        accelerator="cpu",
        max_epochs=9,
        logger=CSVLogger(folder),
        default_root_dir=folder,
        callbacks=[EarlyStopping("loss", patience=2), LearningRateMonitor()],
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        gradient_clip_val=0.5,
        accumulate_grad_batches=2,
    )
    net = Net()
    trainer.fit(net, loader, loader)
    print(trainer.current_epoch, trainer.global_step)
    print({k: v.item() for k, v in sorted(trainer.callback_metrics.items())})
    path = trainer.checkpoint_callback.best_model_path
    again = Net.load_from_checkpoint(path)
    print(again.hparams, torch.equal(again.layers[0].weight, net.layers[0].weight))
    print(trainer.validate(again, loader, verbose=False))
    print(trainer.test(again, loader, verbose=False))
    print(torch.cat(trainer.predict(again, loader)).flatten()[:4])
    rows = [*csv.DictReader((Path(trainer.log_dir) / "metrics.csv").open())]
    print(len(rows), sorted(rows[0]))
