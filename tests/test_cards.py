"""Cards: their properties and memory on paper, and estimates of their time."""

import os
import re

import pytest
from isolated import python

import pydevtensor as torch

large = pytest.mark.skipif(
    bool(os.environ.get("PYDEVTENSOR_SANITIZE")),
    reason="the sanitizer's own memory is an eighth of what is on paper",
)


# --- cards


@pytest.mark.parametrize(
    "given, name",
    [
        ("T4", "T4"),
        ("a100 80gb", "A100 80GB"),
        ("a100", "A100 40GB"),
        ("rtx4090", "RTX 4090"),
        ("NVIDIA H100-PCIe", "H100 PCIe"),
        ("h100", "H100 SXM"),
        (" h200 ", "H200"),
    ],
)
def test_a_card_is_found_by_its_name(given, name):
    out = python(f"""
import pydevtensor as torch
torch.cuda.simulate(1, card={given!r})
print(torch.cuda.get_device_name(0), torch.cuda.is_simulated())
""")
    assert out == f"NVIDIA {name} (simulated) True\n"


def test_a_card_has_its_properties():
    out = python("""
import pydevtensor as torch
torch.cuda.simulate(2, card='a100 80gb')
facts = torch.cuda.get_device_properties(1)
print(facts.multi_processor_count, facts.total_memory >> 30, facts.major, facts.minor)
print(facts.L2_cache_size >> 20, torch.cuda.get_device_capability())
""")
    assert out.split() == ["108", "80", "8", "0", "40", "(8,", "0)"]


def test_memory_may_be_less_than_the_cards():
    code = """
import pydevtensor as torch
{}
print(torch.cuda.mem_get_info()[1] >> 20)
"""
    how = "torch.cuda.simulate(1, card='l4', memory='64M')"
    assert python(code.format(how)) == "64\n"
    chosen = {"PYDEVTENSOR_SIM_GPUS": "1", "PYDEVTENSOR_SIM_CARD": "L4"}
    assert python(code.format(""), **chosen) == f"{24 << 10}\n"
    chosen["PYDEVTENSOR_SIM_MEMORY"] = "1M"
    assert python(code.format(""), **chosen) == "1\n"


@pytest.mark.parametrize(
    "words, kind, says",
    [
        ({"card": "gtx 9000"}, ValueError, "one of T4, V100, .*B200"),
        ({"card": ""}, ValueError, "one of T4"),
        ({"card": "t4,"}, ValueError, "one of T4"),
        ({"card": "t"}, ValueError, "one of T4"),
        ({"card": "a100 80"}, ValueError, "one of T4"),
        ({"card": "t4\0"}, ValueError, "one of T4"),
        ({"card": 4}, TypeError, "such as 'T4'"),
        ({"card": ",".join(["t4"] * 9)}, ValueError, "8 or fewer"),
        ({"host": "slow"}, ValueError, "'measured' or 'fixed'"),
        ({"host": 1}, ValueError, "'measured' or 'fixed'"),
    ],
)
def test_simulate_refuses_cards(words, kind, says):
    with pytest.raises(kind, match=says):
        torch.cuda.simulate(1, **words)


@pytest.mark.parametrize(
    "variable, value, says",
    [
        ("PYDEVTENSOR_SIM_CARD", "gtx", "give one of T4, V100"),
        ("PYDEVTENSOR_SIM_HOST", "slow", "give measured or fixed"),
    ],
)
def test_a_bad_environment_is_told(variable, value, says):
    code = "import pydevtensor as t; print(t.cuda.why_unavailable())"
    assert says in python(code, PYDEVTENSOR_SIM_GPUS="1", **{variable: value})


def test_a_card_comes_before_the_first_use():
    err = python(
        """
import pydevtensor as torch
torch.cuda.simulate(1)
torch.ones(1, device='cuda')
torch.cuda.simulate(1, card='t4')
""",
        fails=True,
    )
    assert "RuntimeError" in err and "already chosen" in err
    # The simulator itself says so too.
    err = python(
        """
import pydevtensor as torch
torch.cuda.simulate(1)
torch.ones(1, device='cuda')
torch._C._sim_control('card t4')
""",
        fails=True,
    )
    assert "before the first use" in err


@pytest.mark.skipif(not torch.cuda.is_simulated(), reason="needs simulated GPUs")
def test_without_a_card_there_is_no_clock():
    with pytest.raises(RuntimeError, match="card='T4'"):
        torch.cuda.clock()


@large
def test_memory_on_paper():
    out = python(
        """
import pydevtensor as torch
torch.cuda.simulate(1, card='h200')
x = torch.empty(50 << 30, dtype=torch.uint8, device='cuda')
y = torch.empty(80 << 30, dtype=torch.uint8, device='cuda')
x[-1] = 7
print(int(x[-1]), int(x[0]), int(y[1 << 20]) in (0, 255))
try:
    torch.empty(20 << 30, dtype=torch.uint8, device='cuda')
except torch.cuda.OutOfMemoryError as error:
    print(type(error).__name__)
del y
z = torch.empty(20 << 30, dtype=torch.uint8, device='cuda')
print(torch.cuda.memory_allocated() >> 30)
status = open('/proc/self/status').read()  # ru_maxrss begins with the parent's
print(int(status.split('VmHWM:')[1].split()[0]) < 1 << 20)
""",
    )
    assert out.split() == ["7", "255", "True", "OutOfMemoryError", "70", "True"]


# --- estimates


SCRIPT = """
import sys, torch
count = torch.cuda.device_count()
x = [torch.ones(600, 600, device=f"cuda:{i}") for i in range(count)]
for i in range(8):
    x[i % count] @ x[i % count]
print("ran", count, sys.argv[1:], flush=True)
print("warned", count, file=sys.stderr)
"""


def estimate(*arguments, **words):
    return python(
        "", arguments=["-P", "-m", "pydevtensor", "estimate", *arguments], **words
    )


def test_estimate(tmp_path):
    script, drawing = tmp_path / "script.py", tmp_path / "times.svg"
    script.write_text(SCRIPT)
    words = ["--cards", "t4,a100 80gb", "--gpus", "1,2"]
    text = estimate(script, "--lr", "3", *words, "--svg", drawing)
    assert text == estimate(script, "--lr", "3", *words)  # the host's time is fixed
    out = text.splitlines()
    assert out[0] == "ran 1 ['--lr', '3']"  # once, not for each number of GPUs
    assert out[1].split()[:4] == ["card", "GPUs", "time", "gain"]
    cells = [re.split(r"  +", line.strip()) for line in out[2:]]
    rows, hosts = cells[::2], cells[1::2]
    assert all(row[0] == "the host" and "% of the time" in row[-1] for row in hosts)
    assert [row[:2] for row in rows] == [
        ["T4", "1"],
        ["T4", "2"],
        ["A100 80GB", "1"],
        ["A100 80GB", "2"],
    ]
    scale = {"us": 1, "ms": 1000}
    times = [float(row[2].split()[0]) * scale[row[2].split()[1]] for row in rows]
    assert times[0] > times[1] and times[0] > times[2]
    assert float(rows[1][3]) == pytest.approx(times[0] / times[1], abs=0.02)
    assert [row[5:7] for row in rows] == [["9", "0"], ["10", "0"]] * 2
    assert "FLOP/s (" in out[2] and "3 MiB" in out[2]
    text = drawing.read_text()
    assert text.startswith("<svg") and "A100 80GB, 2 GPUs" in text


def test_estimate_tells_cards_apart_for_a_small_network():
    code = """
import torch
net = torch.nn.Linear(64, 64).cuda()
x = torch.ones(32, 64).cuda()
for _ in range(20):
    net(x).sum().backward()
"""
    out = estimate("-c", code, "--cards", "t4,h200").splitlines()
    t4, h200 = (re.split(r"  +", line.strip()) for line in out[1::2])
    assert "the host" not in t4[-1] + h200[-1]
    assert t4[4] != h200[4]  # how long the GPU works


@pytest.mark.slow
def test_estimate_shows_why_a_later_run_failed():
    code = "import torch; torch.ones(1).cuda(); assert torch.cuda.device_count() < 2, 'two'"
    words = ["--cards", "t4", "--gpus", "1,2"]
    said = estimate("-c", code, *words, fails=True, status=1)
    assert "AssertionError: two" in said and "on 2 simulated GPUs" in said


@large
def test_estimate_says_what_does_not_fit():
    code = "import torch; x = torch.empty(17 << 30, dtype=torch.uint8, device='cuda'); x[0] = 1"
    out = estimate("-c", code, "--cards", "t4,h200", "--host", "fixed")
    t4, h200 = out.splitlines()[1::2]
    assert "17.0 GiB, more than 16.0 GiB" in t4 and "more than" not in h200


@pytest.mark.parametrize(
    "arguments, status, says",
    [
        (["-c", "0", "--cards", "t5"], 2, "give one of T4, V100"),
        (["-c", "0"], 2, "--cards"),
        (["--cards", "t4"], 2, "give the program to run"),
        (["-c", "0", "--cards", "t4", "--gpus", "0"], 2, "from 1 to 32"),
        (["-c", "0", "--cards", "t4", "--gpus", "two"], 2, "two"),
        (["-c", "0", "--cards", "t4", "--host", "slow"], 2, "measured"),
        (["-c", "0", "--cards", "t4"], 1, "used no GPU"),
        (["--cards", "t4", "--", "-c", "import sys; sys.exit(3)"], 3, "status 3"),
        (["--cards", "t4", "-c", "1 / 0"], 1, "ZeroDivisionError"),
    ],
)
def test_estimate_refuses(arguments, status, says):
    assert says in estimate(*arguments, fails=True, status=status)
