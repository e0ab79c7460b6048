"""`sdeint` by four methods, of Ito and of Stratonovich; `sdeint_adjoint`; a Brownian interval"""

import torch
import torchsde

torch.manual_seed(0)


class Walk(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.noise_type, self.sde_type = "diagonal", kind
        self.mu, self.sigma = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def f(self, t, y):
        return torch.tanh(self.mu(y))

    def g(self, t, y):
        return torch.sigmoid(self.sigma(y))


t = torch.linspace(0, 1, 5)
y = torch.full((4, 3), 0.1)
for kind, methods in {
    "ito": ("euler", "milstein", "srk"),
    "stratonovich": ("midpoint", "heun"),
}.items():
    walk = Walk(kind)
    for method in methods:
        levy = "space-time" if method == "srk" else "none"
        noise = torchsde.BrownianInterval(
            0.0, 1.0, size=(4, 3), entropy=7, levy_area_approximation=levy
        )
        found = torchsde.sdeint(walk, y, t, method=method, dt=0.05, bm=noise)
        print(kind, method, found.shape, found.abs().mean().item())
walk = Walk("stratonovich")
noise = torchsde.BrownianInterval(0.0, 1.0, size=(4, 3), entropy=7)
torchsde.sdeint_adjoint(walk, y, t, method="midpoint", dt=0.05, bm=noise)[
    -1
].sum().backward()
print(walk.mu.weight.grad.abs().sum().item())
