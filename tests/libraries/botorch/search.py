"""`SingleTaskGP`, its fit, expected improvement, an optimized acquisition"""

import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

torch.manual_seed(0)
x = torch.rand(10, 2, dtype=torch.float64)
y = -(x - 0.4).pow(2).sum(1, keepdim=True)
net = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(net.likelihood, net))
found = net.posterior(torch.tensor([[0.4, 0.4], [0.9, 0.1]], dtype=torch.float64))
print(found.mean.detach(), bool((found.variance > 0).all()))
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
for acquire, count in (
    (LogExpectedImprovement(net, y.max()), 1),
    (qLogExpectedImprovement(net, y.max()), 2),
):
    where, value = optimize_acqf(
        acquire, bounds, q=count, num_restarts=2, raw_samples=16
    )
    print(where.shape, (where[0] - 0.4).abs().max().item() < 0.2)
