"""A neural differential equation; gradients by the adjoint equation, and through steps."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(55)


def runge_kutta(f, y, dt):
    a = f(y)
    b = f(tuple(v + dt / 2 * d for v, d in zip(y, a, strict=False)))
    c = f(tuple(v + dt / 2 * d for v, d in zip(y, b, strict=False)))
    e = f(tuple(v + dt * d for v, d in zip(y, c, strict=False)))
    return tuple(
        v + dt / 6 * (p + 2 * q + 2 * r + s)
        for v, p, q, r, s in zip(y, a, b, c, e, strict=False)
    )


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, net, dt, steps, y, *weights):
        path = [y]
        for _ in range(steps):
            path.append(runge_kutta(lambda s: (net(s[0]),), (path[-1],), dt)[0])
        ctx.net, ctx.dt = net, dt
        ctx.save_for_backward(*path)
        return torch.stack(path)

    @staticmethod
    def backward(ctx, grad):
        path, weights = ctx.saved_tensors, [*ctx.net.parameters()]

        def back(state):
            y, a, *_ = state
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                found = torch.autograd.grad(
                    ctx.net(y), [y, *weights], -a, allow_unused=True
                )
            return (ctx.net(y).detach(), *found)

        state = (path[-1], grad[-1], *(torch.zeros_like(w) for w in weights))
        for i in range(len(path) - 1, 0, -1):
            state = runge_kutta(back, (path[i], *state[1:]), -ctx.dt)
            state = (path[i - 1], state[1] + grad[i - 1], *state[2:])
        return (None, None, None, *state[1:])


net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
start = (torch.rand(6, 2) * 2 - 1).to(device)


def swing(state):
    angle, speed = state[0].unbind(-1)
    return (torch.stack([speed, -torch.sin(angle) - 0.1 * speed], -1),)


truth = [start]
for _ in range(10):
    truth.append(runge_kutta(swing, (truth[-1],), 0.2)[0])
truth = torch.stack(truth)
trainer = optim.Adam(net.parameters(), lr=0.02)
for step in range(10):
    path = Adjoint.apply(net, 0.2, 10, start, *net.parameters())
    loss = (path - truth).pow(2).mean()
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), net[0].weight.grad.norm().item())
y = start.clone().requires_grad_()
by_adjoint = torch.autograd.grad(
    Adjoint.apply(net, 0.1, 5, y, *net.parameters())[-1].sum(), y
)[0]
state = (y,)
for _ in range(5):
    state = runge_kutta(lambda s: (net(s[0]),), state, 0.1)
through = torch.autograd.grad(state[0].sum(), y)[0]
print(by_adjoint.norm().item(), through.norm().item())
