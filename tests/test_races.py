"""Races on simulated GPUs: each kind is told of under each schedule, with both lines.

A program is run twice: without the lines marked `# repair`, and with them, when nothing
may be said. `# first` and `# second` mark the lines of the two accesses.
"""

import json
import re
import textwrap

import pytest
from conftest import SIMULATED
from isolated import python

import pydevtensor as torch

FRAME = """
import json
import pydevtensor as torch

s, t = torch.cuda.Stream(0), torch.cuda.Stream(0)
default = torch.cuda.default_stream(0)

def program():
{body}

said = []
for schedule in torch.cuda.sim_schedules(seeds=3):
    try:
        program()
    except RuntimeError as error:
        said.append(str(error))
print(json.dumps(said))
"""


def run(body, **chosen):
    """The lines of the program by mark, and what was raised under each schedule."""
    code = FRAME.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))
    marks = {}
    for number, line in enumerate(code.split("\n"), 1):
        if found := re.search("# (first|second)$", line):
            marks[found[1]] = number
    settings = {"PYDEVTENSOR_SIM_GPUS": "2", "PYDEVTENSOR_SIM_RACES": "error", **chosen}
    return marks, json.loads(python(code, **settings))


def broken(body):
    return re.sub(r"(?m)^(\s*)\S.*# repair$", r"\1pass", textwrap.dedent(body))


WAIT = r"Missing between <string>:{first} and <string>:{second}: s2\.wait_stream\(s1\)"
SYNC = r"Missing between <string>:{first} and <string>:{second}: s1\.synchronize\(\)"
SIDE, DEFAULT = r"stream 0x\w+ of cuda:0", "the default stream of cuda:0"

# Name, hazard, first access, second access, advice, program.
RACES = [
    (
        "read_on_another_stream",
        "RAW",
        f"fill writes them on s1, {DEFAULT}",
        f"add reads them on s2, {SIDE}",
        WAIT,
        """
        x = torch.ones(1000, device="cuda")  # first
        s.wait_stream(default)  # repair
        with s:
            y = x + 1  # second
        """,
    ),
    (
        "write_on_another_stream",
        "WAR",
        f"mul reads them on s1, {SIDE}",
        f"fill writes them on s2, {DEFAULT}",
        WAIT,
        """
        x = torch.ones(1000, device="cuda")
        s.wait_stream(default)
        with s:
            y = x * 2  # first
        default.wait_stream(s)  # repair
        x.zero_()  # second
        """,
    ),
    (
        "two_writers",
        "WAW",
        f"fill writes them on s1, {SIDE}",
        f"fill writes them on s2, {DEFAULT}",
        WAIT,
        """
        x = torch.ones(1000, device="cuda")
        s.wait_stream(default)
        with s:
            x.fill_(2)  # first
        default.wait_event(s.record_event())  # repair
        x.fill_(3)  # second
        """,
    ),
    (
        "an_event_recorded_too_early",
        "RAW",
        f"add reads and writes|add writes them on s1, {DEFAULT}",
        f"mul reads them on s2, {SIDE}",
        WAIT,
        """
        x = torch.ones(1000, device="cuda")
        event = default.record_event()
        x += 1  # first
        event.record(default)  # repair
        s.wait_event(event)
        with s:
            y = x * 2  # second
        """,
    ),
    (
        "an_event_of_another_stream",
        "RAW",
        f"fill writes them on s1, {SIDE}",
        f"mul reads them on s2, {DEFAULT}",
        WAIT,
        """
        with s:
            x = torch.ones(1000, device="cuda")  # first
        t.wait_stream(s)  # repair
        default.wait_event(t.record_event())
        y = x * 2  # second
        """,
    ),
    (
        "a_product",
        "RAW",
        f"uniform writes them on s1, {SIDE}",
        f"matmul reads them on s2, {DEFAULT}",
        WAIT,
        """
        b = torch.rand(8, 8, device="cuda")
        with s:
            a = torch.rand(8, 8, device="cuda")  # first
        default.wait_stream(s)  # repair
        c = b @ a  # second
        """,
    ),
    (
        "an_optimizer_step",
        "RAW",
        f"copy writes them on s1, {SIDE}",
        f"sgd reads them on s2, {DEFAULT}",
        WAIT,
        """
        p = torch.zeros(100, device="cuda", requires_grad=True)
        p.grad = torch.zeros(100, device="cuda")
        optimizer = torch.optim.SGD([p], lr=0.1)
        with s:
            found = torch.ones(100, device="cuda")
            s.wait_stream(default)
            p.grad.copy_(found)  # first
        default.wait_stream(s)  # repair
        optimizer.step()  # second
        """,
    ),
    (
        "overlapping_columns",
        "RAW|WAW",
        f"writes them on s1, {SIDE}",
        f"them on s2, {DEFAULT}",
        WAIT,
        """
        x = torch.ones(4, 100, device="cuda")
        s.wait_stream(default)
        with s:
            x[:, :51].fill_(2)  # first
        default.wait_stream(s)  # repair
        x[:, 50:].fill_(3)  # second
        """,
    ),
    (
        "a_copy_to_another_gpu",
        "RAW",
        f"add writes them on s1, {SIDE}",
        "copy device to device reads them on s2, the default stream of cuda:1",
        WAIT,
        """
        x = torch.ones(1000, device="cuda:0")
        s.wait_stream(default)
        with s:
            x += 1  # first
        default.wait_stream(s)  # repair
        y = x.to("cuda:1")  # second
        """,
    ),
    (
        "a_source_of_a_copy_to_another_gpu",
        "WAR",
        "copy device to device reads them on s1, the default stream of cuda:1",
        f"fill writes them on s2, {SIDE}",
        WAIT,
        """
        x = torch.ones(1000, device="cuda:0")
        s.wait_stream(default)
        y = x.to("cuda:1")  # first
        s.wait_stream(torch.cuda.default_stream(1))  # repair
        with s:
            x.zero_()  # second
        """,
    ),
    *(
        (
            f"a_copy_to_the_host_and_{name}",
            "RAW",
            f"copy device to host writes them on s1, {DEFAULT}",
            f"the host reads them in {name}",
            SYNC,
            f"""
            x = torch.ones(1000, device="cuda")
            here = torch.zeros(1000, pin_memory=True)
            here.copy_(x, non_blocking=True)  # first
            default.record_event().synchronize()  # repair
            value = {use}  # second
            """,
        )
        for name, use in [
            ("sum", "here.sum()"),
            ("item", "here[7].item()"),
            ("tolist", "here.tolist()"),
            ("numpy", "here.numpy()"),
            ("memoryview", "bytes(memoryview(here))"),
            ("add", "x[:9] + here[7]"),
        ]
    ),
    (
        "a_copy_to_the_host_and_back",
        "RAW",
        f"copy device to host writes them on s1, {SIDE}",
        "the host reads them in copy",
        SYNC,
        """
        here = torch.zeros(1000, pin_memory=True)
        with s:
            x = torch.ones(1000, device="cuda")
            here.copy_(x, non_blocking=True)  # first
        s.synchronize()  # repair
        y = here.to("cuda:1")  # second
        """,
    ),
    (
        "a_pinned_source_that_is_overwritten",
        "WAR",
        f"copy host to device reads them on s1, {SIDE}",
        "the host writes them in fill",
        SYNC,
        """
        batch = torch.ones(1000, pin_memory=True)
        with s:
            x = batch.to("cuda", non_blocking=True)  # first
        s.synchronize()  # repair
        batch.fill_(2)  # second
        """,
    ),
]


@pytest.mark.parametrize(
    ("hazard", "first", "second", "advice", "body"),
    [pytest.param(*rest, id=name) for name, *rest in RACES],
)
def test_a_race_is_told_with_both_lines(hazard, first, second, advice, body):
    marks, said = run(broken(body))
    assert len(said) == 5, said  # under eager, lazy, and three random orders
    assert len({re.sub("0x[0-9a-f]+", "", text) for text in said}) == 1, said
    heading, one, two, missing = said[0].split("\n")
    assert re.match(rf"(\w+: )?race \(({hazard}) hazard\) on (bytes|\d+ byte)", heading)
    assert re.search(first, one) and one.endswith(f", at <string>:{marks['first']}")
    assert re.search(second, two) and two.endswith(f", at <string>:{marks['second']}")
    assert re.search(advice.format(**marks), missing)
    assert run(body)[1] == []


SILENT = {
    "halves": """
        x = torch.ones(4, 1000, device="cuda")
        s.wait_stream(default)
        with s:
            x[:2] += 1
        x[2:] += 1
        with s:
            x[:2].exp_()
    """,
    "columns": """
        x = torch.ones(4, 1000, device="cuda")
        s.wait_stream(default)
        with s:
            x[:, :500] *= 2
        x[:, 500:] *= 2
    """,
    "every_other_element": """
        x = torch.ones(1000, device="cuda")
        s.wait_stream(default)
        with s:
            x[::2].fill_(1)
        x[1::2].fill_(1)
    """,
    "readers": """
        x = torch.ones(1000, device="cuda")
        s.wait_stream(default)
        t.wait_stream(s)
        with s:
            a = x + 1
        with t:
            b = x + 2
        c = x + 3
    """,
    "polling": """
        with s:
            x = torch.ones(1000, device="cuda")
        event = s.record_event()
        while not event.query():
            pass
        y = x + 1
    """,
    "item": """
        with s:
            x = torch.ones(1000, device="cuda")
            x.sum().item()  # waits for s
        y = x + 1
    """,
    "gradients": """
        x = torch.ones(10, 10, device="cuda", requires_grad=True)
        s.wait_stream(default)
        with s:
            y = (x @ x).sum()
        default.wait_stream(s)
        (y * 2).backward()
        x.grad.sum().item()
    """,
    "memory_that_is_used_again": """
        for i in range(4):
            x = torch.ones(1000, device="cuda")
            s.wait_stream(default)
            with s:
                y = x + 1
            del x  # while s reads it
            x = torch.zeros(1000, device="cuda")
            default.wait_stream(s)
    """,
    "parts_of_pinned_memory": """
        here = torch.zeros(2, 1000, pin_memory=True)
        x = torch.ones(1000, device="cuda")
        here[0].copy_(x, non_blocking=True)
        here[1].fill_(3)
        here[1].sum().item(), here[1].tolist()
    """,
    "pinned_memory_that_is_used_again": """
        for i in range(4):
            batch = torch.ones(1000, pin_memory=True)
            x = batch.cuda(non_blocking=True)
            batch.sum()  # both only read
            del batch
    """,
    "a_loader": """
        data = torch.utils.data.TensorDataset(torch.arange(8.0))
        for (x,) in torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True):
            x.cuda(non_blocking=True).sum().item()
    """,
    "two_gpus": """
        x = torch.ones(1000, device="cuda:0")
        for i in range(3):
            y = x.to("cuda:1")
            x += 1
            x.copy_(y + i)
    """,
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
def test_what_is_in_order_or_apart_is_no_race(body):
    assert run(body)[1] == []


WARNS = """
import warnings
import pydevtensor as torch
torch.cuda.simulate(1, races="warn")
s = torch.cuda.Stream()

def step():
    x = torch.ones(10, device="cuda")
    with s:
        y = x + 1
        z = x * 2

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        step()
assert [str(each.message)[:17] for each in caught] == ["race (RAW hazard)"], caught
assert caught[0].category is RuntimeWarning and caught[0].lineno == 10
assert "at <string>:8" in str(caught[0].message)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        with s:
            torch.ones(10, device="cuda")
            x = torch.ones(10, device="cuda")
        x += 1
    except RuntimeWarning as warning:
        assert "wait_stream" in str(warning)
    else:
        raise AssertionError
"""


def test_a_warning_comes_once_for_two_lines():
    python(WARNS)


def test_nothing_is_looked_for_unless_it_is_wanted():
    python(
        """
        import pydevtensor as torch
        from pydevtensor import _C
        torch.cuda.simulate(1)
        s = torch.cuda.Stream()
        x = torch.ones(10, device="cuda")
        with s:
            y = x + 1
        assert _C._source_lines() == []  # no line of the program was asked for
        """.replace("\n        ", "\n")
    )


def test_a_stream_that_does_not_wait_finds_poison():
    """New memory is no other tensor's, and its zeros are nobody's result."""
    python(
        """
        import math
        import pydevtensor as torch
        torch.cuda.simulate(1, schedule="lazy")
        s = torch.cuda.Stream()
        with s:
            x = torch.zeros(10, device="cuda")
        y = x + 1
        assert all(map(math.isnan, y.tolist()))
        """.replace("\n        ", "\n")
    )


def test_bad_choices():
    with pytest.raises(ValueError, match="races is 'loud'; give 'warn' or 'error'"):
        torch.cuda.simulate(1, races="loud")
    said = python(
        "import pydevtensor as torch; print(torch.cuda.why_unavailable())",
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_RACES="loud",
    )
    assert "'loud' is not a way to report races" in said


@pytest.mark.skipif(not SIMULATED, reason="schedules are those of simulated GPUs")
def test_schedules_in_one_loop(gpu):
    before = torch._C._sim_control("schedule")
    seen = []
    for name in torch.cuda.sim_schedules(seeds=2):
        seen.append((name, torch._C._sim_control("schedule")))
        torch.ones(3, device=gpu)
    names = ["eager", "lazy", "random:1", "random:2"]
    assert seen == [(name, name) for name in names]
    assert torch._C._sim_control("schedule") == before
    for _ in torch.cuda.sim_schedules():
        torch.cuda.sim_schedule("lazy")
        break
    assert torch._C._sim_control("schedule") == before
    assert list(torch.cuda.sim_schedules(0)) == ["eager", "lazy"]
    with pytest.raises(TypeError, match="seeds is '3'"):
        torch.cuda.sim_schedules("3")
    with pytest.raises(ValueError, match="seeds is -1"):
        torch.cuda.sim_schedules(-1)
