"""Learning to learn: a start from which one step fits a sine (MAML by torch.func)."""

import sys

import torch
from torch import nn, optim
from torch.func import functional_call, grad, grad_and_value, vmap

device = sys.argv[1]
torch.manual_seed(57)
net = nn.Sequential(
    nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
)
net.to(device)
start = {name: p.detach().clone() for name, p in net.named_parameters()}


def loss_of(weights, x, y):
    return (functional_call(net, weights, (x,)) - y).pow(2).mean()


def adapted(weights, x, y):
    slopes = grad(loss_of)(weights, x, y)
    return {name: w - 0.1 * slopes[name] for name, w in weights.items()}


def after_a_step(weights, x, y, new_x, new_y):
    return loss_of(adapted(weights, x, y), new_x, new_y)


def tasks(count):
    height = torch.rand(count, 1, 1) * 3 + 0.5
    shift = torch.rand(count, 1, 1) * 3
    x = torch.rand(count, 10, 1) * 6 - 3
    y = height * torch.sin(x + shift)
    return [t.to(device) for t in (x[:, :5], y[:, :5], x[:, 5:], y[:, 5:])]


def meta(weights, *batch):
    return vmap(after_a_step, in_dims=(None, 0, 0, 0, 0))(weights, *batch).mean()


trainer = optim.Adam(start.values(), lr=0.01)
for step in range(12):
    batch = tasks(6)
    slopes, loss = grad_and_value(meta)(start, *batch)
    for name, p in start.items():
        p.grad = slopes[name]
    trainer.step()
    before = vmap(loss_of, in_dims=(None, 0, 0))(start, batch[2], batch[3])
    print(step, loss.item(), before.mean().item(), slopes["0.weight"].norm().item())
per_example = vmap(grad(loss_of), in_dims=(None, 0, 0))(start, batch[0], batch[1])
print({name: round(g.norm().item(), 4) for name, g in per_example.items()})
