"""Tags of words by a bidirectional GRU and a conditional random field (Viterbi)."""

import sys

import torch
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

device = sys.argv[1]
torch.manual_seed(56)


class Field(nn.Module):
    def __init__(self, tags):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(tags))
        self.end = nn.Parameter(torch.zeros(tags))
        self.move = nn.Parameter(torch.randn(tags, tags) * 0.1)

    def score(self, emissions, tags, mask):
        found = self.start[tags[:, 0]] + emissions[:, 0].gather(1, tags[:, :1])[:, 0]
        for t in range(1, tags.shape[1]):
            step = self.move[tags[:, t - 1], tags[:, t]]
            step = step + emissions[:, t].gather(1, tags[:, t : t + 1])[:, 0]
            found = found + step * mask[:, t]
        last = mask.sum(1).long() - 1
        return found + self.end[tags.gather(1, last[:, None])[:, 0]]

    def total(self, emissions, mask):
        alpha = self.start + emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            new = torch.logsumexp(alpha[:, :, None] + self.move, 1) + emissions[:, t]
            alpha = torch.where(mask[:, t, None] > 0, new, alpha)
        return torch.logsumexp(alpha + self.end, 1)

    @torch.no_grad()
    def best(self, emissions):
        score, back = self.start + emissions[0], []
        for emission in emissions[1:]:
            score, origin = (score[:, None] + self.move).max(0)
            score = score + emission
            back.append(origin)
        tag = int((score + self.end).argmax())
        path = [tag]
        for origin in reversed(back):
            path.append(int(origin[path[-1]]))
        return path[::-1]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 10, padding_idx=0)
        self.gru = nn.GRU(10, 8, batch_first=True, bidirectional=True)
        self.out = nn.Linear(16, 4)
        self.field = Field(4)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(
            self.words(words), lengths, batch_first=True, enforce_sorted=False
        )
        found, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.out(found)


lengths = torch.tensor([5, 8, 3, 7, 6, 8])
sentences = [torch.randint(1, 20, (int(n),)) for n in lengths]
tags = pad_sequence([(s + s.roll(1)) % 4 for s in sentences], batch_first=True).to(
    device
)
words = pad_sequence(sentences, batch_first=True).to(device)
mask = (words > 0).float()
model = Tagger().to(device)
trainer = optim.Adam(model.parameters(), lr=0.05)
for step in range(12):
    emissions = model(words, lengths)
    loss = (
        model.field.total(emissions, mask) - model.field.score(emissions, tags, mask)
    ).mean()
    trainer.zero_grad()
    loss.backward()
    trainer.step()
    print(step, loss.item(), model.field.move.grad.norm().item())
emissions = model(words, lengths)
for row, n in enumerate(lengths.tolist()):
    print(model.field.best(emissions[row, :n]), tags[row, :n].tolist())
