"""torch.cuda: which devices there are, which is current, and what happens without."""

import os
import subprocess
import sys

import pytest
from isolated import python

import pydevtensor as torch


def test_without_a_gpu():
    out = python("""
import pydevtensor as torch
print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized())
print(torch.try_gpu(), torch.try_gpu(3), torch.try_all_gpus())
print(torch.cuda.memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_stats())
torch.cuda.empty_cache(); torch.cuda.manual_seed_all(3); torch.cuda.manual_seed(3)
print(torch.device('cuda:7'), torch.cuda.is_simulated(), torch.cuda.is_bf16_supported())
print(len(torch.cuda.why_unavailable()) > 20)
cases = dict(
    current_device=lambda: torch.cuda.current_device(),
    set_device=lambda: torch.cuda.set_device(0),
    synchronize=lambda: torch.cuda.synchronize(),
    name=lambda: torch.cuda.get_device_name(),
    stream=lambda: torch.cuda.Stream(),
    current_stream=lambda: torch.cuda.current_stream(),
    ones=lambda: torch.ones(2, device='cuda'),
    cuda=lambda: torch.ones(2).cuda(),
    number=lambda: torch.device(0),
    info=lambda: torch.cuda.mem_get_info(),
)
for name, call in cases.items():
    try:
        call()
        print(name, 'ran')
    except RuntimeError as error:
        assert name == 'info' or 'PYDEVTENSOR_SIM_GPUS=2' in str(error), (name, error)
print((torch.ones(2) + 1).tolist())
""")
    assert out.splitlines() == [
        "False 0 False",
        "cpu cpu [device(type='cpu')]",
        "0 0 {}",
        "cuda:7 False False",
        "True",
        "[2.0, 2.0]",
    ]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_counts(n):
    out = python(f"""
import pydevtensor as torch
torch.cuda.simulate({n})
print(torch.cuda.device_count(), torch.cuda.is_available(), torch.cuda.is_simulated())
print(torch.try_all_gpus() == [torch.device('cuda', i) for i in range({n})])
print('simulated' in torch.cuda.get_device_name({n - 1}).lower())
try:
    torch.ones(1, device='cuda:{n}')
except RuntimeError as error:
    print('cuda:{n}' in str(error))
print(torch.try_gpu({n}), torch.try_gpu({n - 1}))
""")
    assert out.splitlines() == [
        f"{n} True True",
        "True",
        "True",
        "True",
        f"cpu cuda:{n - 1}",
    ]


def test_the_environment_chooses_and_simulate_overrides():
    code = "import pydevtensor as t; {} print(t.cuda.device_count())"
    assert python(code.format(""), PYDEVTENSOR_SIM_GPUS="3") == "3\n"
    assert python(code.format("t.cuda.simulate(2);"), PYDEVTENSOR_SIM_GPUS="3") == "2\n"
    assert python(code.format("t.cuda.simulate(2); t.cuda.simulate(4);")) == "4\n"


@pytest.mark.parametrize("kind", ["simulate", "virtual"])
def test_one_limit_of_simulated_and_virtual_gpus(kind):
    variable = {"simulate": "SIM", "virtual": "VIRTUAL"}[kind]
    choose = getattr(torch.cuda, kind)
    for n in (33, -1, 10**30):
        said = f"is {n}; give a number of GPUs from 0 to 32"
        with pytest.raises(ValueError, match=said):
            choose(n)
        code = "import pydevtensor as t; print(t.cuda.why_unavailable())"
        name = f"PYDEVTENSOR_{variable}_GPUS"
        assert python(code, **{name: str(n)}) == f"{name} {said}.\n"


@pytest.mark.parametrize("name", ["RACES", "SCHEDULE", "CARD", "MEMORY", "FAIL"])
def test_a_wrong_setting_is_named_and_needs_no_new_installation(name):
    code = "import pydevtensor as t; print(t.cuda.why_unavailable())"
    chosen = {"PYDEVTENSOR_SIM_GPUS": "1", f"PYDEVTENSOR_SIM_{name}": "wrong"}
    why = python(code, **chosen)
    assert why.startswith(f"PYDEVTENSOR_SIM_{name}: 'wrong' is not"), why
    assert "give" in why and "install" not in why


def test_choosing_after_a_use_is_an_error():
    out = python("""
import pydevtensor as torch
torch.cuda.device_count()
for call in (torch.cuda.simulate, torch.cuda.virtual):
    try:
        call(2)
    except RuntimeError as error:
        print('import' in str(error))
""")
    assert out == "True\nTrue\n"


def test_virtual_devices_share_a_card():
    out = python("""
import pydevtensor as torch
torch.cuda.simulate(1, memory='64M')
torch.cuda.virtual(2)
print(torch.cuda.device_count())
print([torch.cuda.get_device_properties(i).physical for i in range(2)])
print(sum(torch.cuda.mem_get_info(i)[1] for i in range(2)) <= 64 << 20)
x = torch.arange(3, device='cuda:0')
print(x.cuda(1) + 1)
try:
    x + x.cuda(1)
except RuntimeError as error:
    print('cuda:0' in str(error) and 'cuda:1' in str(error))
""")
    assert out.splitlines() == [
        "2",
        "[0, 0]",
        "True",
        "tensor([1, 2, 3], device='cuda:1')",
        "True",
    ]


@pytest.mark.parametrize(
    "bad, kind",
    [
        ("-1", ValueError),
        ("33", ValueError),
        ("'2'", TypeError),
        ("True", TypeError),
        ("2.0", TypeError),
    ],
)
def test_simulate_refuses(bad, kind):
    for call in (torch.cuda.simulate, torch.cuda.virtual):
        with pytest.raises(kind, match="give"):
            call(eval(bad))


@pytest.mark.parametrize(
    "words", [{"schedule": "soon"}, {"schedule": "random:"}, {"memory": 0}]
)
def test_simulate_refuses_settings(words):
    with pytest.raises(ValueError, match="give"):
        torch.cuda.simulate(2, **words)


def test_current_device(two_gpus):
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    assert torch.cuda.current_device() == 1
    assert torch.ones(1, device="cuda").device == torch.device("cuda:1")
    torch.cuda.set_device(-1)
    assert torch.cuda.current_device() == 1
    torch.cuda.set_device("cuda:0")
    assert torch.ones(1).cuda().get_device() == 0


@pytest.mark.parametrize("how", [1, "cuda:1", torch.device("cuda:1")])
def test_device_context(two_gpus, how):
    with torch.cuda.device(how) as context:
        assert context.__class__ is torch.cuda.device
        assert torch.cuda.current_device() == 1
        with torch.cuda.device(0):
            assert torch.cuda.current_device() == 0
        assert torch.ones(1, device="cuda").get_device() == 1
    assert torch.cuda.current_device() == 0
    with pytest.raises(KeyError), torch.cuda.device(how):
        raise KeyError
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(-1):
        assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("bad", [99, "cuda:99"])
def test_devices_that_do_not_exist(two_gpus, bad):
    calls = [
        torch.cuda.set_device,
        torch.cuda.synchronize,
        torch.cuda.get_device_name,
        torch.cuda.memory_allocated,
        torch.cuda.mem_get_info,
        torch.cuda.Stream,
        torch.cuda.device(bad).__enter__,
    ]
    for call in calls[:-1]:
        with pytest.raises(RuntimeError):
            call(bad)
    with pytest.raises(RuntimeError):
        calls[-1]()
    assert torch.cuda.current_device() == 0


def test_the_cpu_is_no_gpu(two_gpus):
    for call in (
        torch.cuda.set_device,
        torch.cuda.get_device_name,
        torch.cuda.synchronize,
    ):
        with pytest.raises(ValueError, match="cuda"):
            call("cpu")
    with pytest.raises(RuntimeError):
        torch.cuda.set_device("gpu")
    with pytest.raises(TypeError):
        torch.cuda.set_device(1.5)


def test_properties(gpu):
    facts = torch.cuda.get_device_properties(gpu)
    assert repr(facts).startswith(
        f"_CudaDeviceProperties(name='{facts.name}', major={facts.major}, "
    )
    assert (facts.major, facts.minor) == torch.cuda.get_device_capability(gpu)
    assert facts.total_memory >= torch.cuda.mem_get_info(gpu)[0] > 0
    assert facts.name == torch.cuda.get_device_name(gpu)
    assert facts.warp_size == 32
    assert facts.simulated is torch.cuda.is_simulated(gpu)


def test_seeds(two_gpus):
    torch.cuda.manual_seed(5)
    assert torch.cuda.initial_seed() == 5
    a = torch.rand(100, device="cuda:0")
    torch.cuda.manual_seed_all(5)
    b, c = torch.rand(100, device="cuda:0"), torch.rand(100, device="cuda:1")
    assert a.tolist() == b.tolist() == c.tolist()
    assert torch.rand(100, device="cuda:0").tolist() != a.tolist()
    torch.cuda.seed()
    assert torch.cuda.initial_seed() != 5
    torch.manual_seed(5)
    assert torch.rand(100, device="cuda:1").tolist() == a.tolist()


def test_generators(device):
    g = torch.Generator(device=device)
    assert str(g.device) == device
    assert g.manual_seed(7) is g and g.initial_seed() == 7
    a = torch.rand(10, generator=g, device=device).tolist()
    assert torch.rand(10, generator=g, device=device).tolist() != a
    g.manual_seed(7)
    assert torch.rand(10, generator=g, device=device).tolist() == a
    assert g.seed() == g.initial_seed()
    assert (
        torch.Generator(device=device).initial_seed()
        == torch.Generator(device=device).initial_seed()
    )
    for bad, kind in (
        ("x", RuntimeError),
        (1 << 64, ValueError),
        (-(1 << 63) - 1, ValueError),
    ):
        with pytest.raises(kind):
            g.manual_seed(bad)
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1


def test_generators_belong_to_a_device(gpu):
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(2, device=gpu, generator=torch.Generator())


def test_default_generator():
    assert torch.manual_seed(3) is torch.default_generator
    a = torch.rand(3).tolist()
    torch.default_generator.manual_seed(3)
    assert torch.rand(3).tolist() == a
    assert torch.initial_seed() == 3


def test_main_takes_few_arguments():
    version = python(None, arguments=["-m", "pydevtensor", "--version"])
    assert version == f"pydevtensor {torch.__version__}\n"
    assert "usage:" in python(None, arguments=["-m", "pydevtensor", "--help"])
    wrong = python(None, arguments=["-m", "pydevtensor", "what"], fails=True)
    assert "give what to run" in wrong


def test_main_to_a_reader_that_goes_away():
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pydevtensor"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 0 and not done.stderr


def test_main_shows_devices():
    out = python(None, arguments=["-m", "pydevtensor"], PYDEVTENSOR_SIM_GPUS="2")
    assert out.startswith(f"pydevtensor {torch.__version__}")
    assert "cuda:1" in out and "simulated" in out and "BLAS" in out and "threads" in out
    out = python(None, arguments=["-m", "pydevtensor"])
    assert "cuda:0" not in out and "none" in out


def test_sim_controls(two_gpus):
    if not torch.cuda.is_simulated():
        pytest.skip("needs simulated GPUs")
    before = torch.cuda.sim_counters(1)["launches"]
    torch.ones(3, device="cuda:1").add_(1)
    assert torch.cuda.sim_counters(1)["launches"] > before
    with pytest.raises(ValueError):
        torch.cuda.sim_fail("nothing:1")
    with pytest.raises(ValueError):
        torch.cuda.sim_schedule("soon")
    x = torch.ones(8, device="cuda:0")
    torch.cuda.sim_fail("launch:1")
    with pytest.raises(RuntimeError):
        x + 1
    torch.cuda.sim_fail("")
    assert (x + 1).tolist() == [2] * 8
