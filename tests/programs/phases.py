"""A complex signal found from magnitudes: gradients with respect to complex numbers."""

import sys

import torch
from torch import optim

device = sys.argv[1]
torch.manual_seed(22)
signal = torch.complex(torch.randn(12), torch.randn(12)).to(device)
matrix = torch.complex(torch.randn(48, 12), torch.randn(48, 12)).to(device) / 12**0.5
seen = (matrix @ signal).abs()

guess = (
    signal + 0.4 * torch.complex(torch.randn(12), torch.randn(12)).to(device)
).detach()
guess.requires_grad_()
for step in range(10):
    loss = ((matrix @ guess).abs() - seen).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        guess -= 4 * guess.grad
    print(step, loss.item(), guess.grad.abs().sum().item(), guess[0].real.item())
    guess.grad = None
turn = torch.vdot(guess.detach(), signal)
print((guess.detach() * turn / turn.abs() - signal).abs().max().item())

# Two complex layers written out: products, a function of the modulus, its angle kept.
weights = [torch.complex(torch.randn(6, 6), torch.randn(6, 6)) * 0.3 for _ in range(2)]
weights = [w.to(device).requires_grad_() for w in weights]
x = torch.polar(torch.rand(16, 6) + 0.5, torch.rand(16, 6) * 3).to(device)
y = torch.view_as_complex(torch.randn(16, 6, 2)).to(device)
trainer = optim.Adam(weights, lr=0.02)
for step in range(8):
    h = x @ weights[0]
    h = torch.polar(h.abs().tanh(), h.angle())
    gap = torch.einsum("bi,ij->bj", h, weights[1]) - y
    loss = (gap * gap.conj()).real.mean()
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), torch.view_as_real(weights[0].grad).norm().item())
