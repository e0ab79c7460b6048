"""CUDA graphs of training: steps, learning rates, random numbers, graphed callables."""

import pytest
from graph_capture import captured

import pydevtensor as torch
from pydevtensor import nn


def warm_up(work, device, times=1):
    with torch.cuda.device(device):
        stream = torch.cuda.graphs.capture_stream(torch.device(device).index)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(times):
                work()
        torch.cuda.current_stream().wait_stream(stream)


# --- training -------------------------------------------------------------------------


class Block(nn.Module):
    """A small transformer."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.25, batch_first=True
        )
        self.head = nn.Linear(8, 11)

    def forward(self, x):
        return self.head(self.block(self.tokens(x)))


def mlp():
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, 3))


CASES = {
    "mlp": (
        mlp,
        lambda g: torch.randn(5, 6, generator=g),
        lambda g: torch.randint(0, 3, (5,), generator=g),
        lambda y, t: nn.functional.cross_entropy(y, t),
    ),
    "transformer": (
        Block,
        lambda g: torch.randint(0, 11, (2, 4), generator=g),
        lambda g: torch.randint(0, 11, (2, 4), generator=g),
        lambda y, t: nn.functional.cross_entropy(y.flatten(0, 1), t.flatten()),
    ),
}


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, capturable=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True, capturable=True),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01, capturable=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.01, capturable=True),
}


def train(case, optimizer, device, graphed, warmups=2, replays=5):
    """Losses and parameters after some steps, the last ones as replays of a graph."""
    make, make_input, make_target, criterion = CASES[case]
    torch.manual_seed(1)
    model = make().to(device)
    steps = OPTIMIZERS[optimizer](model.parameters())
    generator = torch.Generator().manual_seed(2)
    data = [
        (make_input(generator).to(device), make_target(generator).to(device))
        for _ in range(warmups + replays)
    ]
    x, target = (torch.empty_like(t) for t in data[0])
    losses = []

    def step():
        steps.zero_grad(set_to_none=True)
        loss = criterion(model(x), target)
        loss.backward()
        steps.step()
        return loss

    def write(n):
        x.copy_(data[n][0])
        target.copy_(data[n][1])

    for n in range(warmups):
        write(n)
        warm_up(step, device)
    if graphed:
        steps.zero_grad(set_to_none=True)
        g, static = captured(step, device)
    for n in range(warmups, warmups + replays):
        write(n)
        if graphed:
            g.replay()
            losses.append(static.item())
        else:
            losses.append(step().item())
    counts = [kept["step"].item() for kept in steps.state.values() if "step" in kept]
    return losses, [p.detach().cpu() for p in model.parameters()], counts


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("case", CASES)
def test_training_steps_give_the_numbers_of_the_eager_run(case, optimizer, gpu):
    eager, graphed = (train(case, optimizer, gpu, g) for g in (False, True))
    assert graphed[0] == eager[0]
    assert all(torch.equal(a, b) for a, b in zip(graphed[1], eager[1], strict=True))
    assert graphed[2] == eager[2]


@pytest.mark.parametrize("case", CASES)
def test_training_under_each_schedule(case, gpu, schedule):
    eager, graphed = (train(case, "adam", gpu, g, replays=3) for g in (False, True))
    assert graphed[0] == eager[0]
    assert all(torch.equal(a, b) for a, b in zip(graphed[1], eager[1], strict=True))


def test_a_replay_after_load_state_dict_of_the_model(gpu):
    model = nn.Linear(3, 2, device=gpu)
    x = torch.ones(1, 3, device=gpu)
    g, y = captured(lambda: model(x), gpu)
    model.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})
    g.replay()
    assert y.tolist() == [[3, 3]]


def test_an_optimizer_that_does_not_say_capturable(gpu):
    w = nn.Parameter(torch.ones(2, device=gpu))
    adam = torch.optim.Adam([w])
    w.grad = torch.ones(2, device=gpu)
    adam.step()
    g = torch.cuda.CUDAGraph()
    with (
        torch.cuda.device(gpu),
        pytest.raises(RuntimeError, match="capturable=False"),
        torch.cuda.graph(g),
    ):
        adam.step()
    assert adam.state[w]["step"].item() == 1


def test_an_optimizer_without_state(gpu):
    w = nn.Parameter(torch.ones(2, device=gpu))
    w.grad = torch.ones(2, device=gpu)
    for optimizer in (
        torch.optim.Adam([w], capturable=True),
        torch.optim.SGD([w], momentum=0.5),
    ):
        with (
            torch.cuda.device(gpu),
            pytest.raises(RuntimeError, match="once before the capture"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            optimizer.step()


# --- a rate that is a Tensor ----------------------------------------------------------


# Of float64, so that a Tensor's rate is the number's.
RATED = {
    "sgd": lambda p, lr: torch.optim.SGD(p, lr=lr, weight_decay=0.01),
    "momentum": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9, nesterov=True),
    "adam": lambda p, lr: torch.optim.Adam(p, lr=lr, capturable=True),
    "adamw": lambda p, lr: torch.optim.AdamW(
        p, lr=lr, weight_decay=0.1, amsgrad=True, capturable=True
    ),
    "nadam": lambda p, lr: torch.optim.NAdam(
        p, lr=lr, weight_decay=0.1, decoupled_weight_decay=True, capturable=True
    ),
    "radam": lambda p, lr: torch.optim.RAdam(p, lr=lr, capturable=True),
    "adamax": lambda p, lr: torch.optim.Adamax(p, lr=lr, capturable=True),
    "adagrad": lambda p, lr: torch.optim.Adagrad(p, lr=lr),
    "adadelta": lambda p, lr: torch.optim.Adadelta(p, lr=lr, capturable=True),
    "rmsprop": lambda p, lr: torch.optim.RMSprop(
        p, lr=lr, momentum=0.5, centered=True, capturable=True
    ),
}


RATES = (0.1, 0.05, 0.2, 0.0, 0.01)


def stepped(optimizer, rates, gpu, lr=None, graphed=False):
    """A parameter after a step at each rate, which a Tensor lr gets by fill_()."""
    dtype = torch.float64
    w = nn.Parameter(torch.arange(1.0, 4.0, dtype=dtype, device=gpu))
    w.grad = torch.tensor([0.5, -1.0, 2.0], dtype=dtype, device=gpu)
    steps = RATED[optimizer]([w], rates[0] if lr is None else lr)
    warm_up(steps.step, gpu)
    if graphed:
        g, _ = captured(steps.step, gpu)
    seen = []
    for rate in rates[1:]:
        w.grad.mul_(1.5)
        if lr is None:
            steps.param_groups[0]["lr"] = rate
        else:
            lr.fill_(rate)
        g.replay() if graphed else steps.step()
        seen.append(w.detach().cpu())
    return torch.stack(seen)


@pytest.mark.parametrize("optimizer", RATED)
@pytest.mark.parametrize("where", ["gpu", "cpu"])
def test_a_replay_follows_a_rate_that_is_a_tensor(optimizer, where, gpu):
    device = gpu if where == "gpu" else "cpu"
    expected = stepped(optimizer, RATES, gpu)
    for graphed in (False, True):
        lr = torch.tensor(RATES[0], dtype=torch.float64, device=device)
        made = stepped(optimizer, RATES, gpu, lr, graphed)
        assert torch.allclose(made, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("where", ["gpu", "cpu"])
def test_a_rate_of_float32_under_each_schedule(where, shape, gpu, schedule):
    device = gpu if where == "gpu" else "cpu"
    rates = (0.5, 0.25, 0.75, 0.125)  # exact
    expected = stepped("adamw", rates, gpu)
    lr = torch.full(shape, rates[0], device=device)
    made = stepped("adamw", rates, gpu, lr, graphed=True)
    assert torch.allclose(made, expected, rtol=1e-7, atol=0)


def test_a_rate_on_the_gpu_is_not_waited_for(gpu):
    w = nn.Parameter(torch.ones(3, device=gpu))
    w.grad = torch.ones(3, device=gpu)
    adam = torch.optim.AdamW([w], lr=torch.tensor(0.25, device=gpu))
    adam.step()
    with torch.cuda.transfers() as seen:
        adam.step()
    assert seen.waits == 0


def test_a_schedule_sets_the_rate_that_a_graph_reads(gpu, schedule):
    w = nn.Parameter(torch.zeros(2, device=gpu))
    w.grad = torch.ones(2, device=gpu)
    lr = torch.tensor(0.5, device=gpu)
    sgd = torch.optim.SGD([w], lr=lr)
    halves = torch.optim.lr_scheduler.StepLR(sgd, 1, gamma=0.5)
    sgd.step()
    g, _ = captured(sgd.step, gpu)
    for _ in range(2):
        halves.step()
        g.replay()
    assert w.tolist() == [-0.875, -0.875]
    assert sgd.param_groups[0]["lr"] is lr


def test_a_rate_that_is_a_number_stays_in_the_graph(gpu):
    w = nn.Parameter(torch.zeros(2, device=gpu))
    w.grad = torch.ones(2, device=gpu)
    sgd = torch.optim.SGD([w], lr=0.5)
    g, _ = captured(sgd.step, gpu)
    sgd.param_groups[0]["lr"] = 100.0
    g.replay()
    assert w.tolist() == [-0.5, -0.5]


def test_a_rate_on_another_device(two_gpus):
    here, there = two_gpus
    w = nn.Parameter(torch.zeros(2, device=here))
    w.grad = torch.ones(2, device=here)
    sgd = torch.optim.SGD([w], lr=torch.tensor(0.5, device=there))
    sgd.step()  # which waits for it
    assert w.tolist() == [-0.5, -0.5]
    with pytest.raises(torch.AcceleratorError, match="a copy to the host"):
        captured(sgd.step, here)


def test_wrong_rates_of_the_kernel(gpu):
    w, grad = torch.ones(2, device=gpu), torch.ones(2, device=gpu)
    for rate in (
        torch.ones(2, device=gpu),
        torch.tensor(1, device=gpu),
        torch.tensor(0.5),
    ):
        with pytest.raises(RuntimeError, match="one float32 or float64 on a GPU"):
            torch._C._update("sgd", [w, grad], (), (1, 0, 1), rate=rate)
    with pytest.raises(RuntimeError, match="has no rate"):
        torch._C._update("scale", [w, grad], (), (1,), rate=grad[:1])
    assert w.tolist() == [1, 1]


# --- random numbers -------------------------------------------------------------------


def test_random_numbers_go_on_from_replay_to_replay(gpu, schedule):
    def work():
        return torch.rand(5, device=gpu), torch.randn(3, 2, device=gpu)

    torch.manual_seed(7)
    g, (u, n) = captured(work, gpu)
    replayed = []
    for i in range(4):
        g.replay()
        replayed.append((u.cpu(), n.cpu()))
        if i == 1:
            replayed.append(tuple(t.cpu() for t in work()))  # in between
    after = torch.rand(3, device=gpu)
    torch.manual_seed(7)
    for one, two in replayed:
        uniform, normal = work()
        assert torch.equal(one, uniform.cpu())
        assert torch.equal(two, normal.cpu())
    assert torch.equal(after, torch.rand(3, device=gpu))


def test_dropout_has_another_mask_in_each_replay(gpu):
    x = torch.ones(200, device=gpu)
    torch.manual_seed(8)
    g, y = captured(lambda: nn.functional.dropout(x, 0.5), gpu)
    masks = []
    for _ in range(4):
        g.replay()
        masks.append(y.cpu())
    assert len({tuple(m.tolist()) for m in masks}) == 4
    torch.manual_seed(8)
    for mask in masks:
        assert torch.equal(nn.functional.dropout(x, 0.5).cpu(), mask)


def test_a_seed_before_a_replay_counts(gpu):
    g, y = captured(lambda: torch.rand(4, device=gpu), gpu)
    torch.manual_seed(1)
    g.replay()
    first = y.tolist()
    torch.manual_seed(1)
    g.replay()
    assert y.tolist() == first
    torch.manual_seed(1)
    assert torch.rand(4, device=gpu).tolist() == first


def test_a_generator_of_the_program(gpu):
    numbers = torch.Generator(device=gpu).manual_seed(5)
    g = torch.cuda.CUDAGraph()
    g.register_generator_state(numbers)
    with torch.cuda.device(gpu), torch.cuda.graph(g):
        y = torch.rand(4, device=gpu, generator=numbers)
    g.replay()
    g.replay()
    numbers.manual_seed(5)
    torch.rand(4, device=gpu, generator=numbers)
    assert torch.equal(y, torch.rand(4, device=gpu, generator=numbers))


def test_a_generator_that_was_not_registered(gpu):
    numbers = torch.Generator(device=gpu)
    with (
        torch.cuda.device(gpu),
        pytest.raises(RuntimeError, match="register_generator_state"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        torch.rand(4, device=gpu, generator=numbers)
    with pytest.raises(TypeError, match="no Generator"):
        torch.cuda.CUDAGraph().register_generator_state(3)


# --- graphed callables ----------------------------------------------------------------


def test_a_graphed_module_trains_as_the_module_does(gpu, schedule):
    def run(graphed):
        torch.manual_seed(3)
        with torch.cuda.device(gpu):
            model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(gpu)
            if graphed:
                sample = torch.zeros(5, 4, device=gpu, requires_grad=True)
                made = torch.cuda.make_graphed_callables(model, (sample,))
                assert made is model
            steps = torch.optim.SGD(model.parameters(), lr=0.1)
            torch.manual_seed(4)
            losses = []
            for n in range(4):
                x = torch.randn(5, 4, device=gpu).requires_grad_()
                steps.zero_grad(set_to_none=n % 2 == 0)
                loss = model(x).square().sum()
                loss.backward()
                steps.step()
                losses += [loss.item(), *x.grad.flatten().tolist()]
            model.eval()
            losses.append(model(torch.ones(2, 4, device=gpu)).sum().item())
            return losses

    assert run(True) == run(False)


def test_gradients_add_up_over_two_calls_of_a_graphed_module(gpu):
    with torch.cuda.device(gpu):
        layer = nn.Linear(3, 1, bias=False, device=gpu)
        torch.cuda.make_graphed_callables(layer, (torch.zeros(2, 3, device=gpu),))
        layer(torch.ones(2, 3, device=gpu)).sum().backward()
        layer(torch.ones(2, 3, device=gpu) * 2).sum().backward()
        assert layer.weight.grad.tolist() == [[6, 6, 6]]


def test_graphed_functions_in_a_tuple(gpu, schedule):
    with torch.cuda.device(gpu):
        w = torch.full((3,), 2.0, device=gpu, requires_grad=True)
        one, two = torch.cuda.make_graphed_callables(
            (lambda x: x * x, lambda x, y: {"sum": x + y, "product": x * y}),
            (
                (torch.zeros(3, device=gpu, requires_grad=True),),
                tuple(torch.zeros(3, device=gpu, requires_grad=True) for _ in "ab"),
            ),
        )
        for n in (1.0, 4.0):
            x = torch.full((3,), n, device=gpu, requires_grad=True)
            made = two(one(x), w)
            (made["sum"] + 2 * made["product"]).sum().backward()
            assert made["sum"].tolist() == [n * n + 2] * 3
            assert x.grad.tolist() == [2 * n + 8 * n] * 3
            assert w.grad.tolist() == [1 + 2 * n * n] * 3
            w.grad = None


def test_graphed_callables_refuse(gpu):
    layer = nn.Linear(2, 2, device=gpu)
    sample = torch.zeros(1, 2, device=gpu)
    make = torch.cuda.make_graphed_callables
    with pytest.raises(TypeError, match="have to be Tensors"):
        make(layer, (3,))
    with pytest.raises(TypeError, match="sample_args"):
        make((layer, layer), (sample,))
    layer.register_buffer("b", torch.ones(2, device=gpu, requires_grad=True))
    with pytest.raises(RuntimeError, match="buffer"):
        make(layer, (sample,))
    hooked = nn.Linear(2, 2, device=gpu)
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="has hooks"):
        make(hooked, (sample,))
    graphed = make(nn.Linear(2, 2, device=gpu), (sample,))
    with pytest.raises(TypeError, match="got 2 Tensors"):
        graphed(sample, sample)
    with pytest.raises(ValueError, match=r"shape \[3, 2\]; give one of shape \[1, 2\]"):
        graphed(torch.zeros(3, 2, device=gpu))
