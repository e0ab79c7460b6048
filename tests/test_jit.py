"""torch.compile, torch.jit, torch.backends and torch.testing."""

import inspect
import io
import pickle
import sys
import warnings

import pytest
from conftest import GPUS, SIMULATED
from isolated import python

import pydevtensor as torch
from pydevtensor import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)


def reloaded(module, **options):
    file = io.BytesIO()
    torch.jit.save(module, file)
    return torch.jit.load(io.BytesIO(file.getvalue()), **options)


# --- nothing is compiled ------------------------------------------------------------


def test_it_is_said_once_that_nothing_is_compiled():
    out = python("""
import warnings
import pydevtensor as torch
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    @torch.jit.script
    def f(x):
        return x + 1
    net = torch.nn.ReLU()
    assert torch.jit.trace(net, torch.ones(1)) is net
print(f(1), len(said), said[0].filename, said[0].message)
""")
    assert out.startswith("2 1 <string> torch.jit.script() gives back what it gets")


def test_script_modules(quiet):
    class Twice(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return 2 * x

    net = nn.Linear(2, 1)
    assert Twice()(3) == 6 and isinstance(Twice(), nn.Module)
    assert not isinstance(net, torch.jit.ScriptModule)
    assert isinstance(torch.jit.script(net), torch.jit.ScriptModule)
    assert isinstance(reloaded(net), torch.jit.ScriptModule)
    assert not isinstance(torch.jit.script(net), Twice)


def test_forked_calls():
    assert torch.jit.wait(torch.jit.fork(lambda x, y: x - y, 3, y=1)) == 2
    later = torch.jit.fork(lambda: [][0])
    with pytest.raises(IndexError):
        later.wait()


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_what_decorators_give_back(quiet):
    def f(x):
        return x

    for decorated in (
        torch.jit.ignore(f),
        torch.jit.ignore(drop=True)(f),
        torch.jit.export(f),
        torch.jit.unused(f),
        torch.compiler.disable(f),
        torch.compiler.disable(recursive=False)(f),
        torch.jit.script(f),
        torch.jit.trace(f, (torch.ones(1),)),
        torch.jit.annotate(object, f),
    ):
        assert decorated is f
    assert torch.jit.is_scripting() is torch.jit.is_tracing() is False
    assert torch.compiler.is_compiling() is False
    with pytest.raises(TypeError, match="give a function or a module"):
        torch.compile(3)
    with pytest.raises(TypeError, match="give a function or a module"):
        torch.jit.script(3)


# --- save and load ------------------------------------------------------------------


def network():
    shared = nn.Linear(4, 4)
    return nn.Sequential(
        nn.Linear(3, 4),
        nn.BatchNorm1d(4, eps=0.01),
        shared,
        nn.ModuleDict({"a": nn.Dropout(0.3), "b": nn.ModuleList([nn.LayerNorm(4)])})[
            "a"
        ],
        shared,
        nn.Sequential(nn.LeakyReLU(0.2), nn.Softmax(dim=1), nn.Flatten(1, -1)),
        nn.Linear(4, 2, bias=False),
    )


def test_types_of_items():
    is_a = torch.jit.isinstance
    assert is_a(3, int) and not is_a("a", int) and is_a(None, None)
    assert is_a([1], list[int]) and not is_a([1, "a"], list[int])
    assert is_a({"a": torch.ones(1)}, dict[str, torch.Tensor])
    assert not is_a({"a": 1}, dict[str, torch.Tensor])
    assert is_a((1, "a"), tuple[int, str]) and not is_a((1,), tuple[int, str])
    assert is_a((1, 2, 3), tuple[int, ...]) and is_a(None, int | None)
    assert is_a(2.0, (int, float)) and not is_a([1], dict[str, int])


def test_settings_of_a_compiler_that_is_not_there(quiet):
    net = nn.ReLU()
    assert torch.jit.trace_module(net, {"forward": torch.ones(1)}) is net
    with torch.jit.optimized_execution(False), torch.jit.fuser("fuser2"):
        assert torch.jit.set_fusion_strategy([("STATIC", 1)]) == [("STATIC", 1)]
    torch.jit.enable_onednn_fusion(True)
    assert torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(False)


def test_other_files_in_an_archive():
    file = io.BytesIO()
    torch.jit.save(nn.ReLU(), file, _extra_files={"a.txt": "text", "b": b"1"})
    file.seek(0)
    found = {"a.txt": "", "none": "kept"}
    torch.jit.load(file, _extra_files=found)
    assert found == {"a.txt": b"text", "none": "kept"}


def test_a_network_comes_back(device):
    net = network().to(device)
    x = torch.rand(5, 3, device=device)
    net(x)
    net.eval()
    net[0].weight.requires_grad_(False)
    net[3].train()
    again = reloaded(net)
    assert repr(again) == repr(net)
    assert [m.training for m in again.modules()] == [m.training for m in net.modules()]
    assert again[2] is again[4] and again[1].eps == 0.01
    assert not again[0].weight.requires_grad and again[2].weight.requires_grad
    assert isinstance(again[2].weight, nn.Parameter) and again[6].bias is None
    for (name, mine), (other, theirs) in zip(
        net.state_dict().items(), again.state_dict().items(), strict=True
    ):
        assert name == other and torch.equal(mine, theirs)
        assert theirs.device == torch.device(device)
    again.eval(), net.eval()
    assert torch.equal(again(x), net(x))
    again(x).sum().backward()
    assert {p.device.type for p in reloaded(net, map_location="cpu").parameters()} == {
        "cpu"
    }


def test_a_scripted_module_has_save(tmp_path, quiet):
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    assert not hasattr(net, "save")
    torch.jit.script(net).save(tmp_path / "net")
    again = torch.jit.load(tmp_path / "net")
    assert torch.equal(again[0].weight, net[0].weight)
    again.save(tmp_path / "again")
    assert not hasattr(again[0], "save")
    assert "_scripted" not in reloaded(again)[1].__dict__


def test_buffers_that_are_not_kept_in_states_come_back():
    net = nn.Module()
    net.register_buffer("mask", torch.tensor([1.0, 0.0]), persistent=False)
    net.register_buffer("none", None)
    again = reloaded(net)
    assert again.mask.tolist() == [1, 0] and again.none is None
    assert "mask" not in again.state_dict()


def hooked():
    net = nn.Linear(1, 1)
    net.register_forward_hook(lambda *values: None)
    return net


def with_function(function):
    net = nn.ReLU()
    net.function = function
    return net


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (Net(), "the module is a Net, which is not a layer of pydevtensor.nn"),
        (nn.Sequential(Net()), r"the module\.0 is a Net.*save its state_dict\(\)"),
        (hooked(), "has hooks"),
        (with_function(lambda x: x), "has a function as function"),
        (nn.LazyLinear(2), "lazy parameters"),
        (torch.exp, "a function cannot be in a file"),
    ],
)
def test_what_cannot_be_saved(module, text):
    with pytest.raises(RuntimeError, match=text):
        torch.jit.save(module, io.BytesIO())


def test_an_option_that_no_file_can_hold():
    net = nn.ReLU()
    net.option = object()
    with pytest.raises(pickle.PicklingError, match="cannot be in a checkpoint"):
        torch.jit.save(net, io.BytesIO())


def test_a_function_of_the_package_is_saved_by_name():
    again = reloaded(with_function(nn.functional.gelu))
    assert again.function is nn.functional.gelu


def described():
    """What a file of a small network says."""
    file = io.BytesIO()
    torch.jit.save(nn.Sequential(nn.Linear(2, 1)), file)
    file.seek(0)
    return torch.load(file)


def change(path, value):
    def apply(found):
        *inner, last = path
        for step in inner:
            found = found[step]
        found[last] = value

    return apply


LINEAR = ("module", "modules", "0")


@pytest.mark.parametrize(
    "damage",
    [
        change(("module",), [1]),
        change(("module", "class"), "os.system"),
        change(("module", "class"), "Net"),
        change(("module", "class"), ["Linear"]),
        change(("module", "training"), 1),
        change((*LINEAR, "options", "forward"), 3),
        change((*LINEAR, "options", "__class__"), 3),
        change((*LINEAR, "options", "_parameters"), {}),
        change((*LINEAR, "options", "_forward_hooks"), {1: 2}),
        change((*LINEAR, "functions", "f"), "__import__"),
        change((*LINEAR, "functions", "forward"), "relu"),
        change((*LINEAR, "functions", "f"), 3),
        change((*LINEAR, "parameters", "weight"), torch.ones(2)),
        change((*LINEAR, "parameters", "weight"), "text"),
        change((*LINEAR, "parameters", "forward"), None),
        change((*LINEAR, "parameters", "a.b"), None),
        change((*LINEAR, "parameters", "training"), None),
        change((*LINEAR, "parameters", 3), None),
        change((*LINEAR, "buffers"), []),
        change((*LINEAR, "buffers", "b"), 1),
        change((*LINEAR, "not_persistent"), ["b"]),
        change((*LINEAR, "modules", "x"), 3),
        lambda found: found["module"]["modules"].update(x=found["module"]),
        lambda found: found["module"].pop("class"),
    ],
)
def test_a_file_that_describes_no_module(damage):
    found = described()
    damage(found)
    file = io.BytesIO()
    torch.save(found, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="does not describe a module"):
        torch.jit.load(file)


def test_parts_that_repeat_cost_no_time():
    """60 levels, each of which holds the next one twice."""
    found = described()
    inner = found["module"]["modules"]["0"]
    for _ in range(60):
        inner = {**found["module"], "modules": {"a": inner, "b": inner}}
    file = io.BytesIO()
    torch.save({**found, "module": inner}, file)
    file.seek(0)
    assert torch.jit.load(file).a.b is not None


def test_other_files():
    file = io.BytesIO()
    torch.save(nn.Linear(1, 1).state_dict(), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="load_state_dict"):
        torch.jit.load(file)
    file = io.BytesIO()
    torch.save({**described(), "version": 2}, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="version 2"):
        torch.jit.load(file)


# --- settings -----------------------------------------------------------------------


def test_settings_are_remembered(monkeypatch):
    cudnn = torch.backends.cudnn
    monkeypatch.setattr(cudnn, "benchmark", True)
    assert torch.backends.cudnn.benchmark is True
    with pytest.raises(KeyError), cudnn.flags(enabled=False, benchmark=False):
        assert cudnn.enabled is cudnn.benchmark is False
        raise KeyError
    assert cudnn.enabled is cudnn.benchmark is True
    assert not cudnn.is_available() and cudnn.version() is None
    assert not torch.backends.mps.is_built()
    with pytest.raises(AttributeError, match=r"pydevtensor\.backends has no 'no_such'"):
        _ = torch.backends.no_such
    assert torch.backends.nnpack.is_available() is False


def test_tf32_of_convolutions():
    cudnn = torch.backends.cudnn
    first = SIMULATED or not GPUS  # as conftest.py says
    assert cudnn.allow_tf32 is first
    with cudnn.flags(allow_tf32=False):
        assert cudnn.allow_tf32 is False
        with cudnn.flags():
            assert cudnn.allow_tf32 is True
    assert cudnn.allow_tf32 is first
    with pytest.raises(RuntimeError, match="give True or False"):
        cudnn.allow_tf32 = 1
    assert torch.backends.cuda.matmul.allow_tf32 is False


def test_tf32_is_the_precision_of_products():
    matmul = torch.backends.cuda.matmul
    assert matmul.allow_tf32 is False
    try:
        matmul.allow_tf32 = True
        assert torch.get_float32_matmul_precision() == "high"
        torch.set_float32_matmul_precision("highest")
        assert matmul.allow_tf32 is False
    finally:
        torch.set_float32_matmul_precision("highest")


# --- torch.testing ------------------------------------------------------------------

ONES = torch.ones(2)
NAN = torch.tensor(float("nan"))
CLOSE = [
    (1, 1, {}),
    (1, 1.0, {"check_dtype": False}),
    (1.0, 1.0 + 2e-7, {}),
    ([1, 2], (1, 2), {}),
    (None, None, {}),
    (nn.Parameter(ONES), ONES, {}),
    (NAN, NAN, {"equal_nan": True}),
    (torch.ones(0), torch.ones(0), {}),
    (ONES, ONES.double(), {"check_dtype": False}),
    (ONES, ONES + 1e-5, {}),
    (ONES.half(), ONES.half() + 1e-3, {}),
    (ONES.bfloat16(), ONES.bfloat16() + 1.5e-2, {}),
    (ONES, ONES + 1, {"rtol": 0.5, "atol": 0}),
    ({"a": [ONES], "b": None}, {"b": None, "a": (ONES,)}, {}),
    (torch.ones(2, 3).t(), torch.ones(3, 2), {}),
    (torch.tensor([True]), torch.tensor([True]), {}),
]
FAR = [
    (1, 1.0, {}, "dtypes"),
    (1.0, 1.0 + 3e-7, {}, "the values, 1.0 and 1.0000003, are not close"),
    (None, 1, {}, "None and 1"),
    (ONES, None, {}, "None"),
    (NAN, NAN, {}, "not close"),
    (torch.ones(2, 3).t(), torch.ones(3, 2), {"check_stride": True}, "strides"),
    ({"a": 1}, {"a": 1, "b": 2}, {}, r"only expected \['b'\]"),
    ([1], [1, 2], {}, "lengths are 1 and 2"),
    (ONES, ONES.double(), {}, "dtypes are torch.float32 and torch.float64"),
    (ONES, torch.ones(3), {}, r"shapes are \[2\] and \[3\]"),
    (torch.tensor(1), torch.tensor([1]), {}, "shapes"),
    ([ONES], [ONES * 0], {}, r"2 of 2 elements of item \[0\] \(100.0%\)"),
    (
        {"a": [1]},
        {"a": [2]},
        {},
        r"the values of item \['a'\]\[0\], 1 and 2, are not equal",
    ),
    (ONES, ONES + 3e-5, {}, "within rtol=1.3e-06 and atol=1e-05"),
    (torch.tensor([[1, 2]]), torch.tensor([[1, 9]]), {}, r"is 7 at index \(0, 1\)"),
    (torch.tensor([True]), torch.tensor([False]), {}, "1 of 1 elements"),
]


@pytest.mark.parametrize(("actual", "expected", "options"), CLOSE)
def test_close(actual, expected, options):
    torch.testing.assert_close(actual, expected, **options)


@pytest.mark.parametrize(("actual", "expected", "options", "text"), FAR)
def test_not_close(actual, expected, options, text):
    with pytest.raises(AssertionError, match=text):
        torch.testing.assert_close(actual, expected, **options)
    with pytest.raises(AssertionError, match=r"^mine$"):
        torch.testing.assert_close(actual, expected, **options, msg="mine")
    with pytest.raises(AssertionError, match=f"^mine: .*{text}"):
        torch.testing.assert_close(
            actual, expected, **options, msg=lambda text: "mine: " + text
        )


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (torch.tensor(1.0), 1.0, {}),
        ("a", "a", {}),
        (object(), object(), {}),
        ({1}, {1}, {}),
        ([ONES], torch.ones(1, 2), {}),
        (nn.Parameter(ONES), ONES, {"allow_subclasses": False}),
    ],
)
def test_what_cannot_be_compared(actual, expected, options):
    with pytest.raises(TypeError, match="cannot be compared"):
        torch.testing.assert_close(actual, expected, **options)


def test_one_tolerance_alone():
    with pytest.raises(ValueError, match="give both or none"):
        torch.testing.assert_close(1.0, 1.0, rtol=0)


def test_close_on_devices(gpu):
    x = torch.ones(2, device=gpu)
    torch.testing.assert_close(x, x + 1e-6)
    with pytest.raises(AssertionError, match="devices are"):
        torch.testing.assert_close(x, ONES)
    torch.testing.assert_close(x, ONES, check_device=False)


# --- other modules that programs name -----------------------------------------------


def test_the_accelerator_is_the_gpu(gpu):
    accelerator = torch.accelerator
    assert (
        accelerator.is_available()
        and accelerator.device_count() == torch.cuda.device_count()
    )
    assert accelerator.current_accelerator() == torch.device("cuda")
    accelerator.set_device_index(torch.device(gpu).index)
    assert accelerator.current_device_index() == torch.device(gpu).index
    accelerator.synchronize()
    accelerator.synchronize(gpu)


def test_memory_and_streams_of_the_accelerator(gpu):
    accelerator, index = torch.accelerator, torch.device(gpu).index
    accelerator.reset_peak_memory_stats(index)
    before = accelerator.memory_allocated(index)
    x = torch.ones(1 << 16, device=gpu)
    held = accelerator.memory_allocated(gpu)
    assert held >= before + x.nbytes
    del x
    assert accelerator.memory_allocated(index) == before
    assert accelerator.max_memory_allocated(index) >= held
    assert accelerator.max_memory_reserved(index) >= accelerator.memory_reserved(index)
    assert accelerator.memory_stats(index) == torch.cuda.memory_stats(index)
    free, total = accelerator.get_memory_info(index)
    assert 0 < free <= total
    accelerator.empty_cache()
    with accelerator.device_index(index):
        assert accelerator.current_device_index() == index
        stream = torch.cuda.Stream(gpu)
        own = accelerator.current_stream(index)
        accelerator.set_stream(stream)
        assert accelerator.current_stream() == stream
        accelerator.set_stream(own)
    before = accelerator.current_device_index()
    with accelerator.device_index(None):
        assert accelerator.current_device_index() == before
    with pytest.raises(RuntimeError):
        accelerator.memory_stats(99)


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("autograd.function.Function", torch.autograd.Function),
        ("autograd.grad_mode.no_grad", torch.no_grad),
        ("autograd.grad_mode.inference_mode", torch.inference_mode),
        ("autograd.variable.Variable", torch.autograd.Variable),
        ("cuda.memory.memory_allocated", torch.cuda.memory_allocated),
        ("cuda.random.manual_seed_all", torch.cuda.manual_seed_all),
        ("cuda.streams.Stream", torch.cuda.Stream),
        ("cuda.StreamContext", type(torch.cuda.stream(None))),
    ],
)
def test_names_by_the_files_of_pytorch(path, same):
    found = torch
    for name in path.split("."):
        found = getattr(found, name)
    assert found is same


def test_the_cpu_as_a_device(device):
    cpu = torch.cpu
    assert cpu.is_available() and cpu.is_initialized() and cpu.device_count() == 1
    cpu.set_device(cpu.current_device())
    cpu.synchronize()
    assert torch.get_device_module("cpu") is cpu
    assert torch.get_device_module(device) is getattr(torch, torch.device(device).type)
    with pytest.raises(RuntimeError):
        torch.get_device_module("nothing")


def test_without_an_accelerator():
    python("""
import pydevtensor as torch
assert torch.accelerator.current_accelerator() is None
assert torch.get_device_module() is torch.cpu
assert not (torch.accelerator.is_available() or torch.mps.is_available() or torch.xpu.is_available())
assert torch.accelerator.device_count() == torch.xpu.device_count() == torch.mps.device_count() == 0
import pydevtensor.multiprocessing as mp, multiprocessing
assert mp.Process is multiprocessing.Process and mp.get_context("spawn")
""")


def test_variable_is_the_tensor(device):
    x = torch.ones(2, device=device)
    for requires in (False, True):
        v = torch.autograd.Variable(x, requires_grad=requires)
        assert type(v) is torch.Tensor and v.requires_grad is requires and v.is_leaf
        assert v.data_ptr() == x.data_ptr() and isinstance(v, torch.autograd.Variable)
    assert not torch.autograd.Variable(v * 2).requires_grad and not x.requires_grad
    assert torch.autograd.Variable().shape == (0,)
    with pytest.raises(TypeError, match="a list was given"):
        torch.autograd.Variable([1, 2])


def test_the_default_type_by_a_class():
    torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.get_default_dtype() is torch.float64
    torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.get_default_dtype() is torch.float32
    for wrong in (torch.LongTensor, "torch.cuda.FloatTensor", torch.float64, "Tensor"):
        with pytest.raises(TypeError, match="set_default_device"):
            torch.set_default_tensor_type(wrong)


def test_data_sets_that_follow_each_other():
    class Range(torch.utils.data.IterableDataset):
        def __len__(self):
            return 2

        def __iter__(self):
            return iter([1, 2])

    both = Range() + Range()
    assert isinstance(both, torch.utils.data.ChainDataset) and len(both) == 4
    assert [b.tolist() for b in torch.utils.data.DataLoader(both, 3)] == [
        [1, 2, 1],
        [2],
    ]
    with pytest.raises(TypeError, match="ConcatDataset"):
        list(torch.utils.data.ChainDataset([[1, 2]]))


def test_answers_say_why():
    for function in (
        torch.mps.is_available,
        torch.cpu.device_count,
        torch.jit.is_tracing,
    ):
        module = sys.modules[function.__module__]
        assert getattr(module, function.__name__) is function
        assert pickle.loads(pickle.dumps(function)) is function
        answer, reason = function.__doc__.splitlines()[0].split(": ")
        assert answer == repr(function()) and module.__doc__.split(": ")[1].startswith(reason)  # fmt: skip
    assert inspect.signature(torch.mps.device_count).return_annotation is int
