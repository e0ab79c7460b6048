"""`import torch` and `import torchvision` of programs that name them.

A finder at the front of sys.meta_path answers for these two names. `torch.nn` becomes
the module pydevtensor.nn itself, so that classes and functions have one identity by
either name. Only `torch` is a module of its own, since its __version__ is that of the
PyTorch release whose behaviour is followed, and `torch._C`, which has stand-ins.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pydevtensor
from pydevtensor import _C
from pydevtensor._absent import advice
from pydevtensor._names import rename

_NAMES = {"torchvision": "pydevtensor.vision", "torch": "pydevtensor"}
_PROCESSES = "multiprocessing.spawn"


def install_as_torch() -> ModuleType:
    """Let `import torch` and `import torchvision` mean pydevtensor in this process.

    The submodules too (`import torch.nn.functional as F`), and processes that
    multiprocessing and DataLoader start from here; other programs do not see it.
    `torch.nn` is the module pydevtensor.nn. Returns the module `torch`, which has
    pydevtensor's names and, as __version__, the PyTorch release that is followed.
    Calling it again does nothing. Raises RuntimeError if PyTorch or torchvision is
    imported already: its tensors and ours would mix.

    >>> import subprocess, sys
    >>> code = '''
    ... import pydevtensor
    ... pydevtensor.install_as_torch()
    ... from torch import nn
    ... print(nn is pydevtensor.nn)
    ... '''
    >>> subprocess.check_output([sys.executable, '-P', '-c', code])
    b'True\\n'
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        for name in _NAMES:
            if name in sys.modules:
                known = getattr(sys.modules[name], "__file__", None) or "no file"
                raise RuntimeError(
                    f"install_as_torch(): {name} is imported already, from {known}; "
                    "call it before the first `import torch`, or run the program with "
                    "`python -m pydevtensor run`"
                )
        sys.meta_path.insert(0, _Finder())
        if _PROCESSES in sys.modules:
            _pass_on(sys.modules[_PROCESSES])
        import_module("torch._C")
        rename({ours: name for name, ours in _NAMES.items()})
    return import_module("torch")


class _Torch(ModuleType):
    """The module `torch`: what it does not have itself, it takes from pydevtensor."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(pydevtensor, name)
        if name in vars(pydevtensor):  # no stand-in
            setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(pydevtensor)})


class _Extension(ModuleType):
    """The module `torch._C`: pydevtensor._C, and stand-ins that libraries import.

    _C itself has none: with a __getattr__, Python would look its names up slowly.
    """

    def __getattr__(self, name: str) -> Any:
        if name in vars(_C):
            return vars(_C)[name]
        return pydevtensor._find_absent(_C.__name__, name)


class _Finder:
    """Finds the modules of pydevtensor by PyTorch's names."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == _PROCESSES:
            return _found_processes(path)
        top, _, rest = name.partition(".")
        if top in _NAMES:
            ours = _NAMES[top] + ("." + rest if rest else "")
            public = "._" not in ours or (top == "torch" and _is_module(rest))
            # `from pydevtensor.onnx import _export` asks by the package's new name.
            public = public or _importing().startswith("pydevtensor.")
            if public and find_spec(ours) is not None:
                loader: Any = _Loader(ours)
                return ModuleSpec(name, loader, origin=ours)
            way = advice(rest) if top == "torch" else None
        elif top == "pydevtensor":  # `from torch.utils import tensorboard` asks for it
            way = advice(rest)
            if way is None or _is_module(rest) or PathFinder.find_spec(name, path):
                return None
            top, name = "torch", f"torch.{rest}"
        else:
            return None
        if sys._getframe(2).f_code.co_name == "find_spec":
            return None  # importlib.util.find_spec() only asks whether it is there
        raise ModuleNotFoundError(
            f"pydevtensor, which stands in for {top}, has no module {name}"
            + (f"; {way}" if way else ""),
            name=name,
        )

    def find_distributions(self, context: Any = None) -> list[Any]:
        """For importlib.metadata.version("torch"): what `torch` means here.

        Before an installed PyTorch, as in find_spec(); not where paths are given.
        """
        asked = {"name": None} if context is None else vars(context)
        if "path" in asked or (asked.get("name") or "torch").lower() != "torch":
            return []
        return [_distribution()]


def _distribution() -> Any:
    from importlib.metadata import Distribution

    from pydevtensor.torch_version import __version__

    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\n",
        "top_level.txt": "torch\n",
    }

    class Torch(Distribution):
        def read_text(self, filename: str) -> str | None:
            return texts.get(filename)

        def locate_file(self, path: Any) -> Any:
            raise FileNotFoundError(f"pydevtensor, which stands in for torch: {path}")

    return Torch()


def _importing() -> str:
    """The name of the module that imports: of the frame that is not importlib's."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("importlib"):
        frame = frame.f_back
    return getattr(frame.f_globals.get("__spec__"), "name", "")


def _is_module(path: str) -> bool:
    from pydevtensor._stand_ins import is_module

    return is_module(path)


class _Loader:
    """Puts a module of pydevtensor into sys.modules by another name."""

    def __init__(self, ours: str) -> None:
        self.ours = ours

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        kind = {"torch": _Torch, "torch._C": _Extension}.get(spec.name)
        return kind and kind(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if isinstance(module, _Extension):
            module.__dict__["__path__"] = []  # below it are stand-ins
            return
        if not isinstance(module, _Torch):
            # A module may replace itself: the import goes on with what is there then.
            sys.modules[module.__name__] = import_module(self.ours)
            return
        from pydevtensor.torch_version import __version__

        values = vars(module)
        for name, value in vars(pydevtensor).items():
            if not name.startswith("_"):
                values[name] = value
        values["__version__"] = __version__
        values["__doc__"] = pydevtensor.__doc__
        values["__file__"] = pydevtensor.__file__
        values["__all__"] = pydevtensor.__all__
        values["torch"] = module  # as `import torch` of PyTorch's own file leaves it
        values["__path__"] = []  # a package, of which the finder finds all parts


# --- processes of multiprocessing


class _Installed:
    """Unpickling it installs the finder."""

    def __reduce__(self) -> Any:
        return install_as_torch, ()


def _found_processes(path: Any) -> Any:
    spec = PathFinder.find_spec(_PROCESSES, path)
    if spec is not None and spec.loader is not None:
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            _pass_on(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
    return spec


def _pass_on(spawn: Any) -> None:
    """Let new processes install the finder before they import the main module.

    They unpickle the data that prepares them first, and then import it.
    """
    prepared = spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[Any, Any]:
        data = {"pydevtensor": _Installed(), **prepared(name)}
        if name == "ignore":  # for forkserver, which takes no such data: no main module
            for key in ("init_main_from_name", "init_main_from_path"):
                data.pop(key, None)
        return data

    spawn.get_preparation_data = get_preparation_data
