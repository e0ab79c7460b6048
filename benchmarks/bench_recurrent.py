"""Recurrent networks: milliseconds of a training step, beside PyTorch.

python benchmarks/bench_recurrent.py [rounds]

The limit: no case takes longer than PyTorch.
"""

from compare import compare, scopes_of

SETUP = """
nn = torch.nn
torch.set_num_threads(2)
torch.manual_seed(1)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10000, 200)
        self.lstm = nn.LSTM(200, 200, 2)
        self.scores = nn.Linear(200, 10000)

    def forward(self, x, state):
        y, state = self.lstm(self.words(x), state)
        return self.scores(y).flatten(0, 1), state


words = Words()
text, following = torch.randint(10000, (2, 35, 20))
zeros = torch.zeros(2, 20, 200)
optimizer = torch.optim.SGD(words.parameters(), 0.1)


def learn_words():
    optimizer.zero_grad()
    scores, state = words(text, (zeros, zeros))
    nn.functional.cross_entropy(scores, following.flatten()).backward()
    optimizer.step()


series = torch.randn(35, 32, 28)
networks = {
    name: getattr(nn, name)(28, 256) for name in ("RNN", "GRU", "LSTM")
}
deep = nn.LSTM(28, 64, 2, bidirectional=True)
cell, one = nn.LSTMCell(28, 64), torch.randn(32, 28)


def learn(network, x):
    network.zero_grad()
    network(x)[0].sum().backward()
"""
CASES = [
    ("LSTM language model: 2 x 200, 35 x 20, 10000 words", "learn_words()"),
    ("RNN of 256, 35 x 32, both", "learn(networks['RNN'], series)"),
    ("GRU of 256, 35 x 32, both", "learn(networks['GRU'], series)"),
    ("LSTM of 256, 35 x 32, both", "learn(networks['LSTM'], series)"),
    ("LSTM of 2 x 64, both directions, both", "learn(deep, series)"),
    ("LSTMCell of 64, batch of 32, both", "learn(cell, one)"),
    ("LSTM of 256, 35 x 32, forward", "with torch.no_grad(): networks['LSTM'](series)"),
]


def main():
    compare(CASES, scopes_of(SETUP), "ms", 20)


if __name__ == "__main__":
    main()
