"""an inner loop with a functional copy and a differentiable optimizer: MAML, a learned rate"""

import higher
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
outer = torch.optim.Adam(net.parameters(), 1e-2)
x = torch.linspace(-2, 2, 16).unsqueeze(1)
for inner in (
    torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
    torch.optim.Adam(net.parameters(), lr=0.01),
    torch.optim.RMSprop(net.parameters(), lr=0.01),
    torch.optim.Adagrad(net.parameters(), lr=0.01),
):
    for _ in range(2):
        outer.zero_grad()
        total = 0.0
        for phase in (0.0, 0.5, 1.0):
            y = torch.sin(x + phase)
            with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (
                copied,
                changed,
            ):
                for _ in range(3):
                    changed.step((copied(x) - y).pow(2).mean())
                loss = (copied(x) - y).pow(2).mean()
                loss.backward()
                total += loss.item()
        outer.step()
    print(type(inner).__name__, total)
rate = torch.tensor(0.1, requires_grad=True)
inner = torch.optim.SGD(net.parameters(), lr=1.0)
with higher.innerloop_ctx(net, inner, override={"lr": [rate]}) as (copied, changed):
    changed.step(copied(x).pow(2).mean())
    (g,) = torch.autograd.grad(copied(x).pow(2).mean(), rate)
print(g.item())
