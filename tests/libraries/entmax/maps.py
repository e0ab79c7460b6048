"""`sparsemax`, `entmax15`, `entmax_bisect`, losses and gradients"""

import entmax
import torch

torch.manual_seed(0)
x = torch.randn(5, 8, requires_grad=True)
for f in (
    entmax.sparsemax,
    entmax.entmax15,
    lambda x, dim: entmax.entmax_bisect(x, 1.3, dim=dim),
):
    p = f(x, dim=1)
    (g,) = torch.autograd.grad((p * torch.arange(8)).sum(), x)
    print((p > 0).sum().item(), p.max().item(), g.abs().sum().item())
alpha = torch.full((5, 1), 1.4, requires_grad=True)
entmax.entmax_bisect(x, alpha, dim=1).pow(2).sum().backward()
print(alpha.grad.sum().item())
y = torch.tensor([0, 3, 1, 7, 2])
for loss in (
    entmax.SparsemaxLoss(),
    entmax.Entmax15Loss(),
    entmax.EntmaxBisectLoss(1.3),
):
    found = loss(x, y)
    (g,) = torch.autograd.grad(found, x)
    print(type(loss).__name__, found.item(), g.abs().sum().item())
print(entmax.Sparsemax(dim=-1)(x).sum().item())
