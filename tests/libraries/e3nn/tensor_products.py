"""tensor products, spherical harmonics, `Gate`, `BatchNorm`, gradients"""

import torch
from e3nn import nn, o3


def shown(name, value):
    print(name, [round(x, 4) for x in value.detach().flatten()[:6].tolist()])


torch.manual_seed(0)
x = torch.randn(2, 5, requires_grad=True)
y = torch.randn(2, 4)
product = o3.FullyConnectedTensorProduct("2x0e+1x1o", "0e+1o", "3x0e+1x1o")
found = product(x, y)
shown("product", found)
shown("gradient", torch.autograd.grad(found.sum(), x)[0])
shown("harmonics", o3.spherical_harmonics([0, 1, 2], y[:, 1:], normalize=True))
shown("linear", o3.Linear("4x0e+2x1o", "3x0e+2x1o")(torch.randn(2, 10)))
shown("square", o3.TensorSquare("1x1o")(torch.randn(2, 3)))
shown("reduced", o3.ReducedTensorProducts("ij=-ji", i="1o")(*torch.randn(2, 2, 3)))
gate = nn.Gate("3x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
shown("gate", gate(gate.irreps_in.randn(2, -1)))
shown("norm", nn.BatchNorm("2x0e+1x1o")(x))
angles = torch.tensor([0.1, 0.2, 0.3])
shown("rotation", o3.Irreps("1o+2e").D_from_angles(*angles))
