"""Several GPUs: copies to and sums over them, and modules that run on all at once."""

import copy
import threading
from collections import OrderedDict, namedtuple

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import nn

comm = torch.cuda.comm
pytestmark = pytest.mark.usefixtures("two_gpus")


def close(a, b):
    return torch.allclose(a.cpu(), b.cpu(), rtol=1e-5, atol=1e-6)


def make_net():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8, bias=False), nn.Linear(8, 3)
    )


# --- comm -----------------------------------------------------------------------------


def test_broadcast():
    x = torch.arange(3.0, device="cuda:0", requires_grad=True)
    copies = comm.broadcast(x, [0, "cuda:1"])
    assert copies[0] is x and copies[1].device.index == 1
    (copies[0] * 2 + copies[1].to("cuda:0") * 3).sum().backward()
    assert x.grad.tolist() == [5, 5, 5]
    out = [torch.empty(3, device=d) for d in ("cuda:0", "cuda:1")]
    assert comm.broadcast(x.detach(), out=out)[1] is out[1]
    assert [t.tolist() for t in out] == [[0, 1, 2]] * 2
    for wrong in ({}, {"devices": [0], "out": out}, {"devices": []}):
        with pytest.raises(RuntimeError):
            comm.broadcast(x, **wrong)
    with pytest.raises(RuntimeError, match="shape"):
        comm.broadcast(torch.ones(2, device="cuda:0"), out=out)


@pytest.mark.parametrize("size", [1, 40, 10**6])
def test_broadcast_coalesced(size):
    values = [
        torch.arange(4.0).reshape(2, 2).T,
        torch.arange(3),
        torch.tensor(7.0),
        torch.empty(0),
        torch.arange(5.0),
    ]
    values = [v.to("cuda:0") for v in values]
    here, there = comm.broadcast_coalesced(values, [0, 1], size)
    assert all(a is b for a, b in zip(here, values, strict=True))
    for copied, value in zip(there, values, strict=True):
        assert copied.device.index == 1 and torch.equal(copied.cpu(), value.cpu())


def test_coalescing_saves_copies():
    values = [torch.ones(3, device="cuda:0") for _ in range(20)]
    with torch.cuda.transfers() as seen:
        comm.broadcast_coalesced(values, [0, 1])
    assert seen.device_to_device == 1


def test_reduce_add():
    parts = [torch.full((2, 3), i + 1.0, device=f"cuda:{i}") for i in range(2)]
    total = comm.reduce_add(parts, 1)
    assert total.device.index == 1 and total.tolist() == [[3.0] * 3] * 2
    assert parts[1].tolist() == [[2.0] * 3] * 2
    assert comm.reduce_add([*parts, parts[0]]).tolist() == [[4.0] * 3] * 2
    lists = [[p, p.sum(), p.long()] for p in parts]
    found = comm.reduce_add_coalesced(lists, 0)
    assert [t.sum().item() for t in found] == [18, 18, 18]
    assert [str(t.dtype) for t in found] == [*["torch.float32"] * 2, "torch.int64"]
    with pytest.raises(RuntimeError, match="empty"):
        comm.reduce_add([])
    with pytest.raises(ValueError, match="one shape"):
        comm.reduce_add([parts[0], torch.ones(1, device="cuda:1")])
    with pytest.raises(ValueError, match="cpu"):
        comm.reduce_add([torch.ones(2)])


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize("origin", ["cpu", "cuda:0", "cuda:1"])
def test_scatter_and_gather(origin, pinned):
    x = torch.arange(10.0).reshape(5, 2)
    x = x.pin_memory() if pinned and origin == "cpu" else x.to(origin)
    pieces = comm.scatter(x, [0, 1])
    assert [p.tolist() for p in pieces] == [x[:3].tolist(), x[3:].tolist()]
    assert [p.device.index for p in pieces] == [0, 1]
    assert comm.gather(pieces, destination=1).tolist() == x.tolist()
    pieces = comm.scatter(x, [1, 0], [1, 4])
    assert [len(p) for p in pieces] == [1, 4]
    for cpu in (-1, "cpu", torch.device("cpu")):
        whole = comm.gather(pieces, destination=cpu)
        assert whole.device.type == "cpu" and torch.equal(whole, x.cpu())
    pieces = comm.scatter(x, [0, 1], dim=1)
    assert [[*p.shape] for p in pieces] == [[5, 1], [5, 1]]
    out = torch.empty(5, 2, device="cuda:1")
    assert comm.gather(pieces, 1, out=out) is out and torch.equal(out.cpu(), x.cpu())
    into = [torch.empty(2, 2, device="cuda:0"), torch.empty(3, 2, device="cuda:1")]
    comm.scatter(x, out=into)
    assert into[1].tolist() == x[2:].tolist()


def test_scatter_with_wrong_sizes():
    x = torch.arange(4.0)
    for wrong in (
        {"chunk_sizes": [4]},
        {"chunk_sizes": [1, 1]},
        {"devices": []},
        {"devices": [0, 1], "out": [x]},
    ):
        with pytest.raises(RuntimeError):
            comm.scatter(x, **{"devices": [0, 1], **wrong})
    with pytest.raises(RuntimeError):
        comm.gather([x.cuda(0)], destination=0, out=x.cuda(0))


def test_copies_on_streams_of_their_own():
    """A copy between GPUs on a stream of its own overlaps with work on the default."""
    x = torch.arange(1000.0, device="cuda:0")
    side = torch.cuda.Stream("cuda:0")
    far = torch.cuda.Stream("cuda:1")
    for i in range(5):
        made = x * i + 1
        side.wait_stream(torch.cuda.current_stream("cuda:0"))
        with torch.cuda.stream(side), torch.cuda.stream(far):
            there = made.to("cuda:1", non_blocking=True)
            made.record_stream(side)
        x.mul_(1)  # the first GPU goes on
        torch.cuda.current_stream("cuda:1").wait_stream(far)
        there.record_stream(torch.cuda.current_stream("cuda:1"))
        del made
        assert (there.sum() / 1000).item() == pytest.approx(i * 499.5 + 1)


# --- scatter, replicate, parallel_apply, gather ------------------------------------------

Pair = namedtuple("Pair", "left right")


def test_scatter_of_structures():
    x = torch.arange(4.0)
    given = (x, [x * 2, {"k": x.reshape(2, 2), "n": 3}], Pair(x, None), "text", ())
    first, second = nn.parallel.scatter(given, [0, 1])
    assert (
        type(second[2]) is Pair
        and second[3:] == ("text", ())
        and second[1][1]["n"] == 3
    )
    assert first[1][0].tolist() == [0, 2] and second[1][0].tolist() == [4, 6]
    assert second[1][1]["k"].tolist() == [[2, 3]] and second[2].left.device.index == 1
    back = nn.parallel.gather([(p[0], p[1][0], {"k": p[1][1]["k"]}, p[2].right)
                               for p in (first, second)], 0)  # fmt: skip
    assert back[0].tolist() == [0, 1, 2, 3] and back[2]["k"].tolist() == [
        [0, 1],
        [2, 3],
    ]
    assert back[3] is None
    parts, named = nn.parallel.scatter_kwargs((x, x), None, [0, 1])
    assert len(parts) == 2 and named == ({}, {})
    assert nn.parallel.scatter(x[:1], [0, 1])[0].tolist() == [0]
    assert len(nn.parallel.scatter(x[:1], [0, 1])) == 1


def test_gather_of_numbers_and_odd_dicts():
    numbers = [torch.tensor(1.0, device=f"cuda:{i}") for i in range(2)]
    with pytest.warns(UserWarning, match="vector"):
        assert nn.parallel.gather(numbers, "cpu").tolist() == [1, 1]
    with pytest.raises(ValueError):
        nn.parallel.gather([{"a": numbers[0]}, {}], 0)


def test_replicate_shares_what_is_at_home():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).cuda()
    net[0].bias.requires_grad_(False)
    one, two = nn.parallel.replicate(net, [0, 1])
    assert one[0].weight is net[0].weight and one[1].running_mean is net[1].running_mean
    assert two[0].weight.device.index == 1 and two[0].weight.grad_fn is not None
    assert not two[0].bias.requires_grad and not two[1].running_mean.requires_grad
    assert net[0].weight.is_leaf and net[0].weight.device.index == 0
    two[0].weight.sum().backward()
    assert net[0].weight.grad.tolist() == [[1, 1], [1, 1]]
    assert not nn.parallel.replicate(net, [0, 1], detach=True)[1][
        0
    ].weight.requires_grad


def test_replicate_keeps_shared_parameters_and_modules():
    net = nn.Module()
    net.a = nn.Linear(2, 2)
    net.b = net.a
    net.c = nn.Linear(2, 2)
    net.c.weight = net.a.weight
    net.d = nn.ParameterList([net.a.bias])
    net.e = None
    two = nn.parallel.replicate(net.cuda(), [0, 1])[1]
    assert two.a is two.b and two.c.weight is two.a.weight and two.d[0] is two.a.bias


def test_parallel_apply():
    seen = []

    def work(x, scale=1):
        seen.append((threading.get_ident(), torch.cuda.current_device()))
        return x * scale

    parts = nn.parallel.scatter(torch.arange(4.0), [0, 1])
    found = nn.parallel.parallel_apply([work, work], parts, [{}, {"scale": 3}])
    assert [f.tolist() for f in found] == [[0, 1], [6, 9]]
    assert sorted(device for _, device in seen) == [0, 1]
    assert torch.cuda.current_device() == 0
    with torch.no_grad():
        grads = nn.parallel.parallel_apply(
            [lambda x: torch.is_grad_enabled()] * 2, parts, devices=[0, 1]
        )
    assert grads == [False, False]
    with pytest.raises(ZeroDivisionError):
        nn.parallel.parallel_apply([work, lambda x: 1 / 0], parts)
    with pytest.raises(AssertionError):
        nn.parallel.parallel_apply([work], parts)


# --- DataParallel ------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, 8])
@pytest.mark.parametrize("home", ["cuda:0", "cpu"])
def test_training_is_that_of_one_gpu(batch, home):
    one = make_net()
    net = copy.deepcopy(one).to("cuda:0")
    parallel = nn.DataParallel(net)
    assert [*parallel.state_dict()] == [f"module.{k}" for k in one.state_dict()]
    pairs = [(parallel, home), (one, "cpu")]
    steps = [torch.optim.SGD(m.parameters(), lr=0.3, momentum=0.9) for m, _ in pairs]
    torch.manual_seed(3)
    for _ in range(3):
        x, y = torch.randn(batch, 6), torch.randint(0, 3, (batch,))
        losses = []
        for (model, place), step in zip(pairs, steps, strict=True):
            out = model(x.to(place))
            loss = nn.functional.cross_entropy(out, y.to(out.device))
            step.zero_grad()
            loss.backward()
            step.step()
            losses.append(loss)
        assert close(*losses)
    for p, q in zip(net.parameters(), one.parameters(), strict=True):
        assert p.device.index == 0 and close(p, q) and close(p.grad, q.grad)


def test_output_device_dim_and_kwargs():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.tensor([2.0]))
            self.seen = []

        def forward(self, x, *, times):
            self.seen.append([*x.shape])
            return {"y": x * self.factor * times}

    net = nn.DataParallel(Scale().to("cuda:1"), [1, 0], output_device=0, dim=1)
    x = torch.ones(2, 6, device="cuda:1", requires_grad=True)
    y = net(x, times=torch.full((1, 2), 3.0))["y"]
    assert y.device.index == 0 and y.tolist() == [[6.0] * 6] * 2
    assert net.module.seen == [[2, 3], [2, 3]]
    y.sum().backward()
    assert x.grad.tolist() == [[6.0] * 6] * 2
    assert net.module.factor.grad.tolist() == [36.0]


def test_batchnorm_keeps_the_statistics_of_the_first_gpu():
    net = nn.BatchNorm1d(2).cuda()
    x = torch.arange(8.0, device="cuda:0").reshape(4, 2)
    nn.DataParallel(net)(x)
    alone = nn.BatchNorm1d(2)
    alone(x[:2].cpu())
    assert close(net.running_mean, alone.running_mean)
    assert net.num_batches_tracked.item() == 1


def test_dropout_hooks_and_no_grad():
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).cuda()
    calls = []
    net[0].register_forward_hook(lambda m, a, out: calls.append(out.device.index))
    parallel = nn.DataParallel(net)
    with torch.no_grad():
        out = parallel(torch.ones(4, 3))
    assert sorted(calls) == [0, 1] and not out.requires_grad
    parallel.eval()
    assert not net[1].training


def test_one_device_and_wrong_devices():
    net = nn.DataParallel(make_net(), device_ids=["cuda:1"])
    assert net.module[0].weight.device.index == 1
    assert net(torch.ones(2, 6)).device.index == 1
    with pytest.raises(RuntimeError, match="cuda:0"):
        nn.DataParallel(make_net())(torch.ones(2, 6))
    with pytest.raises(RuntimeError, match="empty"):
        nn.DataParallel(make_net(), device_ids=[])
    with pytest.raises(RuntimeError):
        nn.DataParallel(make_net(), device_ids=[0, 77])


def test_data_parallel_function():
    net = make_net().cuda()
    x = torch.ones(5, 6)
    whole = net(x.cuda())
    found = nn.parallel.data_parallel(net, x, [0, 1], "cuda:1")
    assert found.device.index == 1 and close(found, whole)
    options = OrderedDict(input=x)
    assert close(
        nn.parallel.data_parallel(net, (), [0, 1], module_kwargs=options), whole
    )


def test_an_error_in_a_part_is_raised():
    net = nn.DataParallel(nn.Linear(3, 3).cuda())
    with pytest.raises(RuntimeError):
        net(torch.ones(4, 2))


# --- programs in the manner of a book's sections on several GPUs ---------------------------

BY_HAND = """
import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.nn import functional as F

def start(shape):
    return torch.randn(shape) * 0.1

torch.manual_seed(0)
weights = [start((20, 12)), torch.zeros(12), start((12, 4)), torch.zeros(4)]

def net(x, w):
    return F.relu(x @ w[0] + w[1]) @ w[2] + w[3]

def to_device(params, device):
    new = [p.to(device) for p in params]
    for p in new:
        p.requires_grad_()
    return new

def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].to(data[0].device)
    for i in range(1, len(data)):
        data[i][:] = data[0].to(data[i].device)

data = [torch.ones((1, 2), device=d) * (i + 1) for i, d in enumerate(torch.try_all_gpus())]
allreduce(data)
n = len(data)
print([d.tolist() for d in data] == [[[n * (n + 1) / 2] * 2]] * n)

loss = nn.CrossEntropyLoss(reduction='none')

def train_batch(X, y, params, devices, lr):
    Xs, ys = (nn.parallel.scatter(t, devices) for t in (X, y))
    ls = [loss(net(a, w), b).sum() for a, b, w in zip(Xs, ys, params)]
    for l in ls:
        l.backward()
    with torch.no_grad():
        for i in range(len(params[0])):
            allreduce([params[c][i].grad for c in range(len(devices))])
        for w in params:
            for p in w:
                p -= lr * p.grad / len(X)
                p.grad.zero_()

def train(n):
    devices = [torch.try_gpu(i) for i in range(n)]
    params = [to_device([w.clone() for w in weights], d) for d in devices]
    torch.manual_seed(1)
    for _ in range(6):
        X = torch.randn(16, 20)
        y = (X[:, :4]).argmax(1)
        train_batch(X, y, params, devices, 0.5)
        for d in devices:
            torch.cuda.synchronize(d)
    return [p.detach().cpu() for p in params[-1]]

one = train(1)
many = train(torch.cuda.device_count())
print(all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(one, many)))
"""


@pytest.mark.parametrize("gpus", [2, 4])
def test_training_by_hand(gpus):
    found = python(
        BY_HAND, PYDEVTENSOR_SIM_GPUS=str(gpus), PYDEVTENSOR_SIM_SCHEDULE="random:7"
    )
    assert found == "True\nTrue\n"


CONCISE = """
import pydevtensor as torch
from pydevtensor import nn

class Residual(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.one, self.two = nn.Linear(n, n), nn.Linear(n, n)
        self.norm = nn.LayerNorm(n)
    def forward(self, x):
        return self.norm(torch.relu(self.two(torch.relu(self.one(x))) + x))

def init_weights(module):
    if type(module) in [nn.Linear]:
        nn.init.normal_(module.weight, std=0.3)

def train(count):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 16), Residual(16), Residual(16), nn.Linear(16, 3))
    devices = [torch.try_gpu(i) for i in range(count)]
    net.apply(init_weights)
    if count:
        net = nn.DataParallel(net, device_ids=devices)
    else:
        net, devices = nn.DataParallel(net, device_ids=[0]), [torch.device('cpu')]
    net.to(devices[0])
    trainer = torch.optim.SGD(net.parameters(), 0.1)
    loss = nn.CrossEntropyLoss()
    for _ in range(5):
        X = torch.randn(8, 10)
        y = X[:, :3].argmax(1)
        trainer.zero_grad()
        X, y = X.to(devices[0]), y.to(devices[0])
        l = loss(net(X), y)
        l.backward()
        trainer.step()
    return [l.item()] + [p.sum().item() for p in net.parameters()]

n = torch.cuda.device_count()
first = train(min(n, 1))
print(n, all(abs(a - b) < 1e-4 for a, b in zip(first, train(n))))
"""


@pytest.mark.parametrize("gpus", [0, 1, 2, 4])
def test_training_concisely(gpus):
    found = python(
        CONCISE, PYDEVTENSOR_SIM_GPUS=str(gpus), PYDEVTENSOR_SIM_SCHEDULE="random:9"
    )
    assert found == f"{gpus} True\n"


def test_without_gpus_the_module_runs_as_it_is():
    source = """
import pydevtensor as torch
from pydevtensor import nn
net = nn.Linear(2, 2)
x = torch.ones(3, 2)
both = nn.DataParallel(net)
print(both.device_ids, torch.equal(both(x), net(x)), both.module is net)
try:
    nn.parallel.data_parallel(net, x)
except RuntimeError as error:
    print('no GPU' in str(error))
"""
    assert python(source, PYDEVTENSOR_SIM_GPUS="0") == "[] True True\nTrue\n"
