"""Topics of short texts: bags of embeddings, sparse SGD and Adagrad."""

import sys

import torch
from torch import nn, optim

device = sys.argv[1]
torch.manual_seed(10)
COUNT, TOPICS = 30, 3
topics = torch.randint(0, TOPICS, (40,))
sizes = torch.randint(2, 7, (40,))
texts = [
    torch.randint(10 * int(t), 10 * int(t) + 10, (int(n),))
    for t, n in zip(topics, sizes, strict=True)
]
words = torch.cat(texts).to(device)
starts = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)[:-1]]).to(device)
topics = topics.to(device)
for name, options in (("SGD", {"lr": 1.0}), ("Adagrad", {"lr": 0.3})):
    bag = nn.EmbeddingBag(COUNT, 8, sparse=True, mode="mean")
    head = nn.Linear(8, TOPICS)
    bag.to(device), head.to(device)
    trainers = [
        getattr(optim, name)(bag.parameters(), **options),
        optim.Adam(head.parameters(), lr=0.02),
    ]
    for step in range(8):
        out = head(bag(words, starts))
        loss = nn.functional.cross_entropy(out, topics)
        for trainer in trainers:
            trainer.zero_grad()
        loss.backward()
        for trainer in trainers:
            trainer.step()
        right = (out.argmax(1) == topics).sum().item()
        print(name, step, loss.item(), right, bag.weight.norm().item())
