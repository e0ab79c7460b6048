"""`odeint` by fourteen methods, `odeint_adjoint`, `odeint_event`"""

import torch
from torchdiffeq import odeint, odeint_adjoint, odeint_event

layer = torch.nn.Linear(1, 1, bias=False)
layer.weight.data = torch.tensor([[-1.0]])


class Decay(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = layer

    def forward(self, t, y):
        return self.layer(y)


t = torch.tensor([0.0, 0.5, 1.0])
ADAPTIVE = ["dopri8", "dopri5", "bosh3", "fehlberg2", "adaptive_heun"]
FIXED = [
    "euler",
    "midpoint",
    "heun2",
    "heun3",
    "rk4",
    "explicit_adams",
    "implicit_adams",
]
for method in ADAPTIVE + FIXED:
    options = {"options": {"step_size": 0.01}} if method in FIXED else {}
    print(
        method, odeint(Decay(), torch.ones(1), t, method=method, **options)[-1].item()
    )
print(
    odeint(
        Decay(), torch.ones(1), t, method="scipy_solver", options={"solver": "RK45"}
    )[-1]
)
for solve in (odeint, odeint_adjoint):
    layer.zero_grad()
    solve(Decay(), torch.ones(1), t)[-1].sum().backward()
    print(layer.weight.grad)
when, y = odeint_event(
    Decay(),
    torch.ones(1),
    t[0],
    event_fn=lambda t, y: y[0] - 0.5,
    odeint_interface=odeint,
)
print(when.item(), y[-1].item())
