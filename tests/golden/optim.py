"""Optimisers and schedules, written once and run by PyTorch and by pydevtensor.

optimise(torch, device) gives a dict: texts, and lists of floats.
"""

OPTIMIZERS = """
SGD(ps, lr=0.1)
SGD(ps, lr=0.1, weight_decay=0.05, maximize=True)
SGD(ps, lr=0.1, momentum=0.9)
SGD(ps, lr=0.1, momentum=0.8, dampening=0.4, weight_decay=0.1)
SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)
SGD(ps, lr=0.1, momentum=0.7, nesterov=True, maximize=True)
Adam(ps, lr=0.03)
Adam(ps, lr=0.03, betas=(0.4, 0.7), eps=1e-3, weight_decay=0.1)
Adam(ps, lr=0.03, amsgrad=True, maximize=True)
Adam(ps, lr=0.03, weight_decay=0.1, decoupled_weight_decay=True)
AdamW(ps, lr=0.03)
AdamW(ps, lr=0.03, weight_decay=0.3, amsgrad=True, betas=(0.5, 0.6))
AdamW(ps, lr=0.03, maximize=True)
Adagrad(ps, lr=0.1)
Adagrad(ps, lr=0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.3)
Adagrad(ps, lr=0.1, maximize=True)
Adadelta(ps)
Adadelta(ps, lr=0.5, rho=0.6, eps=1e-3, weight_decay=0.1, maximize=True)
RMSprop(ps, lr=0.03)
RMSprop(ps, lr=0.03, alpha=0.8, momentum=0.5, weight_decay=0.1)
RMSprop(ps, lr=0.03, centered=True, eps=1e-3)
RMSprop(ps, lr=0.03, centered=True, momentum=0.6, maximize=True, eps=1e-3)
""".strip().splitlines()

GROUPS = """
SGD([{'params': ps[:2], 'lr': 0.2}, {'params': ps[2:], 'momentum': 0.5}], lr=0.1)
Adam([{'params': ps[:1]}, {'params': ps[1:], 'weight_decay': 0.1}], lr=0.02)
SGD([('a', ps[0]), ('b', ps[1])], lr=0.1)
""".strip().splitlines()

ERRORS = """
SGD([])
SGD(ps[0])
SGD([ps[0] * 2])
SGD([1.0])
SGD({ps[0]})
SGD([{'params': [ps[0]]}, {'params': [ps[0]]}])
SGD([{'lr': 0.1}])
SGD(ps, lr=-1)
SGD(ps, momentum=-1)
SGD(ps, weight_decay=-1)
SGD(ps, nesterov=True)
SGD(ps, momentum=0.5, dampening=0.1, nesterov=True)
Adam(ps, lr=-1)
Adam(ps, eps=-1)
Adam(ps, betas=(1, 0.9))
Adam(ps, betas=(0.9, -0.1))
Adam(ps, weight_decay=-1)
Adagrad(ps, lr_decay=-1)
Adagrad(ps, initial_accumulator_value=-1)
Adadelta(ps, rho=1.5)
RMSprop(ps, alpha=-1)
RMSprop(ps, momentum=-1)
SGD(ps).add_param_group([ps[0]])
SGD(ps[:1]).add_param_group({'params': ps[0]})
SGD(ps).load_state_dict(SGD(ps[:1]).state_dict())
SGD(ps).load_state_dict({'state': {}, 'param_groups': []})
SGD(ps).load_state_dict({'state': {}})
Optimizer(ps, {}).step()
""".strip().splitlines()


def numbers(t):
    return t.detach().cpu().double().reshape(-1).tolist()


def make_parameters(torch, device):
    """Four leaves: row-major, one element, transposed, and one without dimensions."""
    torch.manual_seed(11)
    made = [torch.randn(3, 4), torch.randn(1), torch.randn(2, 5).t(), torch.randn(())]
    return [torch.nn.Parameter(t.to(device)) for t in made]


def backward(parameters, step):
    """Gradients by hand; the second parameter has none at odd steps."""
    for i, p in enumerate(parameters):
        p.grad = None
        if i != 1 or step % 2 == 0:
            ((p * (1.3 + i) + 0.1 * step).sin() + 0.2 * p * p).sum().backward()


def layout(value, names=()):
    """What a state_dict is made of, without the numbers in it."""
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{k!r}: {layout(v, names)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, (list, tuple)):
        inner = ", ".join(layout(v, names) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if hasattr(value, "dtype"):
        dtype = str(value.dtype).rpartition(".")[2]
        return f"{dtype}{list(value.shape)}"
    return repr(value)


def run(parameters, optimizer, first, last):
    for step in range(first, last):
        backward(parameters, step)
        optimizer.step()


def optimise(torch, device):
    """Every text and number, by name."""
    optim = torch.optim
    names = {**vars(optim), "torch": torch}
    found = {}
    for line in OPTIMIZERS + GROUPS:
        ps = make_parameters(torch, device)
        optimizer = eval(line, {**names, "ps": ps})
        run(ps, optimizer, 0, 7)
        found["after 7 steps of " + line] = [v for p in ps for v in numbers(p)]
        saved = optimizer.state_dict()
        found["layout of " + line] = layout(saved)
        again = [torch.nn.Parameter(p.detach().clone()) for p in ps]
        other = eval(line, {**names, "ps": again})
        other.load_state_dict(saved)
        run(again, other, 7, 12)
        found["5 steps after loading " + line] = [v for p in again for v in numbers(p)]
    for line in ERRORS:
        ps = make_parameters(torch, device)
        try:
            eval(line, {**names, "ps": ps})
        except Exception as error:
            found["error of " + line] = type(error).__name__
        else:
            found["error of " + line] = "none"
    return found
