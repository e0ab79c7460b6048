"""`Prodigy`: twenty steps with several options"""

import torch
from prodigyopt import Prodigy

torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
for options in (
    {},
    {"weight_decay": 0.01, "decouple": True},
    {"safeguard_warmup": True},
):
    net = torch.nn.Linear(4, 1)
    optimizer = Prodigy(net.parameters(), lr=1.0, **options)
    for _ in range(20):
        optimizer.zero_grad()
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(loss.item(), optimizer.param_groups[0]["d"])
