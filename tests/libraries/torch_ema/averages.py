"""`ExponentialMovingAverage`: updates, `average_parameters()`, `copy_to()`, `store()` and `restore()`"""

import torch
from torch_ema import ExponentialMovingAverage

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
ema = ExponentialMovingAverage(net.parameters(), decay=0.95)
x, y = torch.rand(32, 6), torch.randint(0, 2, (32,))
for _ in range(20):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update()
print(loss.item())
with ema.average_parameters():
    print(torch.nn.functional.cross_entropy(net(x), y).item())
print(torch.nn.functional.cross_entropy(net(x), y).item())
ema.store(net.parameters())
ema.copy_to(net.parameters())
print(net(x).sum().item())
ema.restore(net.parameters())
print(net(x).sum().item())
