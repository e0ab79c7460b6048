"""What `import pydevtensor` does, costs and provides."""

import ast
import builtins
from importlib.metadata import version
from pathlib import Path

from isolated import python

import pydevtensor as torch


def test_import_loads_little():
    out = python("""
import sys, os
before = set(sys.modules)
import pydevtensor
new = sorted(set(sys.modules) - before)
print(new)
print(len(os.listdir('/proc/self/task')))
maps = open('/proc/self/maps').read()
print([w for w in ('libcuda', 'cublas', 'openblas', '_cuda') if w in maps])
""")
    assert out.splitlines() == [
        "['math', 'pydevtensor', 'pydevtensor._C']",
        "1",
        "[]",
    ]


def test_printing_and_arithmetic_load_no_numpy():
    out = python("""
import sys
import pydevtensor as torch
x = torch.rand(3) + 1
repr(x), x.tolist(), torch.cuda.is_available()
print('numpy' in sys.modules)
""")
    assert out == "False\n"


def test_the_gil_is_on():
    """Free-threaded Pythons turn it on again for an extension that does not declare otherwise."""
    out = python("""
import sys, warnings
warnings.simplefilter('ignore')
import pydevtensor
print(getattr(sys, '_is_gil_enabled', lambda: True)())
""")
    assert out == "True\n"


def test_the_sources_say_that_they_are_not_built(tmp_path):
    (tmp_path / "pydevtensor").mkdir()
    source = Path(torch.__file__).read_text()
    (tmp_path / "pydevtensor" / "__init__.py").write_text(source)
    said = python("import pydevtensor", fails=True, PYTHONPATH=str(tmp_path))
    assert "holds the sources of pydevtensor" in said and "with -P" in said
    assert "circular import" not in said


def test_version_is_the_installed_one():
    assert torch.__version__ == version("pydevtensor")


def test_names():
    assert torch.cuda.__name__ == "pydevtensor.cuda"
    assert (
        torch.newaxis is None and torch.inf == float("inf") and torch.nan != torch.nan
    )
    assert (
        abs(torch.pi - 3.141592653589793) == 0 and abs(torch.e - 2.718281828459045) == 0
    )
    assert {"cuda", "tensor", "set_printoptions", "try_gpu", "float32"} <= set(
        dir(torch)
    )
    out = python("""
from pydevtensor import *
print(tensor([1.5]), try_gpu(5), cuda.device_count())
""")
    assert out == "tensor([1.5000]) cpu 0\n"


def test_every_public_name_of_the_extension_is_the_package_s():
    for name, value in vars(torch._C).items():
        if not name.startswith("_"):
            assert getattr(torch, name) is value, name


def test_the_package_means_python_s_functions_where_it_names_them():
    """In its namespace sum, range and others are the extension's."""
    shadowed = vars(builtins).keys() & {n for n in vars(torch._C) if n[0] != "_"}
    assert {"sum", "range", "bool"} <= shadowed
    tree = ast.parse(Path(torch.__file__).read_text())
    functions = [f for f in tree.body if isinstance(f, ast.FunctionDef)]
    assert functions
    names = {n.id for f in functions for n in ast.walk(f) if isinstance(n, ast.Name)}
    assert not names & shadowed


def test_a_name_that_is_not_there():
    try:
        _ = torch.nothing_of_that_name
    except AttributeError as error:
        assert "nothing_of_that_name" in str(error)
    else:
        raise AssertionError


def test_cuda_says_what_it_has():
    for name in torch.cuda.__all__:
        assert hasattr(torch.cuda, name), name
        assert getattr(torch.cuda, name).__doc__, name
