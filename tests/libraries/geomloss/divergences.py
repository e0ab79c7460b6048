"""`SamplesLoss`: Sinkhorn divergences and kernel norms of point clouds, gradients"""

import torch
from geomloss import SamplesLoss

torch.manual_seed(0)
x = torch.rand(40, 2, requires_grad=True)
y = torch.rand(30, 2) + 0.5
for options in (
    {"loss": "sinkhorn", "p": 2, "blur": 0.05},
    {"loss": "sinkhorn", "p": 1, "blur": 0.1},
    {"loss": "sinkhorn", "p": 2, "blur": 0.1, "reach": 0.5},
    {"loss": "sinkhorn", "p": 2, "blur": 0.1, "debias": False},
    {"loss": "gaussian", "blur": 0.5},
    {"loss": "laplacian", "blur": 0.5},
    {"loss": "energy"},
):
    found = SamplesLoss(backend="tensorized", **options)(x, y)
    (g,) = torch.autograd.grad(found, x)
    print(options["loss"], found.item(), g.abs().sum().item())
a, b = torch.rand(40).softmax(0), torch.rand(30).softmax(0)
f, g = SamplesLoss(potentials=True, backend="tensorized")(a, x, b, y)
print(f.sum().item(), g.sum().item())
