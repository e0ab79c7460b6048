"""What modules are like: text, attributes, states, results, and the errors of wrong use.

One case a line: statements, the last of them the expression whose value is recorded, or
the exception that it raises. The test evaluates them on each device, save those under a
heading that ends with "on the CPU".
"""

import warnings

from describe import builtin_name, describe, run

SETUP = (
    "import copy, pickle; from collections import OrderedDict; "
    "nn, F = torch.nn, torch.nn.functional; torch.manual_seed(3); "
    "x = torch.arange(6.0).reshape(2, 3) / 4 - 0.5; i = torch.tensor([[1, 2], [2, 0]]); "
    "w = torch.arange(12.0).reshape(4, 3) / 8 - 0.6; t = torch.tensor([0, 2])"
)

CASES = {
    "Embedding": """
        repr(nn.Embedding(5, 3))
        repr(nn.Embedding(5, 3, padding_idx=-2, max_norm=1., norm_type=1, scale_grad_by_freq=True))
        repr(nn.Embedding(5, 3, 0, 2, sparse=True))
        nn.Embedding(5, 3, padding_idx=-2).padding_idx
        nn.Embedding(5, 3, padding_idx=-2).weight[3]
        e = nn.Embedding(5, 3); [e.num_embeddings, e.embedding_dim, e.padding_idx, e.max_norm, e.norm_type, e.scale_grad_by_freq, e.sparse]
        list(nn.Embedding(5, 3).state_dict())
        nn.Embedding(0, 3).weight
        nn.Embedding(5, 3, padding_idx=5)
        nn.Embedding(5, 3, padding_idx=-6)
        nn.Embedding(4, 3, _weight=w[:2])
        nn.Embedding(4, 3, _weight=w, _freeze=True).weight
        nn.Embedding.from_pretrained(w)(i)
        nn.Embedding.from_pretrained(w).weight.requires_grad
        nn.Embedding.from_pretrained(w, freeze=False).weight.requires_grad
        nn.Embedding.from_pretrained(w).weight.data_ptr() == w.data_ptr()
        repr(nn.Embedding.from_pretrained(w, padding_idx=1))
        nn.Embedding.from_pretrained(w, padding_idx=1).weight
        nn.Embedding.from_pretrained(w[0])
        nn.Embedding.from_pretrained(w)([1])
        nn.Embedding.from_pretrained(w)(torch.tensor([1.]))
        nn.Embedding.from_pretrained(w)(torch.tensor([True]))
        F.embedding(i, w)
        F.embedding(i.int(), w)
        F.embedding(i.short(), w)
        F.embedding(i.T, w.T)
        F.embedding(torch.tensor(1), w)
        F.embedding(torch.empty(0, 2, dtype=torch.int64), w)
        F.embedding(i, w[0])
        F.embedding(i, w.long())
        F.embedding(i, w, 4)
        F.embedding(i, w, -5)
        torch.embedding(w, i, 1)
        F.embedding(i, w.requires_grad_()).grad_fn.name()
        (F.embedding(i, w.requires_grad_()) * torch.arange(12.).reshape(2, 2, 3)).sum().backward(); w.grad
        (F.embedding(i, w.requires_grad_(), 2) * torch.arange(12.).reshape(2, 2, 3)).sum().backward(); w.grad
        (F.embedding(i, w.requires_grad_(), -1, scale_grad_by_freq=True) * torch.arange(12.).reshape(2, 2, 3)).sum().backward(); w.grad
        g, = torch.autograd.grad((F.embedding(i, w.requires_grad_(), 1) ** 3).sum(), w, create_graph=True); g.square().sum().backward(); w.grad
        torch.autograd.grad((F.embedding(i, w.requires_grad_()) ** 2).sum(), w, create_graph=True)[0].grad_fn.name()
        F.embedding(i, w, max_norm=0.5)
        F.embedding(i, w, max_norm=0.5, norm_type=1.0); w
        F.embedding(i, w, max_norm=0.3, norm_type=float('inf')); w
        e = nn.Embedding(4, 3, _weight=w, max_norm=0.4); y = e(i); y.sum().backward(); [w, y, e.weight.grad]
    """,
    "Embedding, on the CPU": """
        nn.Embedding(5, 3).weight
        nn.Embedding(7, 3, padding_idx=2).weight
        nn.Embedding(2, 3).weight
        nn.Embedding(5, 3, dtype=torch.float64).weight
        e = nn.Embedding(4, 2); e.reset_parameters(); e.weight
        F.embedding(torch.tensor([4]), w)
        F.embedding(torch.tensor([-1]), w)
    """,
    "one_hot": """
        F.one_hot(t)
        F.one_hot(t, 5)
        F.one_hot(i)
        F.one_hot(torch.tensor(2))
        F.one_hot(torch.empty(0, dtype=torch.int64), 2)
        F.one_hot(torch.empty(0, dtype=torch.int64))
        F.one_hot(t, 0)
        F.one_hot(t, -2)
        F.one_hot(t.int())
        F.one_hot(x)
    """,
    "one_hot, on the CPU": """
        F.one_hot(t, 2)
        F.one_hot(-t)
        F.one_hot(-t, 3)
    """,
}


def cases():
    for heading, block in CASES.items():
        for line in filter(None, map(str.strip, block.splitlines())):
            yield heading, line


def answer(source, torch):
    """The described value of source, or the exception that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return describe(run(f"{SETUP}; {source}", {"torch": torch}), torch)
        except Exception as error:
            return {"raises": type(error).__name__, "builtin": builtin_name(error)}


def make(torch):
    return {
        "setup": SETUP,
        "cases": [[heading, line, answer(line, torch)] for heading, line in cases()],
    }
