"""Sentences of words in order or not: a Transformer encoder with padding."""

import math
import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(7)
COUNT, SIZE, LONGEST = 20, 16, 9
lengths = torch.randint(4, LONGEST + 1, (24,))
words = torch.randint(1, COUNT, (24, LONGEST))
words[::2] = words[::2].sort(1).values
padding = torch.arange(LONGEST)[None] >= lengths[:, None]
words = words.masked_fill(padding, 0).to(device)
padding, labels = padding.to(device), (torch.arange(24) % 2).float().to(device)


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        at = torch.arange(LONGEST).unsqueeze(1)
        rate = torch.exp(torch.arange(0, SIZE, 2) * (-math.log(10000.0) / SIZE))
        table = torch.zeros(LONGEST, SIZE)
        table[:, 0::2], table[:, 1::2] = (at * rate).sin(), (at * rate).cos()
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(COUNT, SIZE, padding_idx=0)
        self.positions = Positions()
        layer = nn.TransformerEncoderLayer(SIZE, 4, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(SIZE, 1)

    def forward(self, x, padding):
        y = self.positions(self.words(x) * math.sqrt(SIZE))
        y = self.encoder(y, src_key_padding_mask=padding)
        kept = (~padding).unsqueeze(2).float()
        return self.head((y * kept).sum(1) / kept.sum(1)).squeeze(1)


model = Model().to(device)
trainer = optim.NAdam(model.parameters(), lr=5e-3)
schedule = optim.lr_scheduler.LambdaLR(trainer, lambda k: min(1, (k + 1) / 4))
for step in range(8):
    out = model(words, padding)
    loss = nn.functional.binary_cross_entropy_with_logits(out, labels)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    schedule.step()
    print(step, loss.item(), ((out > 0) == labels.bool()).sum().item(), out[0].item())
