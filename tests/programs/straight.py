"""Binary weights trained by derivatives of the program's own (autograd.Function)."""

import sys

import torch
from torch import nn, optim
from torch.autograd import Function
from torch.autograd.function import once_differentiable

device = sys.argv[1]
torch.manual_seed(52)


class Sign(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class Swish(Function):
    """With a second derivative, since backward() is made of operations."""

    @staticmethod
    def forward(x, slope):
        return x * torch.sigmoid(slope * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, slope = inputs
        ctx.save_for_backward(x, output)
        ctx.slope = slope

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        s = torch.sigmoid(ctx.slope * x)
        return grad * (s + ctx.slope * y * (1 - s)), None


class Clip(Function):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.bound = bound
        kept = x.clamp(-bound, bound)
        inside = x == kept
        ctx.mark_non_differentiable(inside)
        ctx.save_for_backward(inside)
        return kept, inside

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, _):
        (inside,) = ctx.saved_tensors
        return grad * inside, None


class Binary(nn.Linear):
    def forward(self, x):
        scale = self.weight.abs().mean()
        return nn.functional.linear(x, Sign.apply(self.weight) * scale, self.bias)


first, second = Binary(8, 24).to(device), Binary(24, 1).to(device)
trainer = optim.Adam([*first.parameters(), *second.parameters()], lr=0.02)
inputs = torch.randn(32, 8).to(device)
wanted = (inputs[:, :2].prod(1, keepdim=True) > 0).float()
for step in range(12):
    hidden, inside = Clip.apply(Swish.apply(first(inputs), 1.5), 2.0)
    loss = nn.functional.binary_cross_entropy_with_logits(second(hidden), wanted)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(
        step, loss.item(), inside.float().mean().item(), first.weight.grad.norm().item()
    )
x = torch.linspace(-2, 2, 9, dtype=torch.float64).to(device).requires_grad_()
(slope,) = torch.autograd.grad(Swish.apply(x, 1.5).sum(), x, create_graph=True)
(bend,) = torch.autograd.grad(slope.sum(), x)
print(slope.tolist(), bend.tolist())
print(torch.autograd.gradcheck(lambda t: Swish.apply(t, 1.5), (x,)))
