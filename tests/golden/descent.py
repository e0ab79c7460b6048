"""The optimisers with more state than a sum or a mean, in float32 and float64, written
once and run by PyTorch and by pydevtensor.

descend(torch, device) gives a dict: texts, and lists of floats.
"""

from golden.optim import backward, layout, numbers

OPTIMIZERS = """
RAdam(ps, lr=torch.tensor(0.03125))
RAdam(ps, lr=0.03, betas=(0.5, 0.9), weight_decay=0.1, maximize=True)
RAdam(ps, lr=0.03, betas=(0.5, 0.99), weight_decay=0.1, decoupled_weight_decay=True, eps=1e-3)
NAdam(ps, lr=0.03)
NAdam(ps, lr=0.03, betas=(0.5, 0.9), weight_decay=0.1, maximize=True, momentum_decay=0.1)
NAdam(ps, lr=0.03, betas=(0.5, 0.99), weight_decay=0.1, decoupled_weight_decay=True, eps=1e-3)
Adamax(ps)
Adamax(ps, lr=0.1, betas=(0.5, 0.6), weight_decay=0.1, maximize=True, eps=0.1)
ASGD(ps)
ASGD(ps, lr=0.1, lambd=0.1, alpha=0.5, t0=3, weight_decay=0.1, maximize=True)
ASGD(ps, lr=0.1, lambd=-0.1, alpha=-0.5, t0=0)
Rprop(ps)
Rprop(ps, lr=0.3, etas=(0.3, 1.5), step_sizes=(0.1, 0.5), maximize=True)
AdamW(ps, lr=0.03, weight_decay=0.3, amsgrad=True, maximize=True)
NAdam([{'params': ps[:1]}, {'params': ps[1:], 'momentum_decay': 0.5}], lr=0.05)
ASGD([{'params': ps[:1]}, {'params': ps[1:], 'lr': 0.2, 't0': 2}], lr=0.1)
""".strip().splitlines()

ERRORS = """
RAdam(ps, lr=-1)
RAdam(ps, lr=torch.tensor([0.1, 0.2]))
RAdam(ps, eps=-1)
RAdam(ps, betas=(1, 0.9))
RAdam(ps, betas=(0.9, 1.0))
RAdam(ps, weight_decay=-1)
NAdam(ps, lr=-1)
NAdam(ps, eps=-1)
NAdam(ps, betas=(-1, 0.9))
NAdam(ps, weight_decay=-1)
NAdam(ps, momentum_decay=-1)
Adamax(ps, lr=-1)
Adamax(ps, eps=-1)
Adamax(ps, betas=(0.9, 2))
Adamax(ps, weight_decay=-1)
ASGD(ps, lr=-1)
ASGD(ps, weight_decay=-1)
ASGD(ps, lambd=-1, alpha=-1, t0=-1)
ASGD([])
Rprop(ps, lr=-1)
Rprop(ps, etas=(0.5, 1.0))
Rprop(ps, etas=(0, 1.5))
Rprop(ps, etas=(1.0, 1.5))
Rprop(ps, etas=0.5)
Rprop(ps, step_sizes=(2, 1))
SGD(ps, lr=torch.tensor([0.1, 0.2]))
""".strip().splitlines()


def make_parameters(torch, device, dtype):
    """Three leaves: transposed, one element, and none."""
    values = [[0.5, -1.0], [3.0, -0.25]]
    made = [torch.tensor(values).t(), torch.tensor([0.7]), torch.zeros(2, 0)]
    dtype = getattr(torch, dtype)
    return [torch.nn.Parameter(t.to(device=device, dtype=dtype)) for t in made]


def run(parameters, optimizer, first, last):
    for step in range(first, last):
        backward(parameters, step)
        optimizer.step()


def content(parameters, saved):
    """The numbers of the parameters, and then of their states."""
    states = [v for kept in saved["state"].values() for v in kept.values()]
    return [v for t in [*parameters, *states] for v in numbers(t)]


def descend(torch, device):
    """Every text and number, by name."""
    names = {**vars(torch.optim), "torch": torch}
    found = {}
    for line in OPTIMIZERS:
        for dtype in ("float32", "float64"):
            ps = make_parameters(torch, device, dtype)
            optimizer = eval(line, {**names, "ps": ps})
            run(ps, optimizer, 0, 8)
            saved = optimizer.state_dict()
            found[f"{dtype} after 8 steps of {line}"] = content(ps, saved)
            again = [torch.nn.Parameter(p.detach().clone()) for p in ps]
            other = eval(line, {**names, "ps": again})
            other.load_state_dict(saved)
            found[f"{dtype} layout of {line}"] = layout(other.state_dict())
            run(again, other, 8, 13)
            loaded = content(again, other.state_dict())
            found[f"{dtype}, 5 steps after loading {line}"] = loaded
    for line in ERRORS:
        ps = make_parameters(torch, device, "float32")
        try:
            eval(line, {**names, "ps": ps})
        except Exception as error:
            found["error of " + line] = type(error).__name__
        else:
            found["error of " + line] = "none"
    return found
