"""A variational autoencoder of short waves; its bound, part by part."""

import math
import sys

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Normal, kl_divergence

device = sys.argv[1]
torch.manual_seed(20)
time = torch.linspace(0, 2 * math.pi, 20)
waves = (torch.rand(48, 1) + 0.5) * (time + torch.rand(48, 1) * 3).sin()
waves = waves.to(device)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Sequential(nn.Linear(20, 32), nn.ELU())
        self.mean, self.spread = nn.Linear(32, 3), nn.Linear(32, 3)
        self.write = nn.Sequential(nn.Linear(3, 32), nn.ELU(), nn.Linear(32, 20))

    def forward(self, x, noise):
        h = self.read(x)
        place = Normal(self.mean(h), F.softplus(self.spread(h)) + 1e-3)
        return self.write(place.loc + place.scale * noise), place


net = VAE().to(device)
zero, one = torch.zeros(3, device=device), torch.ones(3, device=device)
trainer = optim.Adam(net.parameters(), lr=5e-3)
for step in range(12):
    made, place = net(waves, torch.randn(48, 3).to(device))
    far = F.mse_loss(made, waves, reduction="sum") / 48
    kl = kl_divergence(place, Normal(zero, one)).sum(1).mean()
    weight = min(1.0, step / 8)
    trainer.zero_grad()
    (far + weight * kl).backward()
    trainer.step()
    print(step, far.item(), kl.item(), place.scale.mean().item())
