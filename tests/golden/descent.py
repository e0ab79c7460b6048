"""The optimisers with more state than a sum or a mean, and LBFGS, in float32 and float64:
written once and run by PyTorch and by pydevtensor.

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
Adafactor(ps[:2])
Adafactor(ps[:2], lr=0.5, beta2_decay=-0.5, eps=(0.125, 0.5), d=1.5, weight_decay=0.125, maximize=True)
Adafactor([{'params': ps[:1]}, {'params': ps[1:2], 'd': 1.5}], lr=0.125)
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
Adafactor(ps, lr=-1)
Adafactor(ps, lr=torch.tensor([0.1, 0.2]))
Adafactor(ps, beta2_decay=1)
Adafactor(ps, eps=(-1, 1))
Adafactor(ps, eps=(None, -1))
Adafactor(ps, d=0.5)
Adafactor(ps, weight_decay=-1)
Muon(ps[:1], lr=-1)
Muon(ps[:1], momentum=-1)
Muon(ps[:1], weight_decay=-1)
Muon(ps[:1], eps=-1)
Muon(ps[:1], adjust_lr_fn='x')
Muon(ps)
Muon([])
LBFGS(ps, lr=-1)
LBFGS(ps, lr='1')
LBFGS(ps, max_iter=-1)
LBFGS(ps, tolerance_grad=-1)
LBFGS(ps).step()
LBFGS([])
LBFGS([{'params': ps[:1]}, {'params': ps[1:]}])
LBFGS(ps[:1], line_search_fn='x').step(lambda: (ps[0] ** 2).sum().backward() or 1.0)
LBFGS(ps[:1], line_search_fn='x').step(lambda: 1.0) and None
LBFGS(ps[2:]).step(lambda: 1.0)
""".strip().splitlines()

# For matrices. It computes in bfloat16.
MUON = """
Muon(ps, lr=1.0)
Muon(ps, lr=0.5, momentum=0.5, nesterov=False, weight_decay=0.5)
Muon(ps, lr=1.0, adjust_lr_fn='match_rms_adamw', ns_steps=2, eps=1e-3)
Muon(ps, lr=0.25, adjust_lr_fn='original', ns_coefficients=(2.0, -1.5, 0.5), weight_decay=0.0)
Muon([{'params': ps[:2]}, {'params': ps[2:], 'lr': 0.1}])
""".strip().splitlines()

# The problem, and the options of LBFGS.
MINIMA = """
rosenbrock lr=0.1
rosenbrock line_search_fn='strong_wolfe'
rosenbrock line_search_fn='strong_wolfe', history_size=2, lr=0.5, max_iter=4
rosenbrock line_search_fn='strong_wolfe', lr=0.001, tolerance_change=1e-4
rosenbrock line_search_fn='strong_wolfe', lr=1000.0, max_eval=9
rosenbrock line_search_fn='strong_wolfe', max_eval=1
rosenbrock max_eval=3, lr=0.01
squares max_iter=12
squares line_search_fn='strong_wolfe', history_size=1, max_iter=3
squares line_search_fn='strong_wolfe', tolerance_grad=1.0
squares lr=torch.tensor(0.25), max_iter=5
waves lr=0.1, max_iter=4
waves line_search_fn='strong_wolfe', max_iter=3
""".strip().splitlines()


def rosenbrock(torch, ps):
    x = torch.cat([ps[0].reshape(-1), ps[1]])
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def squares(torch, ps):
    x = torch.cat([ps[0].reshape(-1), ps[1]])
    a = torch.arange(40, dtype=x.dtype, device=x.device).reshape(8, 5).sin()
    y = torch.arange(8, dtype=x.dtype, device=x.device).cos()
    return ((a @ x - y) ** 2).mean()


def waves(torch, ps):
    x = torch.cat([ps[0].reshape(-1), ps[1]])
    return (x.cos() * x.abs()).sum() + 0.05 * (x * x).sum()


PROBLEMS = {"rosenbrock": rosenbrock, "squares": squares, "waves": waves}


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


def minimise(torch, problem, optimizer, ps, steps):
    """The losses that the closure saw."""
    seen = []

    def closure():
        optimizer.zero_grad()
        loss = PROBLEMS[problem](torch, ps)
        loss.backward()
        seen.append(loss.item())
        return loss

    for _ in range(steps):
        seen.append(optimizer.step(closure).item())
    return seen


def minima(torch, device, dtype):
    """By problem and options: losses and parameters of two steps, and of one more after
    loading; the kinds and lengths of what the state has."""
    found = {}
    for line in MINIMA:
        problem, _, options = line.partition(" ")
        # PyTorch's LBFGS refuses what is not row-major.
        made = make_parameters(torch, device, dtype)
        ps = [torch.nn.Parameter(p.detach().contiguous()) for p in made]

        def build(ps, options=options):
            return eval(f"torch.optim.LBFGS(ps, {options})", {"torch": torch, "ps": ps})

        optimizer = build(ps)
        seen = minimise(torch, problem, optimizer, ps, 2)
        saved = optimizer.state_dict()
        again = [torch.nn.Parameter(p.detach().clone()) for p in ps]
        other = build(again)
        other.load_state_dict(saved)
        state = other.state_dict()["state"].get(0, {})
        found[f"{dtype} state of {line}"] = ", ".join(
            f"{k}: {[len(v), len([e for e in v if e is None])]}"
            if isinstance(v, list)
            else f"{k}: {v if isinstance(v, int) else type(v).__name__}"
            for k, v in sorted(state.items())
        )
        groups = other.state_dict()["param_groups"]
        found[f"{dtype} groups of {line}"] = layout(groups)
        seen += minimise(torch, problem, other, again, 1)
        found[f"{dtype} losses of {line}"] = seen
        found[f"{dtype} end of {line}"] = [v for p in again for v in numbers(p)]
    return found


def orthogonal(torch, device):
    """By options: what Muon makes of three matrices in four steps, the last two after
    loading."""
    found = {}
    for line in MUON:
        saved = None
        ps = [
            torch.arange(i, i + n * m).reshape(n, m).to(torch.float32).cos().to(device)
            for i, (n, m) in enumerate([(3, 5), (4, 2), (3, 3)])
        ]
        for half in range(2):
            ps = [torch.nn.Parameter(p.detach().clone()) for p in ps]
            optimizer = eval(line, {**vars(torch.optim), "ps": ps})
            if saved:
                optimizer.load_state_dict(saved)
            run(ps, optimizer, 2 * half, 2 * half + 2)
            saved = optimizer.state_dict()
        found[f"bfloat16 layout of {line}"] = layout(saved)
        found[f"bfloat16 end of {line}"] = [v for p in ps for v in numbers(p)]
    return found


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
    found |= minima(torch, device, "float64")
    found |= orthogonal(torch, device)
    for line in ERRORS:
        ps = make_parameters(torch, device, "float32")
        try:
            eval(line, {**names, "ps": ps})
        except Exception as error:
            found["error of " + line] = type(error).__name__
        else:
            found["error of " + line] = "none"
    return found
