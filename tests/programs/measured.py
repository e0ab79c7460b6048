"""Quantities with units, and a trace of calls, by torch.overrides."""

import sys

import torch
from torch import nn, optim
from torch.overrides import TorchFunctionMode, resolve_name

device = sys.argv[1]
torch.manual_seed(62)


class Quantity(torch.Tensor):
    """A tensor that knows its unit, as powers of metre and second."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        units = [a.unit for a in args if isinstance(a, Quantity) and hasattr(a, "unit")]
        out = super().__torch_function__(func, types, args, kwargs or {})
        if not isinstance(out, Quantity) or not units:
            return out
        name = getattr(func, "__name__", "")
        if name in ("add", "sub") and len(units) == 2 and units[0] != units[1]:
            raise ValueError(f"{units[0]} and {units[1]}")
        unit = units[0]
        if name == "mul" and len(units) == 2:
            unit = tuple(a + b for a, b in zip(*units, strict=False))
        if name in ("div", "true_divide") and len(units) == 2:
            unit = tuple(a - b for a, b in zip(*units, strict=False))
        out.unit = unit
        return out


def quantity(values, unit):
    made = torch.as_tensor(values).to(device).as_subclass(Quantity)
    made.unit = unit
    return made


class Trace(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = resolve_name(func)
        if name and not name.endswith("__get__"):
            self.names.append(name)
        return func(*args, **(kwargs or {}))


distance = quantity([3.0, 8.0, 10.0], (1, 0))
time = quantity([1.0, 2.0, 4.0], (0, 1))
speed = distance / time
print(speed.unit, speed.tolist(), (speed * time).unit, (speed * speed).sum().item())
print(
    type(speed[0]).__name__,
    type(torch.stack([speed, speed])).__name__,
    speed.mean().unit,
)
try:
    distance + time
except ValueError as error:
    print("not", error)

weight = torch.zeros(2, 1).to(device).requires_grad_()
trainer = optim.SGD([weight], lr=0.05)
inputs = torch.randn(16, 2).to(device).as_subclass(Quantity)
wanted = inputs.as_subclass(torch.Tensor) @ torch.tensor([[2.0], [-1.0]]).to(device)
for step in range(6):
    loss = nn.functional.mse_loss(inputs @ weight, wanted)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, type(loss).__name__, loss.item(), weight.grad.norm().item())

with Trace() as trace:
    x = torch.ones(2, 3).to(device)
    y = torch.nn.functional.relu(x @ x.mT - 1)
    z = (y / 2).sum(dim=0)[0] + torch.exp(y).max()
print(z.item(), trace.names)


class Ones:
    """Not a tensor: it answers for itself."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [torch.ones(2).to(device) if isinstance(a, Ones) else a for a in args]
        return func(*args, **(kwargs or {}))


print(
    torch.add(Ones(), 1).tolist(), torch.cat([torch.zeros(1).to(device), x[0]]).tolist()
)
print((torch.full((2,), 3.0).to(device) * Ones()).tolist())
