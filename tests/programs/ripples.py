"""Signals as complex numbers through an LSTM, and a field fitted by its derivatives."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(61)
lstm = nn.LSTM(2, 5, num_layers=2, batch_first=True, dtype=torch.complex64).to(device)
head = nn.Linear(5, 1, dtype=torch.complex64).to(device)
trainer = optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.005)
time = torch.linspace(0, 3, 9)
turns = torch.rand(12, 2, 1) * 2 - 1
waves = torch.polar(torch.ones(12, 2, 9), turns * time).transpose(1, 2).to(device) / 2
wanted = waves.prod(2)
for step in range(8):
    found = head(lstm(waves)[0])[..., 0]
    loss = (found - wanted).abs().pow(2).mean()
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), found[0, -1].real.item(), found[0, -1].imag.item())


class Sine(nn.Module):
    def __init__(self, inputs, outputs, factor=1.0):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.factor = factor

    def forward(self, x):
        return torch.sin(self.factor * self.linear(x))


field = nn.Sequential(Sine(2, 24, 3.0), Sine(24, 24), nn.Linear(24, 1)).to(device)
trainer = optim.LBFGS(field.parameters(), lr=0.5, max_iter=3)
points = (torch.rand(40, 2) * 2 - 1).to(device)


def laplacian(x):
    x = x.requires_grad_()
    y = field(x)
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    parts = [
        torch.autograd.grad(slope[:, d].sum(), x, create_graph=True)[0][:, d]
        for d in (0, 1)
    ]
    return y[:, 0], slope, sum(parts)


def closure():
    trainer.zero_grad()
    y, _slope, bend = laplacian(points.clone())
    loss = (bend + torch.cos(points.sum(1))).pow(2).mean() + 0.1 * y.mean() ** 2
    loss.backward()
    return loss


for step in range(5):
    loss = trainer.step(closure)
    _, slope, bend = laplacian(points.clone())
    print(step, loss.item(), slope.norm().item(), bend.mean().item())
