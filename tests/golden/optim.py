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

SCHEDULES = """
StepLR(o, 3, 0.5)
MultiStepLR(o, [2, 5, 5, 20], 0.3)
ExponentialLR(o, 0.9)
ConstantLR(o, 0.25, 7)
LinearLR(o, 0.2, 0.9, 12)
PolynomialLR(o, 17, 1.5)
LambdaLR(o, lambda epoch: 1 / (epoch + 1))
LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 + epoch])
MultiplicativeLR(o, lambda epoch: 0.5 + epoch / 50)
CosineAnnealingLR(o, 6, 0.01)
CosineAnnealingLR(o, 40)
CosineAnnealingWarmRestarts(o, 4, 2, 0.01)
CosineAnnealingWarmRestarts(o, 5)
OneCycleLR(o, 0.5, 40)
OneCycleLR(o, [0.5, 0.7], epochs=5, steps_per_epoch=7, anneal_strategy='linear')
OneCycleLR(o, 0.5, 31, three_phase=True, pct_start=0.2, div_factor=10.0)
OneCycleLR(o, 0.5, 33, cycle_momentum=False, final_div_factor=50.0)
CyclicLR(o, 0.01, 0.5, 4)
CyclicLR(o, [0.01, 0.02], [0.5, 0.7], 3, 5, 'triangular2', base_momentum=0.5)
CyclicLR(o, 0.1, 0.5, 4, mode='exp_range', gamma=0.9, cycle_momentum=False)
CyclicLR(o, 0.1, 0.5, 2.5, scale_fn=lambda n: 1 / n, scale_mode='cycle')
SequentialLR(o, [ConstantLR(o, 0.1, 4), ExponentialLR(o, 0.9)], [6])
SequentialLR(o, [LinearLR(o, 0.1, 1.0, 5), StepLR(o, 4), CosineAnnealingLR(o, 9)], [5, 12])
ChainedScheduler([ConstantLR(o, 0.1, 4), ExponentialLR(o, 0.9)])
ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=2)
ReduceLROnPlateau(o, 'max', 0.3, 0, 0.1, 'abs', min_lr=[0.001, 0.01])
""".strip().splitlines()

SCHEDULE_ERRORS = """
StepLR(1, 3)
StepLR(o, 3, last_epoch=5)
LambdaLR(o, [lambda epoch: 1])
ConstantLR(o, 1.5)
LinearLR(o, 0.0)
LinearLR(o, 1.0, 1.5)
CosineAnnealingWarmRestarts(o, 0)
CosineAnnealingWarmRestarts(o, 2, 0)
OneCycleLR(o, 0.1)
OneCycleLR(o, 0.1, 0)
OneCycleLR(o, 0.1, 10, pct_start=2.0)
OneCycleLR(o, 0.1, 10, anneal_strategy='x')
OneCycleLR(o, [0.1], 10)
OneCycleLR(Adagrad([torch.ones(1, requires_grad=True)]), 0.1, 10)
[s.step() for s in [OneCycleLR(o, 0.1, 3)] * 9]
CyclicLR(1, 0.1, 1.0)
CyclicLR(o, 0.1, 1.0, mode='x')
CyclicLR(o, [0.1], 1.0)
CyclicLR(o, 0.1, [1.0, 2.0, 3.0])
CyclicLR(o, 0.1, 1.0, base_momentum=[0.1])
CyclicLR(o, 0.1, 1.0, 0)
CyclicLR(o, 0.1, 1.0, 0, 0)
CyclicLR(o, 0.1, 1.0, last_epoch=4)
CyclicLR(Adagrad([torch.ones(1, requires_grad=True)]), 0.1, 1.0)
SequentialLR(o, [], [])
SequentialLR(o, [StepLR(o, 3)], [1])
SequentialLR(o, [ReduceLROnPlateau(o), StepLR(o, 3)], [1])
ChainedScheduler([])
ReduceLROnPlateau(o, factor=1.0)
ReduceLROnPlateau(o, 'least')
ReduceLROnPlateau(o, threshold_mode='x')
ReduceLROnPlateau(o, min_lr=[0.1])
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
            "{"
            + ", ".join(f"{k!r}: {layout(v, names)}" for k, v in value.items())
            + "}"
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


def two_groups(torch, adam):
    ps = [torch.ones(1, requires_grad=True) for _ in range(2)]
    groups = [{"params": ps[:1]}, {"params": ps[1:], "lr": 0.25}]
    if adam:
        return torch.optim.Adam(groups, lr=0.5)
    return torch.optim.SGD(groups, lr=0.5, momentum=0.9)


def schedule(torch, line, adam):
    """Rates and momenta of 30 steps, and of the last 15 once more after loading."""
    names = {**vars(torch.optim), **vars(torch.optim.lr_scheduler), "torch": torch}
    figures = [5, 4, 3, 3, 3, 3, 2, 2.2, 2.1, 1, 1, 1, 1, 1, 0.9] * 2

    def build():
        optimizer = two_groups(torch, adam)
        return optimizer, eval(line, {**names, "o": optimizer})

    def go(pair, first, last):
        optimizer, s = pair
        for step in range(first, last):
            for group in optimizer.param_groups:
                seen.append(float(group["lr"]))
                seen.append(float(group["betas"][0] if adam else group["momentum"]))
            optimizer.step()
            s.step(*([figures[step]] if "Plateau" in line else []))

    seen = []
    first = build()
    go(first, 0, 15)
    saved = [part.state_dict() for part in first]
    keys = " ".join(sorted(saved[1]))  # PyTorch takes one of them away when it loads
    go(first, 15, 30)
    second = build()
    for part, state in zip(second, saved, strict=True):
        part.load_state_dict(state)
    go(second, 15, 30)
    return seen, keys


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
    for line in SCHEDULES:
        for adam in (False, True) if "Cyc" in line else (False,):
            rates, keys = schedule(torch, line, adam)
            found[f"rates of {line}, {'betas' if adam else 'momentum'}"] = rates
            found["keys of " + line] = keys
    names |= vars(optim.lr_scheduler)
    for line in ERRORS + SCHEDULE_ERRORS:
        ps = make_parameters(torch, device)
        try:
            eval(line, {**names, "ps": ps, "o": two_groups(torch, False)})
        except Exception as error:
            found["error of " + line] = type(error).__name__
        else:
            found["error of " + line] = "none"
    return found
