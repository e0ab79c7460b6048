"""Layers, losses and training runs, written once and run by PyTorch and by pydevtensor.

learn(torch, device) gives a dict: texts, and lists of floats.
"""

TEXTS = """
nn.Linear(3, 1, bias=False)
nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Dropout(0.25), nn.Tanh()))
nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()])
nn.ModuleDict({'a': nn.Tanh(), 'b': nn.Identity()})
nn.ParameterList([torch.ones(2, 3), torch.ones(1)])
nn.BatchNorm1d(3)
nn.BatchNorm2d(3, affine=False)
nn.LayerNorm([2, 3])
nn.LayerNorm(4, elementwise_affine=False)
nn.Flatten()
nn.Bilinear(2, 3, 4)
nn.LazyLinear(3)
nn.GELU(), nn.GELU('tanh'), nn.SiLU(), nn.ELU(0.5), nn.LeakyReLU(0.2), nn.Softplus()
nn.ReLU(inplace=True), nn.Sigmoid(), nn.Softmax(dim=1), nn.LogSoftmax(dim=-1)
nn.MSELoss(), nn.CrossEntropyLoss(), nn.KLDivLoss(), nn.BCEWithLogitsLoss()
nn.Parameter(torch.ones(2))
optim.SGD([torch.ones(1)], lr=0.5)
""".strip().splitlines()

LOSSES = {
    "mse_loss": "F.mse_loss(x, t, reduction=r)",
    "l1_loss": "F.l1_loss(x, t, reduction=r)",
    "smooth_l1_loss": "F.smooth_l1_loss(x, t, reduction=r, beta=0.7)",
    "huber_loss": "F.huber_loss(x, t, reduction=r, delta=0.6)",
    "cross_entropy": "F.cross_entropy(x, c, reduction=r)",
    "cross_entropy, weights": "F.cross_entropy(x, c, w, reduction=r)",
    "cross_entropy, smooth": "F.cross_entropy(x, c, w, reduction=r, label_smoothing=0.2)",
    "cross_entropy, shares": "F.cross_entropy(x, q, w, reduction=r, label_smoothing=0.1)",
    "nll_loss": "F.nll_loss(F.log_softmax(x, 1), c, w, reduction=r)",
    "binary_cross_entropy": "F.binary_cross_entropy(torch.sigmoid(x), p, reduction=r)",
    "bce with logits": "F.binary_cross_entropy_with_logits(x, p, w, reduction=r, pos_weight=w)",
    "kl_div": "F.kl_div(F.log_softmax(x, 1), q, reduction='sum' if r == 'mean' else r)",
}
FUNCTIONS = {
    "gelu": "F.gelu(x)",
    "gelu tanh": "F.gelu(x, approximate='tanh')",
    "silu": "F.silu(x)",
    "elu": "F.elu(x, 0.8)",
    "leaky_relu": "F.leaky_relu(x, 0.3)",
    "softplus": "F.softplus(x, 2, 1)",
    "logsigmoid": "F.logsigmoid(x)",
    "softmax": "F.softmax(x, 1)",
    "log_softmax": "F.log_softmax(x, 0)",
    "layer_norm": "F.layer_norm(x, (6,), w, w)",
    "normalize": "F.normalize(x)",
    "linear": "F.linear(x, t[:3], w[:3])",
    "batch_norm": "F.batch_norm(x, None, None, w, w, True)",
}
OPTIMIZERS = """
SGD(ps, lr=0.1)
SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01)
SGD(ps, lr=0.1, momentum=0.9, nesterov=True)
SGD(ps, lr=0.1, momentum=0.5, dampening=0.3, maximize=True)
Adam(ps, lr=0.02)
Adam(ps, lr=0.02, betas=(0.8, 0.9), weight_decay=0.1, amsgrad=True)
AdamW(ps, lr=0.02)
Adagrad(ps, lr=0.1, lr_decay=0.1)
Adadelta(ps, lr=0.7, weight_decay=0.02)
RMSprop(ps, lr=0.02)
RMSprop(ps, lr=0.02, momentum=0.5, centered=True)
""".strip().splitlines()
SCHEDULES = """
StepLR(o, 3, 0.5)
MultiStepLR(o, [2, 5, 5], 0.3)
ExponentialLR(o, 0.9)
LambdaLR(o, lambda epoch: 1 / (epoch + 1))
CosineAnnealingLR(o, 6, 0.01)
""".strip().splitlines()
INITS = """
xavier_uniform_(z)
xavier_normal_(z, gain=2)
kaiming_uniform_(z, nonlinearity='relu')
kaiming_normal_(z, mode='fan_out')
normal_(z, 1, 2)
constant_(z, 3)
eye_(z)
""".strip().splitlines()


def numbers(t):
    return t.detach().cpu().double().reshape(-1).tolist()


def learn(torch, device):
    """Every text and number, by name."""
    nn, F, optim = torch.nn, torch.nn.functional, torch.optim
    found = {}
    names = {"torch": torch, "nn": nn, "F": F, "optim": optim}
    for line in TEXTS:
        found["text of " + line] = str(eval(line, names))

    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    found["initial weights"] = numbers(net[0].weight) + numbers(net[2].bias)
    found["keys"] = " ".join(net.state_dict())
    lazy = nn.LazyLinear(3)
    lazy(torch.ones(2, 5))
    found["lazy weights"] = numbers(lazy.weight)
    for line in INITS:
        z = torch.empty(3, 5)
        eval("nn.init." + line, {**names, "z": z})
        found["init " + line] = numbers(z)
    found["dropout"] = numbers(F.dropout(torch.ones(20), 0.3))

    torch.manual_seed(0)
    x, t, p, w = torch.randn(4, 6), torch.randn(4, 6), torch.rand(4, 6), torch.rand(6)
    q = F.softmax(torch.randn(4, 6), dim=1)
    c = torch.tensor([1, 5, -100, 0])
    names |= {"t": t.to(device), "p": p.to(device), "w": w.to(device)}
    names |= {"q": q.to(device), "c": c.to(device)}
    for name, line in {**LOSSES, **FUNCTIONS}.items():
        for r in ("mean", "sum", "none") if name in LOSSES else ("",):
            leaf = x.to(device, copy=True).requires_grad_()
            value = eval(line, {**names, "x": leaf, "r": r})
            shares = torch.ones_like(value) if name in LOSSES else names["t"]
            (
                value * shares[:, : value.shape[1]] if value.ndim > 1 else value
            ).sum().backward()
            found[f"{name} {r}"] = numbers(value)
            found[f"gradient of {name} {r}"] = numbers(leaf.grad)

    norm = nn.BatchNorm1d(6).to(device)
    norm(x.to(device))
    found["running statistics"] = numbers(norm.running_mean) + numbers(norm.running_var)
    found["evaluated"] = numbers(norm.eval()(x.to(device)))

    for line in OPTIMIZERS:
        torch.manual_seed(5)
        model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
        inputs, classes = torch.randn(8, 3), torch.arange(8) % 2
        model, inputs, classes = model.to(device), inputs.to(device), classes.to(device)
        optimizer = eval("optim." + line, {**names, "ps": model.parameters()})
        for _ in range(20):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), classes).backward()
            optimizer.step()
        found["after 20 steps of " + line] = [
            v for parameter in model.parameters() for v in numbers(parameter)
        ]
    for line in SCHEDULES:
        optimizer = optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5)
        schedule = eval("optim.lr_scheduler." + line, {**names, "o": optimizer})
        rates = []
        for _ in range(14):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        found["rates of " + line] = rates

    for parameter in net.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    found["norm of gradients"] = [
        float(nn.utils.clip_grad_norm_(net.parameters(), 1.0))
    ]
    found["clipped"] = numbers(net[2].bias.grad)
    return found
