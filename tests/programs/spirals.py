"""Two spirals told apart by a small network; batches, accuracy, a schedule."""

import math
import sys

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = sys.argv[1]
torch.manual_seed(1)
angle = torch.rand(200) * 2 * math.pi
side = torch.arange(200) % 2
turned = angle + side * math.pi
points = torch.stack([angle * turned.cos(), angle * turned.sin()], 1) / 6
points = points + 0.02 * torch.randn_like(points)
batches = DataLoader(TensorDataset(points, side), batch_size=50, shuffle=True)

net = nn.Sequential(
    nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2)
)
net.to(device)
trainer = optim.Adam(net.parameters(), lr=0.01)
schedule = optim.lr_scheduler.StepLR(trainer, step_size=3, gamma=0.7)
for epoch in range(8):
    total = right = 0
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        out = net(x)
        loss = F.cross_entropy(out, y)
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        total += loss.item() * len(x)
        right += (out.argmax(1) == y).sum().item()
    schedule.step()
    print(epoch, total / 200, right, schedule.get_last_lr()[0])
