"""A line through points, by gradients alone, and by a layer with an optimizer."""

import sys

import torch
from torch import nn

device = sys.argv[1]
torch.manual_seed(0)
x = torch.randn(64, 3)
true = torch.tensor([2.0, -3.4, 0.5])
y = (x @ true + 4.2 + 0.01 * torch.randn(64)).to(device)
x = x.to(device)

w = torch.zeros(3, device=device, requires_grad=True)
b = torch.zeros((), device=device, requires_grad=True)
for step in range(12):
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for each in (w, b):
            each -= 0.2 * each.grad
            each.grad.zero_()
    print(step, loss.item(), w.tolist(), b.item())

net = nn.Linear(3, 1).to(device)
trainer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5, weight_decay=1e-3)
for step in range(12):
    trainer.zero_grad()
    loss = nn.functional.mse_loss(net(x).squeeze(1), y)
    loss.backward()
    trainer.step()
    print(step, loss.item(), net.weight.flatten().tolist())
