"""A number for each of several graphs: messages along edges, sums over nodes."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(16)
sizes = torch.randint(4, 8, (10,))
owner = torch.repeat_interleave(torch.arange(10), sizes)
first = sizes.cumsum(0) - sizes
edges = torch.cat(
    [
        torch.randint(0, int(n), (2, 2 * int(n))) + s
        for n, s in zip(sizes, first, strict=True)
    ],
    1,
)
kinds = torch.randint(0, 4, (len(owner),))
lengths = torch.rand(edges.shape[1], 1)
wanted = torch.zeros(10).index_add_(0, owner, (kinds == 1).float()) / 2
kinds, edges, lengths = kinds.to(device), edges.to(device), lengths.to(device)
owner, wanted = owner.to(device), wanted.to(device)


class Net(nn.Module):
    def __init__(self, size=12):
        super().__init__()
        self.kinds = nn.Embedding(4, size)
        self.message = nn.Sequential(nn.Linear(2 * size + 1, size), nn.SiLU())
        self.update = nn.GRUCell(size, size)
        self.read = nn.Sequential(
            nn.Linear(2 * size, size), nn.ReLU(), nn.Linear(size, 1)
        )

    def forward(self, kinds):
        h = self.kinds(kinds)
        for _ in range(2):
            pair = torch.cat([h[edges[0]], h[edges[1]], lengths], 1)
            got = torch.zeros_like(h).index_add(0, edges[1], self.message(pair))
            h = self.update(got, h)
        where = owner[:, None].expand_as(h)
        start = h.new_zeros(10, h.shape[1])
        mean = start.scatter_reduce(0, where, h, "mean", include_self=False)
        most = start.scatter_reduce(0, where, h, "amax", include_self=False)
        return self.read(torch.cat([mean, most], 1)).squeeze(1)


net = Net().to(device)
trainer = optim.RAdam(net.parameters(), lr=0.02)
for step in range(10):
    out = net(kinds)
    loss = nn.functional.huber_loss(out, wanted)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), out[:3].tolist())
