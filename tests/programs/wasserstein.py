"""A critic whose slope is held at 1 by a penalty: second derivatives."""

import sys

import torch
from torch import autograd, nn, optim

device = sys.argv[1]
torch.manual_seed(19)
makes = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
critic = nn.Sequential(
    nn.Linear(2, 32),
    nn.LeakyReLU(0.2),
    nn.Linear(32, 32),
    nn.Softplus(),
    nn.Linear(32, 1),
).to(device)
maker = optim.RMSprop(makes.parameters(), lr=1e-3)
trainer = optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
for step in range(5):
    for _ in range(2):
        real = (torch.randn(32, 2) * 0.2 + torch.tensor([1.0, -1.0])).to(device)
        fake = makes(torch.randn(32, 4).to(device)).detach()
        share = torch.rand(32, 1).to(device)
        between = (share * real + (1 - share) * fake).requires_grad_()
        (slope,) = autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        print(step, loss.item(), penalty.item())
    cost = -critic(makes(torch.randn(32, 4).to(device))).mean()
    maker.zero_grad()
    cost.backward()
    maker.step()
    print(step, cost.item())
