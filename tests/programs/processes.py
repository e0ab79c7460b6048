"""Fits a Gaussian process by its Cholesky factor, and predicts with it."""

import math
import sys

import torch
from torch import optim

device = sys.argv[1]
torch.manual_seed(28)
x = torch.rand(25, dtype=torch.float64) * 6
y = (x * 1.3).sin() + 0.1 * torch.randn(25, dtype=torch.float64)
x, y = x.to(device), y.to(device)
logs = torch.zeros(3, dtype=torch.float64, device=device, requires_grad=True)
trainer = optim.Rprop([logs], lr=0.05)


def kernel(a, b):
    size, height, _ = logs.exp()
    return height**2 * torch.exp(-0.5 * ((a[:, None] - b) / size) ** 2)


eye = torch.eye(25, dtype=torch.float64, device=device)
for step in range(12):
    factor = torch.linalg.cholesky(kernel(x, x) + logs[2].exp() ** 2 * eye)
    solved = torch.cholesky_solve(y[:, None], factor).squeeze(1)
    fit = (
        0.5 * y @ solved + factor.diagonal().log().sum() + 12.5 * math.log(2 * math.pi)
    )
    trainer.zero_grad()
    fit.backward()
    trainer.step()
    print(step, fit.item(), logs.tolist())
with torch.no_grad():
    new = torch.linspace(0, 6, 5, dtype=torch.float64, device=device)
    mean = kernel(new, x) @ solved
    part = torch.linalg.solve_triangular(factor, kernel(x, new), upper=False)
    print(mean.tolist(), (kernel(new, new).diagonal() - (part**2).sum(0)).tolist())
    values = torch.linalg.eigvalsh(kernel(x, x))
    print(values[-3:].tolist(), torch.linalg.slogdet(kernel(x, x) + eye)[1].item())
