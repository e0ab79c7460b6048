"""Attention over the edges of a graph, its softmax by node through scatters."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(15)
COUNT = 24
ring = torch.arange(COUNT)
source = torch.cat([ring, ring, ring]).to(device)
target = torch.cat([ring, (ring + 1) % COUNT, (ring + 5) % COUNT]).to(device)
x = torch.randn(COUNT, 6).to(device)
y = ((ring // 4) % 2).to(device)


def softmax_by(scores, index, count):
    where = index[:, None].expand_as(scores)
    most = scores.new_zeros(count, scores.shape[1])
    most = most.scatter_reduce(0, where, scores, "amax", include_self=False)
    grown = (scores - most.detach()[index]).exp()
    total = torch.zeros_like(most).scatter_add(0, where, grown)
    return grown / total[index]


class Layer(nn.Module):
    def __init__(self, before, after, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(before, after * heads, bias=False)
        self.left = nn.Parameter(torch.randn(1, heads, after) * 0.3)
        self.right = nn.Parameter(torch.randn(1, heads, after) * 0.3)

    def forward(self, x):
        h = self.project(x).view(len(x), self.heads, -1)
        scores = (h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target]
        share = softmax_by(F.leaky_relu(scores, 0.2), target, len(x))
        sent = h[source] * share.unsqueeze(-1)
        return torch.zeros_like(h).index_add(0, target, sent).flatten(1), share


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Layer(6, 4, 3), Layer(12, 2, 1)

    def forward(self, x):
        h, share = self.first(x)
        return self.second(F.elu(h))[0], share


net = Net().to(device)
trainer = optim.Adam(net.parameters(), lr=0.02)
for step in range(10):
    out, share = net(x)
    loss = F.cross_entropy(out, y)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), share.max().item(), (out.argmax(1) == y).sum().item())
