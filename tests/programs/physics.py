"""A differential equation solved by a network: u'' + u = 0, u(0) = 0, u'(0) = 1."""

import sys

import torch
from torch import autograd, nn, optim

device = sys.argv[1]
torch.manual_seed(27)
net = nn.Sequential(
    nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1)
)
net = net.double().to(device)
trainer = optim.LBFGS(
    net.parameters(), lr=0.5, max_iter=6, line_search_fn="strong_wolfe"
)
x = torch.linspace(0, 3, 30, dtype=torch.float64).reshape(-1, 1).to(device)
x.requires_grad_()
zero = torch.zeros(1, 1, dtype=torch.float64, device=device, requires_grad=True)


def slope(y, at):
    (found,) = autograd.grad(y.sum(), at, create_graph=True)
    return found


def closure():
    trainer.zero_grad()
    u = net(x)
    rest = slope(slope(u, x), x) + u
    first = net(zero)
    edges = first.pow(2).sum() + (slope(first, zero) - 1).pow(2).sum()
    loss = rest.pow(2).mean() + edges
    loss.backward()
    return loss


for step in range(6):
    loss = trainer.step(closure)
    far = (net(x) - x.sin()).abs().max()
    print(step, loss.item(), far.item())
