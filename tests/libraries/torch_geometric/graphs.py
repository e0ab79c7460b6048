"""nine convolutions, pooling, batches of graphs, `MessagePassing` of the program's own, a step of training"""

import torch
from torch_geometric import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import (
    add_self_loops,
    degree,
    softmax,
    to_dense_adj,
    to_undirected,
)

torch.manual_seed(0)
edges = to_undirected(torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
x = torch.randn(5, 4)
print(edges.tolist(), degree(edges[0]).tolist(), to_dense_adj(edges).sum().item())
print(add_self_loops(edges)[0].shape, softmax(torch.randn(10), edges[1]).sum().item())
LAYERS = {
    "GCNConv": nn.GCNConv(4, 3),
    "SAGEConv": nn.SAGEConv(4, 3),
    "GATConv": nn.GATConv(4, 3, heads=2),
    "GATv2Conv": nn.GATv2Conv(4, 3),
    "GINConv": nn.GINConv(torch.nn.Linear(4, 3)),
    "GraphConv": nn.GraphConv(4, 3),
    "TransformerConv": nn.TransformerConv(4, 3),
    "ChebConv": nn.ChebConv(4, 3, K=2),
    "TAGConv": nn.TAGConv(4, 3),
}
for name, layer in LAYERS.items():
    y = layer(x, edges)
    y.sum().backward()
    print(name, y.shape, y.abs().sum().item())


class Mean(nn.MessagePassing):
    def __init__(self):
        super().__init__(aggr="mean")
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.layer(x_j - x_i)


print(Mean()(x, edges).sum().item())
data = [
    Data(x=torch.randn(5, 4), edge_index=edges, y=torch.tensor([k % 2]))
    for k in range(8)
]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.GCNConv(4, 8), torch.nn.Linear(8, 2)

    def forward(self, batch):
        h = self.first(batch.x, batch.edge_index).relu()
        return self.second(nn.global_mean_pool(h, batch.batch))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.05)
for _ in range(3):
    for batch in DataLoader(data, batch_size=4):
        loss = torch.nn.functional.cross_entropy(net(batch), batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
