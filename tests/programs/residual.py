"""Residual blocks with group normalization and squeezed channels, on random pictures."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(3)


class Block(nn.Module):
    def __init__(self, before, after, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.GroupNorm(4, after),
            nn.SiLU(),
            nn.Conv2d(after, after, 3, 1, 1, groups=4, bias=False),
            nn.GroupNorm(4, after),
        )
        self.skip = nn.Identity()
        if stride != 1 or before != after:
            self.skip = nn.Conv2d(before, after, 1, stride, bias=False)
        self.gate = nn.Sequential(nn.Linear(after, 4), nn.ReLU(), nn.Linear(4, after))

    def forward(self, x):
        y = self.body(x)
        gate = self.gate(y.mean((2, 3))).sigmoid()
        return torch.relu(y * gate[:, :, None, None] + self.skip(x))


net = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), Block(8, 8), Block(8, 16, 2), Block(16, 16)
)
head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
net = nn.Sequential(net, head)
for module in net.modules():
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
net.to(device)
print(sum(p.numel() for p in net.parameters()))
x, y = torch.randn(16, 3, 10, 10).to(device), torch.randint(0, 5, (16,)).to(device)
decayed = [p for p in net.parameters() if p.dim() > 1]
plain = [p for p in net.parameters() if p.dim() == 1]
groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain}]
trainer = optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True)
for step in range(8):
    loss = nn.functional.cross_entropy(net(x), y)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), net[0][1].body[0].weight.grad.norm().item())
