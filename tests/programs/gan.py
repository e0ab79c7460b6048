"""A generator against a discriminator: transposed convolutions, spectral norm."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils.parametrizations import spectral_norm

device = sys.argv[1]
torch.manual_seed(18)
makes = nn.Sequential(
    nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(True),
    nn.ConvTranspose2d(16, 1, 4, 2, 1),
    nn.Tanh(),
).to(device)
judges = nn.Sequential(
    spectral_norm(nn.Conv2d(1, 12, 4, 2, 1)),
    nn.LeakyReLU(0.2),
    nn.Flatten(),
    spectral_norm(nn.Linear(12 * 16, 1)),
).to(device)
slope = torch.linspace(-1, 1, 8)
maker = optim.Adam(makes.parameters(), lr=2e-3, betas=(0.5, 0.999))
judge = optim.Adam(judges.parameters(), lr=2e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(16, 1, device=device), torch.zeros(16, 1, device=device)
for step in range(8):
    real = (slope * torch.rand(16, 1, 1, 1)).expand(16, 1, 8, 8).to(device)
    noise = torch.randn(16, 8, 1, 1).to(device)
    fake = makes(noise)
    bad = F.binary_cross_entropy_with_logits(judges(real), ones)
    bad = bad + F.binary_cross_entropy_with_logits(judges(fake.detach()), zeros)
    judge.zero_grad()
    bad.backward()
    judge.step()
    good = F.binary_cross_entropy_with_logits(judges(fake), ones)
    maker.zero_grad()
    good.backward()
    maker.step()
    print(step, bad.item(), good.item(), fake.mean().item(), fake.std().item())
