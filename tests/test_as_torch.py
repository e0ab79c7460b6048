"""`import torch` means pydevtensor: in this process, in its workers, and for a script.

Each test runs programs in processes of their own.
"""

import json
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest
from isolated import environment, python

START = "import pydevtensor\ntorch_module = pydevtensor.install_as_torch()\n"


def run(code, **expected):
    return python(START + dedent(code), **expected)


def test_modules_and_classes_are_ours():
    out = run("""
        import sys
        import torch
        from torch import nn
        import torch.nn.functional as F
        import torch.optim.lr_scheduler
        from torch.nn.modules.linear import Linear
        from torch.utils import data
        from torch.utils.data import DataLoader
        from torch.nn import *

        assert torch is torch_module is pydevtensor.install_as_torch()
        for name in ("nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler", "cuda",
                     "utils.data", "autograd", "linalg", "random", "nn.modules.linear"):
            __import__("torch." + name)
            ours = sys.modules["torch." + name]
            assert ours is sys.modules["pydevtensor." + name], name
            assert ours.__spec__.name == "pydevtensor." + name
        assert data.DataLoader is DataLoader and nn.Linear is Linear
        assert torch.Tensor is pydevtensor.Tensor and torch.float32 is pydevtensor.float32
        assert isinstance(F.relu(torch.ones(2)), torch.Tensor)
        assert set(pydevtensor.__all__) <= set(dir(torch))
        print(torch)
    """)
    assert out == "<module 'torch' (pydevtensor)>\n"


HOMES = json.loads((Path(__file__).parent / "golden/homes.json").read_text())["homes"]


def other_homes(top):
    """The classes of HOMES that say they are from another module, or are not there."""
    other = []
    for name, home in HOMES.items():
        module, _, kind = name.rpartition(".")
        module = module.replace("torch", top, 1)
        found = getattr(import_module(module), kind)
        home = home.replace("torch", top, 1)
        if found.__module__ != home or pickle.loads(pickle.dumps(found)) is not found:
            other.append((name, home, found.__module__))
    return other


@pytest.mark.parametrize("top", ["torch", "pydevtensor"])
def test_classes_say_which_module_they_are_from(top):
    out = python(f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import pydevtensor
import test_as_torch
if {top!r} == "torch":
    import pydevtensor.optim  # imported before, unlike others
    pydevtensor.install_as_torch()
print(test_as_torch.other_homes({top!r}))
    """)
    assert out == "[]\n"


def test_modules_have_names_that_classes_say():
    run("""
        import torch
        from torch.optim import lr_scheduler
        net = torch.nn.Linear(1, 1)
        scheduler = lr_scheduler.StepLR(torch.optim.SGD(net.parameters(), lr=1), 1)
        assert scheduler.__module__ == lr_scheduler.__name__ == "torch.optim.lr_scheduler"
        assert str(type(net)) == "<class 'torch.nn.modules.linear.Linear'>"
        assert repr(torch.Tensor) == "<class 'torch.Tensor'>"
    """)


def test_layers_of_functions_are_made_after_the_renaming():
    run("""
        from torch import nn
        y = nn.Sequential(nn.LazyLinear(2), nn.ReLU())(__import__("torch").ones(1, 3))
        assert nn.ReLU.forward.__module__ == "torch.nn.modules.activation"
        assert nn.ReLU.forward.__code__.co_filename.endswith("/nn/modules/activation.py")
    """)


def test_pickles_from_before_load():
    out = python("""
import pickle, pydevtensor
data = pickle.dumps(pydevtensor.nn.Linear(2, 1))
pydevtensor.install_as_torch()
import torch
print(pickle.loads(data), pickle.dumps(torch.nn.Linear(2, 1)) == data)
torch.save(torch.nn.Parameter(torch.ones(2)), "file")
print(torch.load("file").requires_grad)
    """)
    assert out == "Linear(in_features=2, out_features=1, bias=True) False\nTrue\n"


def test_pickles_by_either_name():
    run("""
        import pickle, copy
        import torch
        assert pickle.loads(b"ctorch\\nTensor\\n.") is pydevtensor.Tensor
        assert pickle.loads(b"ctorch.nn.modules.linear\\nLinear\\n.") is torch.nn.Linear
        layer = torch.nn.Linear(2, 1)
        again = pickle.loads(pickle.dumps({"a": layer, "b": layer.weight}))
        assert torch.equal(again["a"].weight, layer.weight)
        assert again["a"].weight is again["b"]
    """)


def test_the_version_compares_as_that_of_the_release():
    run("""
        import torch
        from torch.torch_version import TorchVersion
        assert torch.__version__.split("+")[0] == "2.13.0" != pydevtensor.__version__
        assert torch.version.__version__ == torch.__version__
        assert torch.__version__ >= (1, 8) and torch.__version__ < (2, 14)
        assert "2.9" < torch.__version__ < "2.13.1.dev2" and torch.__version__ > "2.13.0a1"
        assert torch.__version__ != "2.13.0" and torch.__version__ == "2.13+pydevtensor"
        assert TorchVersion("2.13.0") == "2.13" and TorchVersion("2.13.0") < "2.13.0.post1"
        assert torch.__version__ < "main" and torch.__version__ != None
        assert len({torch.__version__, str(torch.__version__)}) == 1
        assert torch.version.hip is None
        assert isinstance(torch.version.git_version, str)
    """)
    code = "import torch; assert torch.version.cuda.count('.') == 1"
    run(code, PYDEVTENSOR_SIM_GPUS="1")


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("import torch.no_such", "ModuleNotFoundError", "no module torch.no_such"),
        ("from torch import no_such", "ImportError", "cannot import name 'no_such'"),
        ("torch.no_such", "AttributeError", "pydevtensor has no 'no_such'"),
        ("torch.nn.no_such", "AttributeError", "pydevtensor.nn has no 'no_such'"),
        ("import torch.nn._functional", "ModuleNotFoundError", "torch.nn._functional"),
        ("import torch.fx.no_such", "ModuleNotFoundError", "as a class"),
        ("import torch.onnx.no_such", "ModuleNotFoundError", "torch.onnx.export()"),
        ("torch.onnx.dynamo_export()", "AttributeError", "torch.onnx.export()"),
        (
            "torch.hub.load('a', 'b')",
            "NotImplementedError",
            "source='local'",
        ),
        ("import torch._inductor.no_such", "ModuleNotFoundError", "call the function"),
        ("torch.utils.tensorboard", "AttributeError", "pip install tensorboard"),
        ("from torch.utils import tensorboard", "ModuleNotFoundError", "pip install"),
        (
            "from torch.utils.tensorboard import SummaryWriter",
            "ModuleNotFoundError",
            "pip install",
        ),
    ],
)
def test_what_is_missing_is_named(statement, error, text, missing):
    kind, message, name = missing[statement]
    assert kind == error and text in message, message
    if kind == "ModuleNotFoundError" and name != "tensorboard":
        assert message.split("has no module ")[1].startswith(name)


@pytest.fixture(scope="module")
def missing(request):
    """What each statement of the test raises, all of them run in one process."""
    marker = next(m for m in test_what_is_missing_is_named.pytestmark if m.args)
    statements = [case[0] for case in marker.args[1]]
    out = run(f"""
        import torch, importlib.util
        found = {{}}
        for statement in {statements!r}:
            try:
                exec(statement)
            except Exception as error:
                name = getattr(error, "name", None)
                found[statement] = type(error).__name__, str(error), name
        for name in ("torch.no_such", "torch.nn.no_such"):
            assert importlib.util.find_spec(name) is None
        for name in ("torch.nn.init", "torch.distributed.fsdp"):
            assert importlib.util.find_spec(name) is not None
        print(found)
    """)
    return eval(out)


def test_a_torch_that_is_imported_already_is_left_alone():
    out = python("""
import sys, types
import pydevtensor
for name in ("torch", "torchvision"):
    other = sys.modules[name] = types.ModuleType(name)
    other.__file__ = "/there/torch.py"
    before = list(sys.meta_path)
    try:
        pydevtensor.install_as_torch()
    except RuntimeError as error:
        print(error)
    assert sys.modules.pop(name) is other and sys.meta_path == before
pydevtensor.install_as_torch()
""")
    first, second = out.splitlines()
    assert "torch is imported already, from /there/torch.py; call it before" in first
    assert "torchvision is imported already" in second


def test_a_torch_that_is_installed_is_passed_over(tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemError('the other one')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    run(code + "import torch; torch.ones(2)")
    # Other programs do not see it.
    run(code + "import subprocess; subprocess.run([sys.executable, '-c', 'import torch'], "
        f"cwd={str(tmp_path)!r}, check=True)", fails=True)  # fmt: skip


PROCESSES = """
import sys
from multiprocessing import get_context
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        import torch.optim
        assert torch.nn is sys.modules["pydevtensor.nn"]
        return torch.tensor(i) ** 2

def work(x):
    from torch import nn
    return nn.Identity()(x) + 1, torch.__version__

if __name__ == "__main__":
    for how in ("fork", "spawn", "forkserver"):
        with get_context(how).Pool(1) as pool:
            y, version = pool.apply(work, (torch.ones(2),))
            pool.close()
            pool.join()
        assert y.tolist() == [2, 2] and version == torch.__version__
        loader = DataLoader(Squares(), 2, num_workers=1, multiprocessing_context=how)
        print(how, [batch.tolist() for batch in loader])
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", ["", "import multiprocessing.spawn\n"])
def test_processes_see_it_too(first, tmp_path):
    (tmp_path / "program.py").write_text(first + PROCESSES)
    arguments = ["-m", "pydevtensor", "run", str(tmp_path / "program.py")]
    out = python("", arguments=arguments)
    expected = "[[0, 1], [4, 9]]"
    assert out.splitlines() == [
        f"{how} {expected}" for how in ("fork", "spawn", "forkserver")
    ]


def test_a_process_of_forkserver_starts_without_the_main_module():
    """A server that preloads it would run its `import torch` without the finder."""
    run("""
        from multiprocessing import spawn
        assert "pydevtensor" in spawn.get_preparation_data("a name")
        __file__ = "main.py"
        assert "init_main_from_path" in spawn.get_preparation_data("a name")
        assert "init_main_from_path" not in spawn.get_preparation_data("ignore")
    """)


# --- python -m pydevtensor run ------------------------------------------------------

SHOW = """
'''a docstring'''
import sys
import beside
left_out = ("__annotations__", "__conditional_annotations__")
print(sys.argv, sys.path[0], __name__, __spec__ and __spec__.name, __package__, __doc__)
print(globals().get("__file__"), sorted({*globals()} - {*left_out}))
print(sys.modules["__main__"].__dict__ is globals(), beside.__name__)
"""
FAIL = """
def f():
    return 1 / 0
def g():
    try:
        f()
    except ZeroDivisionError as error:
        raise ValueError("outer") from error
g()
"""
FILES = {
    "show.py": SHOW,
    "beside.py": "",
    "fail.py": FAIL,
    "syntax.py": "x = (",
    "exit.py": "import sys; sys.exit('a message')",
    "status.py": "import atexit; atexit.register(print, 'last'); raise SystemExit(7)",
    "interrupt.py": "import os, time; os.kill(os.getpid(), 2); time.sleep(5)",
    "thread.py": "import threading, time\n"
    "threading.Timer(0.05, lambda: print(time.time() > 1, name)).start(); name = 'kept'",
    "package/__init__.py": "",
    "package/__main__.py": SHOW.replace("import beside", "from . import beside"),
    "package/beside.py": "",
    "folder/__main__.py": SHOW,
    "folder/beside.py": "",
    "other/sub.py": SHOW,
    "other/beside.py": "",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "arguments",
    ["show.py a -b", "./show.py", "other/sub.py", "folder x", "-m package q", "-m show"]
    + ["fail.py", "syntax.py", "exit.py", "status.py", "interrupt.py", "no_such.py"]
    + ["-m no_such", "thread.py", "-c 1/0 b", "-c print(__name__,__import__('sys').argv)"],
)  # fmt: skip
def test_a_program_runs_as_python_runs_it(arguments, programs):
    """Output, errors and exit status are those of `python ARGUMENTS`."""
    results = []
    for prefix in ([], ["-m", "pydevtensor", "run"]):
        done = subprocess.run(
            [sys.executable, *prefix, *arguments.split()],
            cwd=programs,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        errors = done.stderr.splitlines()
        errors = [line for line in errors if "<frozen runpy>" not in line]
        if arguments[:2] == "-c":  # Python 3.13 shows its lines
            errors = [line for line in errors if line[:4] != "    "]
        results.append((done.returncode, done.stdout, errors))
    assert results[0] == results[1]
    if arguments == "show.py a -b":
        assert results[0][1].startswith("['show.py', 'a', '-b'] ")


def test_a_program_imports_torch(programs):
    code = (
        "import torch, sys; assert torch.nn is sys.modules['pydevtensor.nn']; print(3)"
    )
    assert python("", arguments=["-m", "pydevtensor", "run", "-c", code]) == "3\n"
    error = python("", arguments=["-m", "pydevtensor", "run"], status=2, fails=True)
    assert "give what to run" in error


def test_metadata_say_the_version():
    out = run("""
        from importlib import metadata
        import torch

        assert metadata.version("torch") == metadata.version("Torch") == torch.__version__
        assert metadata.distribution("torch").metadata["Name"] == "torch"
        assert "torch" in metadata.packages_distributions()["torch"]
        assert "pytest" in {found.name for found in metadata.distributions()}
        assert not [*metadata.distributions(name="torch", path=["nowhere"])]
        try:
            metadata.version("no-such")
        except metadata.PackageNotFoundError:
            print("ok")
    """)
    assert out == "ok\n"


def test_private_names_of_the_extension_module():
    run("""
        import torch
        from torch import nn
        from torch._C import _TensorMeta
        import pydevtensor
        from pydevtensor._stand_ins import is_stand_in

        assert is_stand_in(_TensorMeta) and getattr(torch._C, "", None) is None
        assert torch._C.Tensor is pydevtensor._C.Tensor
        try:
            torch._C._no_such
        except AttributeError as error:
            assert "_no_such" in str(error)
        else:
            raise AssertionError
        assert torch._C._nn._parse_to("cpu", torch.float16) == (
            torch.device("cpu"), torch.float16, False, None)
        assert torch._C._nn._parse_to(None, non_blocking=True) == (None, None, True, None)
    """)


def test_private_modules_are_there_where_a_name_has_advice():
    assert run("import torch.distributed.fsdp as f; print(f.fully_shard.__name__)") == (
        "fully_shard\n"
    )


def test_the_package_finds_its_private_modules_and_programs_do_not():
    """A function of the package imports one after the renaming."""
    out = run("""
        import importlib.machinery
        import types
        import torch.cuda
        inside = types.ModuleType("torch.cuda.inside")
        inside.__spec__ = importlib.machinery.ModuleSpec("pydevtensor.cuda.inside", None)
        assert "_kernel_source" not in vars(torch.cuda)
        exec("from pydevtensor.cuda import _kernel_source", vars(inside))
        assert inside._kernel_source is torch.cuda._kernel_source
        try:
            from torch.cuda import _kernel_report
        except ImportError:
            print("none")
    """)
    assert out == "none\n"


def test_whole_modules_in_files(tmp_path):
    """Their classes are named in the file by PyTorch's names, not yet imported here."""
    run(f"""
import sys, torch
net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
assert "torch.nn.modules.linear" not in sys.modules
torch.save(net, {str(tmp_path / "net.pt")!r})
back = torch.load({str(tmp_path / "net.pt")!r}, weights_only=False)
assert type(back) is torch.nn.Sequential and torch.equal(back[0].weight, net[0].weight)
""")


def test_the_name_of_a_sharing_strategy():
    from pydevtensor import multiprocessing

    before = multiprocessing.get_sharing_strategy()
    for name in multiprocessing.get_all_sharing_strategies():
        multiprocessing.set_sharing_strategy(name)
        assert multiprocessing.get_sharing_strategy() == name
    multiprocessing.set_sharing_strategy(before)
    with pytest.raises(AssertionError, match="file_system"):
        multiprocessing.set_sharing_strategy("files")
