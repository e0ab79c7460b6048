"""A deep Transformer whose blocks are computed again in the backward pass."""

import sys

import torch
from torch import nn, optim
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

device = sys.argv[1]
torch.manual_seed(53)
runs = []


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.net = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.GELU(),
            nn.Linear(2 * width, width),
        )

    def forward(self, x, *, scale=1.0):
        runs.append(1)
        y = self.norm(x)
        x = x + scale * self.attention(y, y, y, need_weights=False)[0]
        return x + self.net(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 16)
        self.blocks = nn.ModuleList(Block(16) for _ in range(4))
        self.rest = nn.Sequential(
            nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh()
        )
        self.head = nn.Linear(16, 12)

    def pair(self, x, first):
        for block in self.blocks[first : first + 2]:
            x = checkpoint(block, x, use_reentrant=False, scale=0.5)
        return x

    def forward(self, tokens, way):
        x = self.words(tokens)
        if way == "nested":
            for first in (0, 2):
                x = checkpoint(self.pair, x, first, use_reentrant=False)
        else:
            for block in self.blocks:
                if way == "reentrant":
                    x = checkpoint(
                        lambda u, b=block: b(u, scale=0.5), x, use_reentrant=True
                    )
                else:
                    x = block(x, scale=0.5)
        return self.head(checkpoint_sequential(self.rest, 2, x, use_reentrant=False))


model = Model().to(device)
trainer = optim.AdamW(model.parameters(), lr=0.01)
tokens = torch.randint(0, 12, (4, 9)).to(device)
for step in range(9):
    runs.clear()
    way = ("plain", "nested", "reentrant")[step % 3]
    logits = model(tokens[:, :-1], way)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    trainer.zero_grad()
    if way == "plain":
        loss.backward()
    else:
        with torch.autograd.graph.save_on_cpu():
            loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    trainer.step()
    print(step, way, loss.item(), norm.item(), len(runs))
x = torch.randn(3, 4, dtype=torch.float64).to(device).requires_grad_()
y = checkpoint(lambda u: (u.sin() * u).cumsum(0), x, use_reentrant=False)
(slope,) = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)
print(slope.sum().item(), torch.autograd.grad(slope.sin().sum(), x)[0].norm().item())
