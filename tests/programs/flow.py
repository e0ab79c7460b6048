"""A density by coupled maps that can be turned round (RealNVP)."""

import math
import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(21)


class Coupling(nn.Module):
    def __init__(self, flipped):
        super().__init__()
        self.flipped = flipped
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x, back=False):
        a, b = x.chunk(2, 1)
        if self.flipped:
            a, b = b, a
        scale, shift = self.net(a).chunk(2, 1)
        scale = scale.tanh()
        b = (b - shift) * (-scale).exp() if back else b * scale.exp() + shift
        made = torch.cat([b, a] if self.flipped else [a, b], 1)
        return made, scale.squeeze(1)


layers = nn.ModuleList(Coupling(k % 2 == 1) for k in range(4)).to(device)
trainer = optim.Adam(layers.parameters(), lr=0.01)
points = torch.randn(80, 2)
points[:, 1] = points[:, 0] ** 2 / 2 + 0.3 * points[:, 1]
points = points.to(device)
for step in range(12):
    z, growth = points, 0
    for layer in layers:
        z, scale = layer(z)
        growth = growth + scale
    density = -0.5 * (z**2).sum(1) - math.log(2 * math.pi)
    loss = -(density + growth).mean()
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), z.std().item())
with torch.no_grad():
    for layer in reversed(layers):
        z, _ = layer(z, back=True)
    print(z[:2].tolist(), torch.randn(2, 2).logsumexp(0).tolist())
