"""A mixture of experts: a gate sends each token to the best two of four networks."""

import sys

import torch
from torch import nn, optim
from torch.nn import functional as F

device = sys.argv[1]
torch.manual_seed(54)


class Mixture(nn.Module):
    def __init__(self, width, count, best):
        super().__init__()
        self.best = best
        self.gate = nn.Linear(width, count, bias=False)
        self.inner = nn.Parameter(torch.randn(count, width, 2 * width) * 0.2)
        self.outer = nn.Parameter(torch.randn(count, 2 * width, width) * 0.2)

    def forward(self, x):
        shares = self.gate(x).softmax(-1)
        top, chosen = shares.topk(self.best, dim=-1)
        top = top / top.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for expert in range(len(self.inner)):
            rows, slot = (chosen == expert).nonzero(as_tuple=True)
            if not len(rows):
                continue
            y = F.silu(x[rows] @ self.inner[expert]) @ self.outer[expert]
            out.index_add_(0, rows, y * top[rows, slot, None])
        load = F.one_hot(chosen, len(self.inner)).sum(1).float().mean(0)
        return out, (load * shares.mean(0)).sum() * len(self.inner), load


tokens = torch.randn(48, 8).to(device)
kind = (tokens[:, 0] > 0).long() * 2 + (tokens[:, 1] > 0).long()
turns = torch.randn(4, 8, 8).to(device) * 0.4
wanted = torch.einsum("ni,nio->no", tokens, turns[kind])
layer = Mixture(8, 4, 2).to(device)
trainer = optim.RMSprop(layer.parameters(), lr=0.005)
for step in range(15):
    out, balance, load = layer(tokens)
    loss = F.mse_loss(out, wanted) + 0.01 * balance
    trainer.zero_grad(set_to_none=False)
    loss.backward()
    trainer.step()
    print(step, loss.item(), balance.item(), [round(x, 4) for x in load.tolist()])
with torch.no_grad():
    heavy = torch.bmm(
        F.silu(torch.bmm(tokens.expand(4, -1, -1), layer.inner)), layer.outer
    )
    print(heavy.mean().item(), heavy.std((1, 2)).tolist())
