"""Points on two moons out of noise: a diffusion model, means of weights, sampling."""

import copy
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(17)
STEPS = 20
beta = torch.linspace(1e-4, 0.2, STEPS)
alpha = 1 - beta
product = alpha.cumprod(0)


class Net(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.time = nn.Embedding(STEPS, size)
        self.into, self.middle = nn.Linear(2, size), nn.Linear(size, size)
        self.out = nn.Linear(size, 2)

    def forward(self, x, t):
        h = F.silu(self.into(x) + self.time(t))
        return self.out(F.silu(self.middle(h)) + h)


def moons(count):
    angle = torch.rand(count) * math.pi
    side = torch.randint(0, 2, (count,)).float()
    x = angle.cos() + side - 0.5
    y = angle.sin() * (1 - 2 * side) + side * 0.5 - 0.25
    return torch.stack([x, y], 1)


net = Net().to(device)
slow = copy.deepcopy(net)
trainer = optim.AdamW(net.parameters(), lr=5e-3)
for step in range(15):
    x, t, noise = moons(64), torch.randint(0, STEPS, (64,)), torch.randn(64, 2)
    mixed = product[t].sqrt()[:, None] * x + (1 - product[t]).sqrt()[:, None] * noise
    mixed, t, noise = mixed.to(device), t.to(device), noise.to(device)
    loss = F.mse_loss(net(mixed, t), noise)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    with torch.no_grad():
        for mean, new in zip(slow.parameters(), net.parameters(), strict=True):
            mean.mul_(0.9).add_(new, alpha=0.1)
    print(step, loss.item())
with torch.no_grad():
    x = torch.randn(5, 2).to(device)
    for k in reversed(range(STEPS)):
        t = torch.full((5,), k, device=device)
        guess = beta[k] / (1 - product[k]).sqrt() * slow(x, t)
        x = (x - guess) / alpha[k].sqrt()
        if k:
            x = x + beta[k].sqrt() * torch.randn(5, 2).to(device)
        if k % 5 == 0:
            print(k, x.tolist())
