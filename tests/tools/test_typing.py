"""The stubs that the build makes, compared with the package, and programs checked with them."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pydevtensor as torch

ROOT = Path(__file__).resolve().parents[2]
TOOLS = str(ROOT / "tools" / "build")
PACKAGE = Path(torch.__file__).parent
STUB = PACKAGE / "_C.pyi"

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("PYDEVTENSOR_SANITIZE")),
    reason="a build with sanitizers has no stubs",
)


def run(*command, cwd, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def check(tmp_path, program):
    """What mypy, as strict as it gets, says of a program: its exit status and its errors."""
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    return run(*("-m", "mypy", "--strict", "program.py"), cwd=tmp_path)


def test_stubs_are_installed():
    assert (PACKAGE / "py.typed").exists()
    for name in ("_C.pyi", "__init__.pyi"):
        ast.parse((PACKAGE / name).read_text())


def stub_calls():
    """The name, whether it is a method, and the parameters of each form of the stub."""
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, False, node.args
        elif isinstance(node, ast.ClassDef) and node.name == "Tensor":
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield inner.name, True, inner.args


def test_words_of_numpy_are_taken():
    """inspect.signature does not show axis and keepdims, so no comparison finds them wrong."""
    seen = 0
    for name, method, arguments in stub_calls():
        if name.startswith("_"):
            continue
        for word in {"axis", "keepdims"} & {a.arg for a in arguments.kwonlyargs}:
            target = getattr(torch.ones(2) if method else torch, name)
            given = () if method else (torch.ones(2),)
            with pytest.raises(Exception) as error:
                target(*given, **{word: object()})
            assert "no argument named" not in str(error.value), (
                name,
                word,
                str(error.value),
            )
            seen += 1
    assert seen > 100


def test_unknown_words_are_refused():
    """The test above can fail."""
    with pytest.raises(TypeError, match="no argument named"):
        torch.exp(torch.ones(2), axis=object())


def stub_docs():
    """The owner (Tensor or the package), name and first docstring of each function."""
    seen = set()
    tree = ast.parse(STUB.read_text())
    tensor = next(n for n in tree.body if getattr(n, "name", "") == "Tensor")
    for owner, body in ((torch, tree.body), (torch.Tensor, tensor.body)):
        for node in body:
            if isinstance(node, ast.FunctionDef) and (owner, node.name) not in seen:
                seen.add((owner, node.name))
                yield owner, node.name, ast.get_docstring(node)


def test_editors_find_docstrings_in_the_stubs():
    count = 0
    for owner, name, doc in stub_docs():
        if not name.startswith("_"):
            assert doc == inspect.getdoc(getattr(owner, name)), (owner, name)
            count += doc is not None
    assert count > 1000


def test_stubs_say_where_bodies_in_python_are():
    pattern = r"# Its body is in (\S+), line (\d+)\.\n(?: *@overload\n)? *def (\w+)\("
    found = re.findall(pattern, STUB.read_text())
    assert len(found) > 200
    for path, line, name in found:
        defined = (ROOT / path).read_text().splitlines()[int(line) - 1]
        names = name, name.removesuffix("_")
        assert (
            any(f"def {n}(" in defined for n in names)
            or "alias"
            in (
                inspect.getdoc(getattr(torch, name, getattr(torch.Tensor, name, None)))
            ).lower()
        ), (name, path, line)


def is_a(value, kind, first):
    """Whether a result is what the stub says; None where it says nothing."""
    simple = {
        "builtins.bool": bool,
        "builtins.int": int,
        "dtype": torch.dtype,
        "device": torch.device,
        "Generator": torch.Generator,
        "Size": torch.Size,
        "None": type(None),
    }
    if kind in simple:
        return type(value) is simple[kind]
    if kind == "Tensor":
        return isinstance(value, torch.Tensor)
    if kind == "Self":
        return type(value) is type(first)
    if kind in ("tuple[Tensor, ...]", "tuple[Tensor, Tensor]"):
        return type(value) is tuple and all(isinstance(v, torch.Tensor) for v in value)
    if kind.startswith("_"):
        return f"return_types.{kind[1:]}" in repr(type(value))
    return None


def test_results_are_what_the_stubs_say(monkeypatch):
    """Calls everything once, as the tests of bad calls do first, and looks at what it gives."""
    monkeypatch.syspath_prepend(TOOLS)
    import stubs
    from signatures import PROCESS_WIDE, parameters, valid

    seen, refused = [], []
    for name, text, is_function, is_method in torch._C._signatures():
        if name.startswith("_") or name in PROCESS_WIDE:
            continue
        in_place = name.endswith("_") and is_method
        for form in text.split(" | "):
            kind = "Self" if in_place else stubs.read_form(form, name).result
            kind = "Any" if name in stubs.known.FORMS else kind
            needed = [p for p in parameters(form) if p.required]
            for method in [False] * is_function + [True] * is_method:
                values = [valid(name, p, "cpu") for p in needed if not p.keyword]
                words = {p.name: valid(name, p, "cpu") for p in needed if p.keyword}
                target = getattr(torch.Tensor if method else torch, name)
                try:
                    value = target(*values, **words)
                except (TypeError, ValueError, RuntimeError, IndexError):
                    refused.append(name)
                    continue
                verdict = is_a(value, kind, values[0] if values else None)
                assert verdict is not False, f"{form} gives {type(value)}, not {kind}"
                seen += [name] * (verdict is not None)
    assert len(seen) > 400
    assert len(refused) < len(seen) / 10, refused


@pytest.mark.slow
def test_stubs_say_what_the_package_has(tmp_path):
    pytest.importorskip("mypy")
    shutil.copytree(PACKAGE, tmp_path / "pydevtensor")
    (extension,) = (tmp_path / "pydevtensor").glob("_C.*.so")
    made = (
        ROOT / "tools" / "build" / "stubs.py",
        extension,
        extension.parent,
        "--shown",
    )
    status, said = run("-s", "-E", *made, cwd=tmp_path)
    assert status == 0, said
    # Modules in Python are checked by `make lint`; here names and parameters are.
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_errors = True\n")
    (tmp_path / "allowed").write_text(
        # Shown from Python 3.12 on; a class's own function, which programs override.
        ".*\\.Tensor\\.(__buffer__|__torch_function__)\n"
        # Can be imported only where the packages tensorboard and onnx are installed.
        "pydevtensor\\.utils\\.tensorboard\n"
        "pydevtensor\\.onnx\\._\\w+\n"
        # What mypy cannot know of a named tuple that has no instance dictionary.
        "pydevtensor\\.nn\\.modules\\.(module\\._|_loading\\.)IncompatibleKeys\n"
        # Functions whose body another one is: tools/build/functions.py makes their
        # signatures.
        "pydevtensor\\.(fft\\._transforms|masked\\._functions)\\.\\w+\n"
        "pydevtensor\\.(_aliases\\.(layers|recurrent)|nn\\._functional\\.dropout)\\.\\w+\n"
        "pydevtensor\\._functions\\.statistics\\.(nan)?quantile\n"
        "pydevtensor\\.nn\\._functional\\.pooling\\.\\w+pool[123]d(_with_indices)?\n"
        # Cached functions.
        "pydevtensor\\.overrides\\._(entries|named)\n"
        "pydevtensor\\._functions\\.element_names\\.element_names\n"
        "pydevtensor\\.distributed\\.tensor\\._dtensor\\.parameter_kind\n"
        "pydevtensor\\.func\\._rules\\._(bodies|elementwise_rules|parameters)\n"
        # A class's own function; properties that depend on arguments; a number that
        # means one for each dimension as a default.
        "pydevtensor\\.nn\\.modules\\.(conv|pooling)\\..*\\._(function|pool)\n"
        "pydevtensor\\.distributions\\..*\\.(support|(co)?domain)\n"
        "pydevtensor\\.distributions\\..*\\.(HalfCauchy|HalfNormal|_OfMagnitudes)\\.scale\n"
        "pydevtensor\\.distributions\\..*\\.(Independent|Wishart)\\.\\w+\n"
        "pydevtensor\\.distributions\\..*\\.(MixtureSameFamily|LogisticNormal)\\.\\w+\n"
        "pydevtensor\\.distributions\\..*\\.LogNormal\\.(loc|scale)\n"
        "pydevtensor\\.distributions\\..*\\.InverseGamma\\.(concentration|rate)\n"
        "pydevtensor\\.distributions\\..*\\.Relaxed(Bernoulli|OneHotCategorical)\\.\\w+\n"
        "pydevtensor\\.distributions\\._families\\._(OfCategories|AfterRelaxed)\\.\\w+\n"
        "pydevtensor\\.cuda\\.kernels\\.Kernel\\.\\w+\n"
        # Methods that a table of functions gives the class.
        "pydevtensor\\.sparse\\._tensor\\.SparseTensor\\.\\w+\n"
        # It forgets that a context manager is a static method.
        "pydevtensor\\..*\\.FullyShardedDataParallel\\.(state_dict_type|summon_full_params)\n"
        "pydevtensor\\._functions\\.pooling\\.(avg|max)_pool[123]d(_with_indices)?\n"
        # Properties that are another attribute, which a function makes.
        "pydevtensor\\.distributions\\..*\\.(param_shape|mode|mean|stddev|variance)\n"
        # mypy does not see what another module's __all__ adds, and forgets the names of
        # decorated functions' parameters that are positional only: test_array_api.py
        # compares these with the standard's.
        "pydevtensor\\.(array_api|multiprocessing|nn\\.modules\\.module)\\.__all__\n"
        "pydevtensor\\.distributed\\.tensor\\.__all__\n"
        "pydevtensor\\.array_api\\.[a-z]+\\.[a-z0-9_]+\n"
    )

    def compare():
        return run(
            *("-m", "mypy.stubtest", "pydevtensor", "--concise"),
            *("--mypy-config-file", tmp_path / "mypy.ini"),
            *("--allowlist", tmp_path / "allowed", "--ignore-unused-allowlist"),
            cwd=tmp_path,
            PYTHONPATH=str(tmp_path),
            MYPYPATH=str(tmp_path),
        )

    status, said = compare()
    assert status == 0, said
    # It finds what is wrong: a name too many, and one parameter by another name.
    stub = extension.parent / "_C.pyi"
    text = stub.read_text()
    wrong = text.replace("def exp(input:", "def exp(x:")
    assert wrong != text
    stub.write_text(wrong + "def never() -> None: ...\n")
    status, said = compare()
    assert status == 1
    assert '_C.exp is inconsistent, stub parameter "x" differs' in said
    assert "_C.never is not present at runtime" in said


READER = """
import pydevtensor as torch
from pydevtensor import nn, optim
from pydevtensor.utils import data


def accuracy(y_hat: torch.Tensor, y: torch.Tensor) -> float:
    if len(y_hat.shape) > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(axis=1)
    matches = y_hat.type(y.dtype) == y
    return float(matches.type(y.dtype).sum())


device: torch.device = torch.try_gpu()
x = torch.arange(12, dtype=torch.float32, device=device).reshape(3, 4)
y = torch.zeros((3, 4)) + torch.ones(3, 4) * 2 - x.cpu() / 3 ** 2 @ torch.eye(4)
z: torch.Tensor = torch.cat((x.cpu(), y), dim=1)[:, 1:3, None]
z[0] = 1
z += 1
values, indices = torch.sort(z, dim=0, descending=True)
largest: torch.Tensor = x.topk(2).values
best = x.max(dim=1).indices.tolist()
mean: float = x.mean().item()
total = x.sum(axis=0, keepdims=True)
rows, columns = x.shape
count: int = x.numel() + x.size(0) + rows * columns
halves: tuple[torch.Tensor, ...] = x.split(2)
where = torch.where(x > 2, x, 0.0)
places = x.nonzero(as_tuple=True)[0]
array = x.cpu().numpy().astype("float64")
again = torch.from_numpy(array).to("cuda:0", torch.float64).to(device)
w = torch.normal(0, 0.01, size=(4, 1), requires_grad=True)
with torch.no_grad():
    w -= 0.1 * (w.grad if w.grad is not None else 0)
    w.zero_()
noise = torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
for row in noise:
    print(f"{row.norm():.3f}", -abs(row), 1 / row, row > 0)
net = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.LazyLinear(1))
trainer = optim.SGD(net.parameters(), lr=0.1)
loss = nn.MSELoss()(net(x), x)
loss.backward()
torch.cuda.synchronize()
print(accuracy(x, indices), mean, count, torch.pi, torch.float, torch.__version__)
"""

# A wrong line, and what mypy is to say of it.
WRONG = {
    "torch.ones(2).sum(dim='a')": "sum",
    "torch.ones('a')": "ones",
    "torch.ones(2, dtype='float32')": "ones",
    "torch.exp(1)": "exp",
    "torch.exp(torch.ones(1), 2)": "exp",
    "torch.no_such_function()": "no_such_function",
    "torch.ones(2).no_such_method()": "no_such_method",
    "n: int = torch.ones(2).sum()": "int",
    "torch.ones(2).shape = (2,)": "shape",
    "torch.sort(torch.ones(2)).value": "value",
    "torch.ones(2) + 'a'": "+",
    "torch.ones(2)['a']": "index",
    "torch.cat(3)": "cat",
    "torch.ones(2).item().shape": "shape",
    "torch.zeros(2, device=1.5)": "zeros",
    "torch.ones(2).to(torch.no_such_dtype)": "no_such_dtype",
    "torch.try_gpu('a')": "try_gpu",
    "torch.Generator(3.5)": "Generator",
    "torch.ones(2).device.type.upper(1)": "upper",
}


@pytest.mark.slow
def test_a_program_is_right(tmp_path):
    status, said = check(tmp_path, READER)
    assert status == 0, said


@pytest.mark.slow
def test_wrong_programs_are_found(tmp_path):
    lines = ["import pydevtensor as torch", *WRONG]
    _, said = check(tmp_path, "\n".join(lines) + "\n")
    for number, (line, word) in enumerate(WRONG.items(), 2):
        found = re.findall(rf"program\.py:{number}: error: (.*)", said)
        assert any(word.lower() in one.lower() for one in found), f"{line}: {said}"
