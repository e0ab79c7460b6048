"""Vectors of words by skip-grams: sparse gradients, SparseAdam, drawn negatives."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(9)
COUNT, SIZE = 40, 8
walk = (torch.randn(300).mul(3).round().long().cumsum(0)) % COUNT
inner = nn.Embedding(COUNT, SIZE, sparse=True)
outer = nn.Embedding(COUNT, SIZE, sparse=True)
nn.init.uniform_(inner.weight, -0.5, 0.5)
nn.init.zeros_(outer.weight)
inner.to(device), outer.to(device)
often = torch.bincount(walk, minlength=COUNT).float() ** 0.75
trainer = optim.SparseAdam([*inner.parameters(), *outer.parameters()], lr=0.05)
for step in range(12):
    at = torch.randint(1, 299, (32,))
    center, near = walk[at].to(device), walk[at + 1].to(device)
    far = torch.multinomial(often, 32 * 4, replacement=True).view(32, 4).to(device)
    c = inner(center)
    good = F.logsigmoid((c * outer(near)).sum(1))
    bad = F.logsigmoid(-(outer(far) @ c.unsqueeze(2)).squeeze(2)).sum(1)
    loss = -(good + bad).mean()
    trainer.zero_grad()
    loss.backward()
    rows = inner.weight.grad.coalesce().indices().shape[1]
    trainer.step()
    print(step, loss.item(), inner.weight.grad.is_sparse, rows)
unit = F.normalize(inner.weight.detach(), dim=1)
print((unit @ unit[3]).topk(3).values.tolist())
