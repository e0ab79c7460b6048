"""Training that stops, is saved, and goes on: the same numbers as without a stop."""

import io
import sys

import torch
from torch import nn, optim

device = sys.argv[1]


def begin():
    torch.manual_seed(29)
    net = nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)
    )
    net.to(device)
    trainer = optim.AdamW(net.parameters(), lr=0.02, amsgrad=True)
    warm = optim.lr_scheduler.LinearLR(trainer, 0.1, total_iters=3)
    fall = optim.lr_scheduler.CosineAnnealingLR(trainer, T_max=6)
    schedule = optim.lr_scheduler.SequentialLR(trainer, [warm, fall], milestones=[3])
    return net, trainer, schedule


def run(net, trainer, schedule, steps):
    for step in steps:
        x = torch.randn(20, 6, generator=torch.Generator().manual_seed(step)).to(device)
        loss = nn.functional.smooth_l1_loss(net(x), x.sum(1, keepdim=True).sin())
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        schedule.step()
        print(step, loss.item(), schedule.get_last_lr()[0])


parts = begin()
run(*parts, range(8))
whole = parts[0].state_dict()
parts = begin()
run(*parts, range(4))
file = io.BytesIO()
torch.save([part.state_dict() for part in parts], file)
file.seek(0)
again = begin()
for part, state in zip(again, torch.load(file, map_location=device), strict=True):
    part.load_state_dict(state)
run(*again, range(4, 8))
print(all(torch.equal(v, whole[k]) for k, v in again[0].state_dict().items()))
