"""A small GPT: causal attention, tied weights, decay by group, greedy generation."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(8)
COUNT, SIZE, HEADS, BLOCK = 16, 32, 4, 12


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.three = nn.Linear(SIZE, 3 * SIZE, bias=False)
        self.out = nn.Linear(SIZE, SIZE, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        parts = self.three(x).split(SIZE, dim=2)
        q, k, v = (p.view(b, t, HEADS, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, SIZE))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(SIZE), nn.LayerNorm(SIZE)
        self.attention = Attention()
        self.wide, self.back = nn.Linear(SIZE, 4 * SIZE), nn.Linear(4 * SIZE, SIZE)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.back(F.gelu(self.wide(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(COUNT, SIZE), nn.Embedding(BLOCK, SIZE)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.norm = nn.LayerNorm(SIZE)
        self.head = nn.Linear(SIZE, COUNT, bias=False)
        self.words.weight = self.head.weight
        self.apply(self.begin)

    @staticmethod
    def begin(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.05)

    def forward(self, x, wanted=None):
        y = self.words(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for layer in self.layers:
            y = layer(y)
        out = self.head(self.norm(y))
        if wanted is None:
            return out[:, -1]
        return F.cross_entropy(out.view(-1, COUNT), wanted.reshape(-1))


model = GPT().to(device)
print(sum(p.numel() for p in model.parameters()))
steps = torch.arange(BLOCK + 1)
data = (torch.randint(0, COUNT, (24, 1)) + steps * torch.randint(1, 4, (24, 1))) % COUNT
data = data.to(device)
wide = [p for p in model.parameters() if p.dim() > 1]
thin = [p for p in model.parameters() if p.dim() < 2]
groups = [{"params": wide, "weight_decay": 0.1}, {"params": thin, "weight_decay": 0.0}]
trainer = optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
for step in range(10):
    loss = model(data[:, :-1], data[:, 1:])
    trainer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    trainer.step()
    print(step, loss.item(), norm.item())
with torch.no_grad():
    said = data[:1, :4]
    for _ in range(6):
        said = torch.cat([said, model(said).argmax(1, keepdim=True)], 1)
print(said.tolist(), model(data[:1, :4]).max().item())
