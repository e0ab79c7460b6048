"""utils.checkpoint beyond tests/golden/func.json: random numbers, memory, errors."""

import functools
import gc
import weakref

import pytest

import pydevtensor as torch
from pydevtensor import nn

checkpoint = torch.utils.checkpoint.checkpoint
F = nn.functional
NET = {}  # a module that a function may name


def made(device):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 4)
    ).to(device)


@pytest.mark.parametrize("reentrant", [False, True])
def test_random_numbers_are_drawn_again(device, reentrant):
    net = made(device)
    x = torch.randn(3, 4, device=device, requires_grad=True)
    found = []
    for run in (lambda: net(x), lambda: checkpoint(net, x, use_reentrant=reentrant)):
        torch.manual_seed(5)
        y = run()
        after = torch.rand(1, device=device)
        grads = torch.rand_like(y)
        y.backward(grads)
        found.append([y.detach(), after, x.grad, *(p.grad for p in net.parameters())])
        x.grad = None
        net.zero_grad()
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b)


def test_autocast_is_as_in_the_first_run(device):
    net = nn.Linear(4, 4).to(device)
    kind = torch.device(device).type
    seen = []

    def run(x):
        y = net(x)
        seen.append(y.dtype)
        return y.float().exp()

    for reentrant in (False, True):
        x = torch.randn(3, 4, device=device, requires_grad=True)
        with torch.autocast(kind):
            y = checkpoint(run, x, use_reentrant=reentrant)
        y.sum().backward()
        assert x.grad is not None
    assert len(seen) == 4 and len(set(seen)) == 1 and seen[0] != torch.float32


def test_it_saves_memory(gpu):
    few = [nn.Linear(64, 64), nn.Tanh(), nn.Sigmoid(), nn.Tanh(), nn.Sigmoid()]
    layers = [nn.Sequential(*few).to(gpu)] * 6

    def most(run):
        x = torch.randn(512, 64, device=gpu, requires_grad=True)
        for layer in layers:
            x = run(layer, x)
        torch.cuda.synchronize(gpu)
        return torch.cuda.memory_allocated(gpu)

    kept = most(lambda layer, x: layer(x))
    for reentrant in (False, True):
        saved = most(lambda f, x, r=reentrant: checkpoint(f, x, use_reentrant=r))
        assert saved < kept * 0.8


def how_functions_reach_their_module(net):
    class Holder:
        def __init__(self):
            self.inner = [net]

        def run(self, x):
            return self.inner[0](x)

        def __call__(self, x):
            return self.run(x)

    def named(x):
        return NET["net"](x)

    NET["net"] = net
    return [
        net,
        lambda x: net(x),
        lambda x, net=net: net(x),
        functools.partial(lambda n, x: n(x), net),
        Holder().run,
        Holder(),
        named,
        net.forward,
    ]


@pytest.mark.parametrize("number", range(8))
def test_parameters_are_found(number):
    net = nn.Linear(3, 2)
    runs = []

    def count(module, args):
        runs.append(1)

    net.register_forward_pre_hook(count)
    function = how_functions_reach_their_module(net)[number]
    try:
        y = checkpoint(function, torch.ones(1, 3), use_reentrant=False)
        before = len(runs)
        grads = torch.autograd.grad(y.sum(), [net.weight, net.bias])
    finally:
        NET.clear()
    assert grads[0].tolist() == [[1.0] * 3] * 2 and grads[1].tolist() == [1, 1]
    # Run again in the backward pass, and not before. (forward() calls no hooks.)
    assert (before, len(runs)) == ((0, 0) if number == 7 else (1, 2))


def test_a_parameter_in_the_depths_of_a_dict():
    hidden = {1: {2: {3: {4: {5: {6: torch.ones(2, requires_grad=True)}}}}}}
    y = checkpoint(
        lambda x: x * hidden[1][2][3][4][5][6], torch.ones(2), use_reentrant=False
    )
    y.sum().backward()
    assert hidden[1][2][3][4][5][6].grad.tolist() == [1, 1]


def test_higher_derivatives(device):
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).double().to(device)
    x = torch.tensor([[0.5, -1.0]], dtype=torch.float64, device=device)

    def penalized(run):
        """The second derivatives of a penalty, where an argument comes of another."""
        leaf = x.clone().requires_grad_()
        y = run(lambda a, b: net(a) * b.exp() + b, leaf, leaf.sin())
        (slope,) = torch.autograd.grad((y * y).sum(), leaf, create_graph=True)
        assert slope.requires_grad
        return torch.autograd.grad((slope**2).sum(), [leaf, *net.parameters()])

    plain = penalized(lambda f, *args: f(*args))
    mine = penalized(lambda f, *args: checkpoint(f, *args, use_reentrant=False))
    for a, b in zip(mine, plain, strict=True):
        torch.testing.assert_close(a, b)

    def third(u):
        return checkpoint(lambda v: v.sin() * v, u, use_reentrant=False)

    assert torch.autograd.gradgradcheck(third, (x.clone().requires_grad_(),))


def test_a_recorded_pass_looks_for_arguments_written_since():
    x = torch.ones(2, requires_grad=True)
    z = x * 1
    y = checkpoint(torch.sin, z, use_reentrant=False)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


def run_both(one):
    """The results and gradients of one(checkpoint) and of one(a plain call)."""
    found = []
    for call in (
        functools.partial(checkpoint, use_reentrant=False),
        lambda f, *args, **kwargs: f(*args, **kwargs),
    ):
        torch.manual_seed(3)
        found.append(one(call))
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, rtol=1e-5)


def test_one_in_another(device):
    layers = [nn.Linear(4, 4).to(device) for _ in range(4)]
    runs = []

    def block(two, x):
        runs.append(1)
        return two[1](two[0](x).tanh()).sin()

    def one(call):
        def half(x):
            return call(block, layers[2:], call(block, layers[:2], x).exp())

        x = torch.ones(2, 4, device=device).requires_grad_()
        y = call(half, x)
        grads = torch.autograd.grad(y.sum(), [x, *(p.weight for p in layers)])
        return [y.detach(), *grads]

    run_both(one)
    # Two without checkpoints, two in the first run, and where the second run of `half`
    # ends early, one in it.
    assert len(runs) == 2 + 2 + 1 + 2


def test_the_second_run_ends_early():
    seen = []

    def run(x):
        y = x.sin()
        seen.append(1)
        z = y.exp()
        seen.append(2)
        return z + 1

    for stops, expected in ((True, [1, 2, 1]), (False, [1, 2, 1, 2])):
        for way in ("argument", "block"):
            seen.clear()
            x = torch.ones(2, requires_grad=True)
            if way == "argument":
                y = checkpoint(run, x, use_reentrant=False, early_stop=stops)
            else:
                with torch.utils.checkpoint.set_checkpoint_early_stop(stops):
                    y = checkpoint(run, x, use_reentrant=False, early_stop=not stops)
            y.sum().backward()
            assert seen == expected


def test_two_passes_and_what_a_second_run_leaves():
    kept = []

    def run(x):
        kept.append(x.sin())
        return kept[-1] * x

    x = torch.ones(2, requires_grad=True)
    y = checkpoint(run, x, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.sum().backward()
    assert torch.equal(x.grad, 2 * first) and len(kept) == 3
    with pytest.raises(RuntimeError, match="freed"):
        y.sum().backward()


def test_a_result_kept_by_the_module_is_collected():
    class Net(nn.Module):
        def forward(self, x):
            self.last = x.sin().exp()
            return self.last

    net = Net()
    dies = weakref.ref(net)
    checkpoint(net, torch.ones(2, requires_grad=True), use_reentrant=False)
    del net
    gc.collect()
    assert dies() is None


def test_another_number_of_saved_tensors():
    counts = iter([1, 2, 2, 1])

    def run(x):
        for _ in range(next(counts)):
            x = x.sin()
        return x

    for _ in range(2):
        y = checkpoint(
            run, torch.ones(2).requires_grad_(), use_reentrant=False, early_stop=False
        )
        with pytest.raises(torch.utils.checkpoint.CheckpointError, match="tensors"):
            y.sum().backward()


def test_errors():
    x = torch.ones(2, requires_grad=True)
    sizes = iter([2, 3])
    y = checkpoint(lambda u: u.sum() * torch.ones(next(sizes)), x, use_reentrant=False)
    with pytest.raises(torch.utils.checkpoint.CheckpointError, match="again"):
        y.sum().backward()
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(torch.sin, x, use_reentrant=True, context_fn=lambda: ())
    with pytest.raises(ValueError, match="debug"):
        checkpoint(torch.sin, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="leave one out"):
        options = {"debug": True, "context_fn": lambda: ()}
        checkpoint(torch.sin, x, use_reentrant=False, **options)
    with torch.no_grad(), pytest.raises(ValueError, match="'never'"):
        checkpoint(torch.sin, x, use_reentrant=False, determinism_check="never")
    with pytest.raises(ValueError, match="nothing"):
        torch.utils.checkpoint.checkpoint_sequential([torch.sin], 1, x, nothing=1)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(torch.sin, x)
    with pytest.warns(UserWarning, match="no argument"):
        checkpoint(torch.sin, torch.ones(2), use_reentrant=True)

    y = checkpoint(lambda u: u.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="no result"):
        y.sum().backward()


def test_a_second_run_that_differs_may_be_accepted(device):
    def wider(u):
        v = u.to(next(dtypes))
        return v * v

    for check, accepted in (("default", False), ("none", True)):
        dtypes = iter([torch.float32, torch.float64])
        x = torch.tensor([1.0, 3.0], device=device, requires_grad=True)
        y = checkpoint(wider, x, use_reentrant=False, determinism_check=check)
        if not accepted:
            with pytest.raises(torch.utils.checkpoint.CheckpointError, match="float64"):
                y.sum().backward()
            continue
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 6.0]


def test_contexts_and_states_of_gpus(two_gpus):
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *error):
            pass

    x = torch.ones(2, device=two_gpus[1], requires_grad=True)
    y = checkpoint(
        lambda u: u * torch.rand_like(u),
        x,
        use_reentrant=False,
        context_fn=lambda: (Note("first"), Note("second")),
    )
    y.sum().backward()
    assert seen == ["first", "second"] and torch.allclose(x.grad, y)
    state = torch.cuda.get_rng_state_all()
    first = torch.rand(2, device=two_gpus[1])
    torch.cuda.set_rng_state_all(state)
    assert torch.equal(torch.rand(2, device=two_gpus[1]), first)
    with torch.random.fork_rng():
        torch.rand(2, device=two_gpus[1])
    again = torch.rand(2, device=two_gpus[1])
    torch.cuda.set_rng_state(state[1], 1)
    torch.rand(2, device=two_gpus[1])
    assert torch.equal(torch.rand(2, device=two_gpus[1]), again)
