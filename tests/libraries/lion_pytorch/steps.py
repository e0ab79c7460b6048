"""`Lion`: steps, with decay, and with a schedule"""

import torch
from lion_pytorch import Lion

torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
for options in ({}, {"weight_decay": 1e-2}, {"betas": (0.95, 0.98)}):
    optimizer = Lion(net.parameters(), lr=1e-2, **options)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for _ in range(5):
        loss = net(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(loss.item(), net.weight.abs().sum().item())
