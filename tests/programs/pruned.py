"""A network pruned in rounds, with training between them, and its weights made sparse."""

import sys

import torch
from torch import nn, optim
from torch.nn.utils import prune

device = sys.argv[1]
torch.manual_seed(58)
net = nn.Sequential(
    nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4)
)
net.to(device)
layers = [net[0], net[2], net[4]]
inputs = torch.randn(64, 10)
labels = ((inputs @ torch.randn(10, 4)).argmax(1)).to(device)
inputs = inputs.to(device)


class Smallest(prune.BasePruningMethod):
    """The smallest half of what is left."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        mask = default_mask.clone()
        least = t.abs().view(-1).topk(t.numel() // 2, largest=False).indices
        mask.view(-1)[least] = 0
        return mask


def train(steps):
    trainer = optim.SGD(net.parameters(), lr=0.2, momentum=0.9, nesterov=True)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(net(inputs), labels)
        trainer.zero_grad()
        loss.backward()
        trainer.step()
    return loss.item()


def share():
    return [round((x.weight == 0).float().mean().item(), 4) for x in layers]


print(train(12), share())
for amount in (0.3, 0.4):
    prune.global_unstructured(
        [(x, "weight") for x in layers],
        pruning_method=prune.L1Unstructured,
        amount=amount,
    )
    print(amount, train(8), share(), sorted(dict(layers[0].named_buffers())))
prune.ln_structured(layers[0], "weight", amount=4, n=2, dim=0)
Smallest.apply(layers[1], "weight")
print(train(6), share(), prune.is_pruned(net))
for layer in layers:
    prune.remove(layer, "weight")
print(share(), sorted(net.state_dict())[:3], prune.is_pruned(net))
weight = layers[0].weight.detach().to_sparse()
found = torch.sparse.mm(weight, inputs.t()).t() + layers[0].bias
print(weight.values().numel(), (found - layers[0](inputs)).abs().max().item() < 1e-4)
