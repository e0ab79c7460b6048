"""Nodes of a graph in groups: convolutions by a sparse adjacency, COO and CSR."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(14)
COUNT, GROUPS = 60, 3
group = torch.arange(COUNT) % GROUPS
near = (group[:, None] == group[None]).float() * 0.2 + 0.02
drawn = torch.rand(COUNT, COUNT).triu(1)
joined = ((drawn < near) & (drawn > 0)).nonzero().t()
edges = torch.cat([joined, joined.flip(0), torch.arange(COUNT).repeat(2, 1)], 1)
degree = torch.zeros(COUNT).index_add_(0, edges[0], torch.ones(edges.shape[1]))
weights = (degree[edges[0]] * degree[edges[1]]).rsqrt()
matrix = torch.sparse_coo_tensor(edges, weights, (COUNT, COUNT)).coalesce().to(device)
print(matrix.shape, matrix._nnz(), matrix.values().sum().item())
features = (torch.randn(COUNT, 8) + F.one_hot(group, 8)).to(device)
group = group.to(device)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, GROUPS)

    def forward(self, x, matrix):
        x = torch.sparse.mm(matrix, self.first(x)).relu()
        return matrix @ self.second(x)


net = Net().to(device)
trainer = optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)
for name, each in (("coo", matrix), ("csr", matrix.to_sparse_csr())):
    for step in range(6):
        out = net(features, each)
        loss = F.cross_entropy(out[:30], group[:30])
        trainer.zero_grad()
        loss.backward()
        trainer.step()
        right = (out.argmax(1) == group).sum().item()
        print(name, step, loss.item(), right)
dense = matrix.to_dense()
print((torch.sparse.mm(matrix, matrix).to_dense() - dense @ dense).abs().max().item())
print(torch.sparse.sum(matrix, 0).to_dense()[:4].tolist())
