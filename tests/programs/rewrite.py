"""A network traced to a graph, changed, split in two, and trained on."""

import operator
import sys

import torch
import torch.nn.functional as F
from torch import fx, nn, optim
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_module import split_module

device = sys.argv[1]
torch.manual_seed(24)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 16), nn.Linear(16, 16)
        self.norm, self.last = nn.LayerNorm(16), nn.Linear(16, 3)

    def forward(self, x):
        a = torch.relu(self.first(x))
        b = F.relu(self.norm(self.second(a))) + a
        return self.last(b)


class Count(fx.Interpreter):
    def run_node(self, n):
        seen[n.op] = seen.get(n.op, 0) + 1
        return super().run_node(n)


net = Net().to(device)
graph = fx.symbolic_trace(net)
x, y = torch.randn(32, 4).to(device), torch.randint(0, 3, (32,)).to(device)
print((graph(x) - net(x)).abs().max().item())
for node in graph.graph.nodes:
    if node.target in (torch.relu, F.relu):
        node.target, node.kwargs = F.gelu, {}
    if node.target is operator.add:
        with graph.graph.inserting_after(node):
            half = graph.graph.call_function(torch.mul, (node, 0.5))
        node.replace_all_uses_with(half, lambda user, half=half: user is not half)
graph.graph.lint()
graph.recompile()
print([node.name for node in graph.graph.nodes])
ShapeProp(graph).propagate(x)
print([tuple(n.meta["tensor_meta"].shape) for n in graph.graph.nodes])
seen = {}
Count(graph).run(x)
print(seen)
names = [n.name for n in graph.graph.nodes]
parts = split_module(graph, net, lambda n: int(names.index(n.name) > 4))
print([name for name, _ in parts.named_children()])
trainer = optim.SGD(parts.parameters(), lr=0.2)
for step in range(8):
    loss = F.cross_entropy(parts(x), y)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), net.first.weight.norm().item())
