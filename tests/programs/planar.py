"""A variational autoencoder whose latent distribution is bent by planar flows."""

import sys

import torch
from torch import nn, optim
from torch.distributions import Bernoulli, Independent, MultivariateNormal, Normal
from torch.nn import functional as F

device = sys.argv[1]
torch.manual_seed(60)


class Planar(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.u = nn.Parameter(torch.randn(width) * 0.1)
        self.w = nn.Parameter(torch.randn(width) * 0.1)
        self.b = nn.Parameter(torch.zeros(1))

    def forward(self, z):
        dot = self.w @ self.u
        u = self.u + (F.softplus(dot) - 1 - dot) * self.w / self.w.pow(2).sum()
        bent = torch.tanh(z @ self.w + self.b)
        slope = (1 - bent**2)[:, None] * self.w
        return z + u * bent[:, None], torch.log((1 + slope @ u).abs())


encoder = nn.Sequential(nn.Linear(16, 24), nn.ELU(), nn.Linear(24, 6)).to(device)
decoder = nn.Sequential(nn.Linear(3, 24), nn.ELU(), nn.Linear(24, 16)).to(device)
flows = nn.ModuleList(Planar(3) for _ in range(4)).to(device)
weights = [*encoder.parameters(), *decoder.parameters(), *flows.parameters()]
trainer = optim.NAdam(weights, lr=0.01)
patterns = (torch.rand(3, 16) > 0.5).float()
data = torch.cat([patterns[torch.randint(0, 3, (40,))], patterns])
data = torch.where(torch.rand(data.shape) < 0.05, 1 - data, data).to(device)
prior = Independent(Normal(torch.zeros(3).to(device), torch.ones(3).to(device)), 1)
for step in range(12):
    mean, scale = encoder(data).chunk(2, 1)
    scale = F.softplus(scale) + 1e-3
    z = mean + scale * torch.randn(mean.shape).to(device)
    density = Independent(Normal(mean, scale), 1).log_prob(z)
    for flow in flows:
        z, growth = flow(z)
        density = density - growth
    likelihood = Independent(Bernoulli(logits=decoder(z)), 1).log_prob(data)
    weight = min(1.0, (step + 1) / 6)
    loss = -(likelihood + weight * (prior.log_prob(z) - density)).mean()
    trainer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(weights, 5.0)
    trainer.step()
    print(step, loss.item(), likelihood.mean().item(), norm.item())
z = z.detach()
cov = torch.cov(z.T) + 0.1 * torch.eye(3).to(device)
print(MultivariateNormal(z.mean(0), cov).log_prob(z[:3]).tolist())
