"""A language model of letters: LSTM, hidden state carried on, greedy text."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(5)
text = "the quick brown fox jumps over the lazy dog and the dog sleeps on. " * 4
letters = sorted({*text})
codes = torch.tensor([letters.index(c) for c in text])


class Model(nn.Module):
    def __init__(self, count, size=24):
        super().__init__()
        self.table = nn.Embedding(count, size)
        self.cells = nn.LSTM(size, 32, num_layers=2)
        self.head = nn.Linear(32, count)

    def forward(self, x, state=None):
        y, state = self.cells(self.table(x), state)
        return self.head(y), state


model = Model(len(letters)).to(device)
trainer = optim.Adam(model.parameters(), lr=0.02)
rows = codes[:256].reshape(8, 32).t().to(device)
state = None
for step in range(10):
    at = step % 3 * 8
    out, state = model(rows[at : at + 8], state)
    state = tuple(s.detach() for s in state)
    wanted = rows[at + 1 : at + 9]
    loss = nn.functional.cross_entropy(out.flatten(0, 1), wanted.flatten())
    trainer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    trainer.step()
    print(step, loss.item(), loss.exp().item(), state[0].norm().item())
with torch.no_grad():
    code, state, said = codes[:1, None].to(device), None, ""
    for _ in range(20):
        out, state = model(code, state)
        code = out[-1:].argmax(-1)
        said += letters[code.item()]
    print(repr(said), out.max().item())
