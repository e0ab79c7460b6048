"""cubic and linear paths, `cdeint`: values and gradients"""

import torch
import torchcde

torch.manual_seed(0)


class Function(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4 * 3)

    def forward(self, t, z):
        return self.linear(z).tanh().view(z.shape[0], 4, 3)


x = torch.rand(6, 10, 3)
x[1, 3, 1] = float("nan")
function = Function()
for make, kind in (
    (
        torchcde.hermite_cubic_coefficients_with_backward_differences,
        torchcde.CubicSpline,
    ),
    (torchcde.natural_cubic_coeffs, torchcde.CubicSpline),
    (torchcde.linear_interpolation_coeffs, torchcde.LinearInterpolation),
):
    path = kind(make(x))
    print(path.evaluate(1.5).sum().item(), path.derivative(2.5).sum().item())
    z = torchcde.cdeint(
        X=path,
        z0=torch.zeros(6, 4),
        func=function,
        t=path.interval,
        adjoint=False,
        method="rk4",
        options={"step_size": 0.5},
    )
    function.zero_grad()
    z[:, -1].pow(2).sum().backward()
    print(z.shape, z.sum().item(), function.linear.weight.grad.abs().sum().item())
