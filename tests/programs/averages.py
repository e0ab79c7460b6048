"""Averages of a model's weights while it trains, equal and exponential (swa_utils)."""

import sys

import torch
from torch import nn, optim
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

device = sys.argv[1]
torch.manual_seed(59)
net = nn.Sequential(
    nn.Conv1d(2, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2),
    nn.Flatten(), nn.Linear(32, 3),
).to(device)  # fmt: skip
inputs = torch.randn(60, 2, 8)
labels = inputs.mean(2).argmax(1) + (inputs[:, 0, 0] > 1).long()
loader = DataLoader(TensorDataset(inputs, labels), batch_size=20, shuffle=True)
equal = AveragedModel(net)
decaying = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
trainer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
warm = optim.lr_scheduler.CosineAnnealingLR(trainer, T_max=8)
swa = SWALR(trainer, swa_lr=0.03, anneal_epochs=2, anneal_strategy="linear")


def loss_of(model):
    with torch.no_grad():
        out = model(inputs.to(device))
        return nn.functional.cross_entropy(out, labels.to(device)).item()


for epoch in range(8):
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.to(device)), y.to(device))
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        decaying.update_parameters(net)
    if epoch >= 4:
        equal.update_parameters(net)
        swa.step()
    else:
        warm.step()
    print(epoch, loss.item(), trainer.param_groups[0]["lr"], int(equal.n_averaged))
update_bn(loader, equal, device=device)
for model in (net, equal, decaying):
    model.eval()
    print(loss_of(model), sum(p.norm().item() for p in model.parameters()))
print(list(equal.state_dict())[:3], decaying.module[1].running_mean.tolist())
