"""exact regression by three kernels, a sparse variational process, a classifier"""

import gpytorch
import torch

torch.manual_seed(0)
x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x) + 0.1 * torch.randn(20)
KERNELS = {
    "RBF": gpytorch.kernels.RBFKernel(),
    "Matern": gpytorch.kernels.MaternKernel(2.5),
    "periodic and linear": gpytorch.kernels.PeriodicKernel()
    + gpytorch.kernels.LinearKernel(),
}


class Exact(gpytorch.models.ExactGP):
    def __init__(self, kernel, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


for name, kernel in KERNELS.items():
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    net = Exact(kernel, likelihood)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, net)
    optimizer = torch.optim.Adam(net.parameters(), 0.1)
    for _ in range(20):
        optimizer.zero_grad()
        loss = -objective(net(x), y)
        loss.backward()
        optimizer.step()
    net.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(net(torch.tensor([0.25, 0.5])))
        print(name, loss.item(), found.mean, found.variance)


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        spread = gpytorch.variational.CholeskyVariationalDistribution(len(points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, points, spread))
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


for likelihood, target in (
    (gpytorch.likelihoods.GaussianLikelihood(), y),
    (gpytorch.likelihoods.BernoulliLikelihood(), (y > 0).float()),
):
    net = Sparse(x[::4, None].clone())
    objective = gpytorch.mlls.VariationalELBO(likelihood, net, len(x))
    optimizer = torch.optim.Adam([*net.parameters(), *likelihood.parameters()], 0.05)
    for _ in range(20):
        optimizer.zero_grad()
        loss = -objective(net(x[:, None]), target)
        loss.backward()
        optimizer.step()
    print(type(likelihood).__name__, loss.item())
