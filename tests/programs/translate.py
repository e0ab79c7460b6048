"""Sequences turned round: a GRU encoder, a GRU decoder, attention between them."""

import sys

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = sys.argv[1]
torch.manual_seed(6)
START, COUNT = 1, 12
lengths = torch.randint(3, 8, (16,))
given = [torch.randint(2, COUNT, (n,)) for n in lengths.tolist()]
source = pad_sequence(given, batch_first=True).to(device)
target = pad_sequence([s.flip(0) for s in given], batch_first=True).to(device)
begun = torch.cat([torch.full_like(target[:, :1], START), target[:, :-1]], 1)


class Model(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.table = nn.Embedding(COUNT, size, padding_idx=0)
        self.read = nn.GRU(size, size, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * size, size)
        self.write = nn.GRU(size, size, batch_first=True)
        self.ask = nn.Linear(size, 2 * size, bias=False)
        self.head = nn.Linear(3 * size, COUNT)

    def forward(self, source, lengths, begun):
        packed = pack_padded_sequence(
            self.table(source), lengths, batch_first=True, enforce_sorted=False
        )
        memory, last = self.read(packed)
        memory, _ = pad_packed_sequence(memory, batch_first=True)
        first = self.bridge(torch.cat([last[0], last[1]], 1)).tanh().unsqueeze(0)
        states, _ = self.write(self.table(begun), first)
        scores = self.ask(states) @ memory.transpose(1, 2)
        scores = scores.masked_fill((source == 0).unsqueeze(1), float("-inf"))
        found = scores.softmax(-1) @ memory
        return self.head(torch.cat([states, found], 2)), scores


model = Model().to(device)
trainer = optim.Adamax(model.parameters(), lr=0.02)
for step in range(10):
    out, scores = model(source, lengths, begun)
    loss = F.cross_entropy(out.transpose(1, 2), target, ignore_index=0)
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    hits = ((out.argmax(-1) == target) & (target != 0)).sum().item()
    print(step, loss.item(), hits, scores[0, 0, 0].item())
