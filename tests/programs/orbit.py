"""A law of motion learnt from a path: Runge and Kutta's steps inside the graph."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(26)


def step_of(f, x, h):
    k1 = f(x)
    k2 = f(x + h / 2 * k1)
    k3 = f(x + h / 2 * k2)
    k4 = f(x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def path(f, x, count, h=0.1):
    found = [x]
    for _ in range(count):
        found.append(step_of(f, found[-1], h))
    return torch.stack(found)


turning = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]).to(device)
seen = path(lambda x: (x**3) @ turning, torch.tensor([[1.2, 0.0]]).to(device), 20)


class Law(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, x):
        return self.net(x**3)


law = Law().to(device)
trainer = optim.Adam(law.parameters(), lr=0.02)
for step in range(8):
    starts = torch.randint(0, 15, (6,)).to(device)
    wanted = torch.stack([seen[starts + k, 0] for k in range(6)])
    found = path(law, seen[starts, 0], 5)
    loss = (found - wanted).abs().mean()
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), found[-1, 0].tolist())
