"""What PyTorch has and pydevtensor does not: it can be imported, and using it says so."""

import pickle
import subprocess
import sys
from abc import ABC
from importlib import import_module
from importlib.util import find_spec
from typing import Final

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor._as_torch import _Extension
from pydevtensor._stand_ins import is_module, is_stand_in, table

TABLE = {path: names for path, names in table().items() if is_module(path)}


def imported(path):
    if path == "_C":
        return _Extension("torch._C")
    return import_module(f"pydevtensor.{path}".removesuffix("."))


@pytest.mark.parametrize("top", sorted({path.partition(".")[0] for path in TABLE}))
def test_every_name_of_pytorch_is_there(top):
    missing = []
    for path, names in TABLE.items():
        if path.partition(".")[0] == top:
            module = imported(path)
            for name in names:
                whole, _, member = name.partition(".")
                found = getattr(module, whole)
                if member and is_stand_in(found):
                    missing += [] if hasattr(found, member) else [(path, name)]
    assert missing == []


def test_the_table_is_that_of_the_release():
    assert len(TABLE) > 800 and len(TABLE[""]) > 900
    assert {"distributed.fsdp", "fx", "onnx", "ao.quantization"} <= set(TABLE)
    assert {"Linear", "Module", "Transformer"} <= set(TABLE["nn"])
    assert "ReduceOp.SUM" in TABLE["distributed"]
    private = {path for path in TABLE if any(p[:1] == "_" for p in path.split("."))}
    assert {path.partition(".")[0] for path in private} == {
        *("_C", "__config__", "_dynamo", "_inductor", "_subclasses", "_tensor"),
        *("_tensor_str", "_utils", "distributed", "fx", "jit", "utils"),
        *("_functorch", "_logging", "_vmap_internals"),
    }


def test_what_the_package_has_is_no_stand_in():
    assert not is_stand_in(torch.nn.Linear) and not is_stand_in(torch.nn)
    assert nn.modules.linear.Linear is nn.Linear
    from pydevtensor.accelerator.memory import memory_allocated
    from pydevtensor.autograd.gradcheck import gradcheck

    assert gradcheck is torch.autograd.gradcheck
    assert memory_allocated is torch.accelerator.memory_allocated


CALLS = {
    "torch.distributed.fsdp.DataParallelMeshDims()": "FullyShardedDataParallel",
    "torch.distributed.rpc.init_rpc('a')": "send() and recv()",
    "torch.sparse.spsolve(torch.ones(3, 3), torch.ones(3))": "call to_dense()",
    "torch.quantize_per_tensor(torch.ones(3), 1, 0, torch.qint8)": ".to(torch.float16)",
    "torch.hub.help('a', 'b')": "source='local'",
    "torch.monitor.Event()": "docs/compatibility.md",
    "torch.distributed.rpc.BackendType.TENSORPIPE()": "send() and recv()",
    "Derived()": "torch.fx.CodeGen",
    "torch.export.export('a')": "torch.export.export",
    "torch.library.triton_op('a::b', mutates_args=())": "library.custom_op",
}


class Derived(torch.fx.CodeGen, ABC):
    """Defined, and so imported; only an object of it cannot be made."""

    level = 3

    def trace(self, root):
        return root


@pytest.mark.parametrize("call", CALLS)
def test_a_call_says_what_to_do(call):
    with pytest.raises(NotImplementedError, match="pydevtensor has no torch") as caught:
        eval(call)
    assert CALLS[call] in str(caught.value)


def test_attributes():
    from pydevtensor.distributed.rpc import BackendType

    from pydevtensor.distributed import ReduceOp

    assert hasattr(torch.distributed.rpc, "init_rpc")
    assert BackendType.TENSORPIPE is torch.distributed.rpc.BackendType.TENSORPIPE
    assert ReduceOp is torch.distributed.distributed_c10d.ReduceOp
    for owner in (torch.distributed.rpc, BackendType, torch.sparse, torch, nn, Derived):
        assert not hasattr(owner, "no_such_name")
    with pytest.raises(AttributeError, match=r"send\(\) and recv"):
        _ = torch.distributed.rpc.no_such_name
    with pytest.raises(ImportError, match="cannot import name 'no_such'"):
        from pydevtensor.sparse import no_such  # noqa: F401
    assert getattr(torch, "", None) is None
    assert Derived.level == 3


@pytest.mark.parametrize(
    "name", ["jit.script_if_tracing", "compiler.allow_in_graph", "_dynamo.disable"]
)
def test_a_mark_gives_the_function_back(name):
    above, _, last = name.rpartition(".")
    mark = getattr(imported(above), last)
    assert mark(abs) is abs and mark(recursive=False)(abs) is abs
    assert is_stand_in(mark) and mark.__name__ == last


def test_what_is_registered_with_a_part_that_is_not_there():
    cell = torch._dynamo.mark_static_address(torch.ones(2))
    with pytest.raises(NotImplementedError, match=r"mark_static_address"):
        cell()


def test_options_of_a_compiler_can_be_set(monkeypatch):
    config = torch._dynamo.config
    monkeypatch.setattr(config, "suppress_errors", True, raising=False)
    assert config.suppress_errors and not hasattr(config, "cache_size_limit")


def test_the_extension_module_has_no_getattr():
    """Python 3.11 and later look up names of such a module without their short way."""
    assert "__getattr__" not in vars(torch._C)


def test_classes():
    linear = nn.Linear(1, 1)
    kinds = (torch.distributed.fsdp.OffloadPolicy, torch.fx.CodeGen)
    assert not isinstance(linear, kinds)
    assert not issubclass(nn.Linear, kinds) and issubclass(Derived, torch.fx.CodeGen)
    assert repr(kinds[1]) == "<stand-in for torch.fx.CodeGen>"
    assert "Derived" in repr(Derived)

    class Mixed(nn.Module, torch.fx.CodeGen, frozen=True):
        pass

    def annotated(a: torch.futures.Future[int] | None, b: "torch.SymInt") -> None:
        pass

    with pytest.raises(NotImplementedError, match=r"fx\.CodeGen"):
        Mixed()


def test_exceptions_can_be_caught():
    with pytest.raises(ZeroDivisionError):
        try:
            _ = 1 / 0
        except (torch.distributed.QueueEmptyError, torch.jit.Error):
            raise AssertionError from None
    assert issubclass(torch.serialization.SourceChangeWarning, Warning)


@pytest.mark.parametrize(
    "question",
    [
        "distributed.is_ucc_available()",
        "distributed.rpc.is_available()",
        "backends.kleidiai.is_available()",
        "mtia.is_available()",
        "xpu.is_available()",
        "onnx.is_in_onnx_export()",
        "jit.is_tracing()",
        "compiler.is_exporting()",
        "overrides.has_torch_function((1,))",
        "xpu.is_bf16_supported()",
    ],
)
def test_a_question_whether_a_part_is_there_is_answered(question):
    assert eval(f"torch.{question}") is False


def test_there_are_no_devices_of_other_makers():
    assert torch.mtia.device_count() == torch.xpu.device_count() == 0


def test_pickles_and_names():
    for value in (
        torch.fx.CodeGen,
        torch.distributed.rpc.BackendType.TENSORPIPE,
        torch.stft,
    ):
        assert pickle.loads(pickle.dumps(value)) is value
    assert torch.fx.CodeGen.__module__ == "pydevtensor.fx"
    assert "write the changed module" in torch.fx.CodeGen.__doc__


def test_dir_leaves_stand_ins_out():
    before = dir(torch), dir(nn)
    _ = torch.stft, nn.CrossMapLRN2d
    assert (dir(torch), dir(nn)) == before
    assert "quantize_per_tensor" not in before[0] and "CrossMapLRN2d" not in before[1]
    assert set(dir(torch.distributed.rpc)) == {
        name
        for name in TABLE["distributed.rpc"]
        if name.startswith("is_") and "rank" not in name
    }
    names = {}
    exec("from pydevtensor.sparse import *", names)
    assert {"mm", "addmm"} <= set(names)


def test_modules():
    assert repr(torch.export) == "<stand-in for the module pydevtensor.export>"
    assert find_spec("pydevtensor.distributed.fsdp") is not None
    assert find_spec("pydevtensor.no_such") is None
    for name in ("no_such", "fx.no_such", "nn.no_such", "nn.functional.no_such"):
        with pytest.raises(ModuleNotFoundError, match=f"pydevtensor.{name}"):
            import_module(f"pydevtensor.{name}")


def test_a_function_stays_where_a_module_has_its_name():
    out = python("""
import pydevtensor as torch
import pydevtensor.autograd.gradcheck
import pydevtensor.distributed.autograd
assert torch.autograd.gradcheck.__code__
print(torch.distributed.autograd)
""")
    assert out == "<stand-in for the module pydevtensor.distributed.autograd>\n"


def test_tensorboard_is_there_where_its_package_is(tmp_path):
    code = f"""
import sys
import pydevtensor as torch
for path in (".", {str(tmp_path)!r}):
    sys.path.insert(0, path)
    try:
        from pydevtensor.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError as error:
        print(str(error).partition("install it: ")[2])
"""
    if find_spec("tensorboard"):
        pytest.skip("the package tensorboard is installed here")
    (tmp_path / "tensorboard.py").write_text("")  # another package of this name
    assert python(code) == "pip install tensorboard\n" * 2


PROGRAM = """
import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import fx, nn, Tensor
from torch.distributed import ReduceOp
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.fft import rfft
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.utils import prune
from torch.onnx import symbolic_helper
from torch.utils.data.distributed import DistributedSampler
from torch.utils.benchmark import Timer
import torch.ao.quantization.quantize_fx

HALVES = {"float16": torch.float16, "float8": torch.float8_e4m3fn, "complex": torch.cfloat}

class Rewriter(fx.Transformer):
    def call_function(self, target, args, kwargs):
        return super().call_function(target, args, kwargs)

def reduced(x: Tensor, op: ReduceOp = ReduceOp.SUM, group: dist.ProcessGroup | None = None):
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(x, op, group)
    return x

net = nn.Linear(2, 1)
if dist.is_available() and torch.cuda.device_count() > 1:
    net = DDP(net)
inner = net.module if isinstance(net, (DDP, FSDP)) else net
sampler = DistributedSampler(inner) if dist.is_initialized() else None
print(reduced(inner(torch.zeros(1, 2)).detach() * 0).tolist())
assert dir(torch) == sorted(set(dir(torch)))
"""


def test_a_program_that_imports_and_does_not_use_runs(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    out = python("", arguments=["-m", "pydevtensor", "run", str(path)])
    assert out in ("[[0.0]]\n", "[[-0.0]]\n")


def test_stand_ins_are_loaded_when_they_are_used():
    code = """
import sys
import {module}
assert "pydevtensor._stand_ins" not in sys.modules
"""
    for module in ("pydevtensor", "pydevtensor.nn, pydevtensor.optim"):
        subprocess.run(
            [sys.executable, "-P", "-c", code.format(module=module)], check=True
        )


def test_types_that_no_tensor_has(device):
    for make in (
        lambda: torch.zeros(2, dtype=torch.complex32, device=device),
        lambda: torch.tensor([1], dtype=torch.uint16, device=device),
        lambda: torch.ones(2, device=device).to(torch.float8_e5m2),
        lambda: torch.ones(2, device=device).type(torch.qint8),
        lambda: torch.ones(2, device=device).sum(dtype=torch.uint64),
        lambda: torch.ones(2, device=device).view(torch.int4),
        lambda: torch.set_default_dtype(torch.complex32),
        lambda: nn.Linear(1, 1, dtype=torch.bits8, device=device),
    ):
        with pytest.raises(TypeError, match=r"which no Tensor of pydevtensor has"):
            make()
    assert torch.ones(2, device=device).dtype != torch.complex32


def test_the_class_of_types_cannot_be_used_otherwise():
    for kind in (torch.dtype, type(torch.complex32)):
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            type("Kind", (kind,), {})


FLOAT8 = {  # max, eps, tiny of PyTorch 2.13
    "float8_e4m3fn": (448.0, 0.125, 0.015625),
    "float8_e4m3fnuz": (240.0, 0.125, 0.0078125),
    "float8_e5m2": (57344.0, 0.25, 6.103515625e-05),
    "float8_e5m2fnuz": (57344.0, 0.125, 3.0517578125e-05),
}


@pytest.mark.parametrize("name", FLOAT8)
def test_limits_of_types_that_no_tensor_has(name):
    limits = torch.finfo(getattr(torch, name))
    assert (limits.max, limits.eps, limits.tiny) == FLOAT8[name]
    assert limits.min == -limits.max and limits.bits == 8 and limits.dtype == name


def test_names_that_libraries_take_at_import():
    assert torch.jit.Final is Final
    kinds = torch.distributed.ReduceOp
    assert kinds.RedOpType.SUM == kinds.SUM
    assert torch.profiler.kineto_available() is False


def test_a_wrapper_of_an_optimizer_steps():
    """As accelerate's: of the class, and without what Optimizer.__init__() makes."""

    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    weight = torch.ones(1, requires_grad=True)
    weight.grad = torch.ones(1)
    Wrapper(torch.optim.SGD([weight], lr=0.5)).step()
    assert weight.item() == 0.5


def test_frozen_batch_norm_is_batch_norm_that_does_not_learn(device):
    learned = nn.BatchNorm2d(3).to(device)
    learned(torch.randn(4, 3, 5, 5, device=device))
    learned.eval()
    frozen = torch.vision.ops.misc.FrozenBatchNorm2d(3).to(device)
    frozen.load_state_dict(learned.state_dict())
    x = torch.randn(2, 3, 5, 5, device=device)
    torch.testing.assert_close(frozen.train()(x), learned(x))
    assert [*frozen.parameters()] == [] and repr(frozen) == (
        "FrozenBatchNorm2d(3, eps=1e-05)"
    )
