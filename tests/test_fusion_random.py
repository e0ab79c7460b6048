"""Random programs: fused, they give what they give without, bit for bit."""

import gc

from chains import same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pydevtensor as torch

UNARY = ["relu", "neg", "abs", "exp", "tanh", "sigmoid", "square", "sign", "floor"]
BINARY = ["add", "sub", "mul", "div", "maximum", "fmod", "lt", "eq", "atan2"]
TYPES = [
    *(torch.float32, torch.float64, torch.bfloat16),
    *(torch.int32, torch.bool, torch.complex64),
]
STEPS = [
    *("unary", "binary", "number", "first", "cast", "row", "column", "where"),
    *("in_place", "view", "part", "whole", "item", "sum", "drop", "copy"),
    *("scalar", "same"),
]
SHAPE = (130, 131)


def program(seeds, tensors):
    """Runs a program of steps; what fails, fails in the same way in both runs."""
    pool, notes = list(tensors), []
    for kind, i, j, k in seeds:
        a, b = pool[i % len(pool)], pool[j % len(pool)]
        try:
            if kind == "unary":
                made = getattr(torch, UNARY[k % len(UNARY)])(a)
            elif kind == "binary":
                made = getattr(torch, BINARY[k % len(BINARY)])(a, b)
            elif kind == "number":
                made = getattr(torch, BINARY[k % len(BINARY)])(a, k - 3.5)
            elif kind == "first":
                made = (k - 3.5) - a if k % 2 else (k - 3.5) / a
            elif kind == "cast":
                made = a.to(TYPES[k % len(TYPES)])
            elif kind == "row":
                made = a.reshape(SHAPE) + b.reshape(SHAPE)[k]
            elif kind == "column":
                made = a.reshape(SHAPE) * b.reshape(SHAPE)[:, k : k + 1]
            elif kind == "where":
                made = torch.where(a > 0, a, b)
            elif kind == "in_place":
                getattr(a, ["add_", "mul_", "copy_"][k % 3])(b)
                made = None
            elif kind == "view":
                made = a.view(-1) if a.dim() > 1 else a.view(SHAPE)
            elif kind == "part":
                a.reshape(-1)[k : k + 20] *= 2
                made = None
            elif kind == "whole":
                part = a.reshape(SHAPE)[:, k % 9 :]
                made = torch.zeros(SHAPE, device=a.device)
                made[:, k % 9 :] = part + 1
            elif kind == "item":
                notes.append(repr(a.reshape(-1)[k].item()))
                made = None
            elif kind == "sum":
                notes.append(repr(a.sum().item()))
                made = None
            elif kind == "drop":
                pool[i % len(pool)] = b
                made = None
            elif kind == "scalar":
                made = a * b.reshape(-1)[k]
            elif kind == "same":
                made = torch.addcmul(a, a, b) if k % 2 else torch.lerp(a, b, 0.25)
            else:
                made = a.clone()
        except (RuntimeError, NotImplementedError, TypeError) as error:
            notes.append(str(error))
            made = None
        if made is not None:
            pool = [*pool[-5:], made]
    return pool, notes


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(STEPS),
            *(st.integers(0, 5), st.integers(0, 5), st.integers(0, 120)),
        ),
        max_size=30,
    )
)
def test_random_programs(device, seeds):
    torch.manual_seed(1)
    tensors = [
        torch.randn(SHAPE),
        torch.randn(SHAPE).view(-1),
        torch.randint(-5, 5, SHAPE),
        torch.randn(SHAPE) > 0,
    ]
    tensors = [t.to(device) for t in tensors]
    want, said = program(seeds, [t.clone() for t in tensors])
    with torch.fused():
        got, told = program(seeds, [t.clone() for t in tensors])
    assert told == said
    assert same(got, want)
    gc.collect()


def on_streams(seeds, x, devices):
    """Steps on two streams of each device, each of which waits for the one before."""
    streams = [(name, torch.cuda.Stream(name)) for name in devices]
    streams += [(name, torch.cuda.default_stream(name)) for name in devices]
    pool, notes, before = [x.to(devices[0]) for _ in "ab"], [], streams[0][1]
    torch.cuda.synchronize(devices[0])
    for where, i, k in seeds:
        name, stream = streams[where % len(streams)]
        with torch.cuda.stream(stream):
            stream.wait_stream(before)
            a, b = pool[i % len(pool)].to(name), pool[k % len(pool)].to(name)
            if k % 7 == 6:
                a.mul_(0.5)
                notes.append(a[k].item())
            made = [a * b + 1, torch.tanh(a) - b, (a > b) & (a < 1), a.half() * k][
                k % 4
            ]
            pool = [*pool[-4:], made.float() + a]
        before = stream
    for name in devices:
        torch.cuda.synchronize(name)
    return [t.cpu() for t in pool], notes


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 20)), max_size=12
    )
)
def test_random_programs_on_streams(two_gpus, schedule, seeds):
    x = torch.linspace(-3, 3, 1003)
    want, said = on_streams(seeds, x, two_gpus)
    with torch.fused():
        got, told = on_streams(seeds, x, two_gpus)
    assert told == said
    assert same(got, want)
