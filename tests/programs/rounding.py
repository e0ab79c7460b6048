"""Weights of few levels, learnt through a function whose derivative is chosen."""

import sys

import torch
from torch import nn, optim
from torch.nn.utils import parametrize

device = sys.argv[1]
torch.manual_seed(30)


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, step):
        scaled = x / step
        ctx.save_for_backward((scaled.abs() <= 4).to(x.dtype))
        return scaled.round().clamp(-4, 4) * step

    @staticmethod
    def backward(ctx, gradient):
        (inside,) = ctx.saved_tensors
        return gradient * inside, None


class Levels(nn.Module):
    def forward(self, weight):
        return Round.apply(weight, 0.1)


@torch.library.custom_op("programs::squash", mutates_args=())
def squash(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + x.abs())


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, gradient):
    (x,) = ctx.saved_tensors
    return gradient / (1 + x.abs()) ** 2


squash.register_autograd(backward, setup_context=keep)


class Squash(nn.Module):
    def forward(self, x):
        return squash(x)


net = nn.Sequential(nn.Linear(5, 12), Squash(), nn.Linear(12, 2)).to(device)
for layer in (net[0], net[2]):
    parametrize.register_parametrization(layer, "weight", Levels())
sizes = []
net[1].register_forward_hook(
    lambda module, args, out: sizes.append(out.abs().mean().item())
)
net[2].register_full_backward_hook(
    lambda module, into, given: sizes.append(given[0].norm().item())
)
x = torch.randn(40, 5).to(device)
y = torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs()], 1)
trainer = optim.Adam(net.parameters(), lr=0.02)
for step in range(8):
    loss = nn.functional.mse_loss(net(x), y)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    levels = torch.unique(net[0].weight.detach().mul(10).round())
    print(step, loss.item(), sizes[-2:], len(levels))
