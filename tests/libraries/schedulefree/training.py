"""`AdamWScheduleFree`, `SGDScheduleFree`, `RAdamScheduleFree`: training and evaluation"""

import schedulefree
import torch

torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
for make, options in (
    (schedulefree.AdamWScheduleFree, {"warmup_steps": 3, "foreach": False}),
    (schedulefree.AdamWScheduleFree, {"warmup_steps": 3, "foreach": True}),
    (schedulefree.SGDScheduleFree, {"foreach": True}),
    (schedulefree.RAdamScheduleFree, {}),
    (schedulefree.AdamWScheduleFreeReference, {}),
):
    net = torch.nn.Linear(4, 1)
    optimizer = make(net.parameters(), lr=0.05, **options)
    optimizer.train()
    for _ in range(6):
        optimizer.zero_grad()
        loss = (net(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    optimizer.eval()
    print(make.__name__, loss.item(), (net(x) - y).pow(2).mean().item())
