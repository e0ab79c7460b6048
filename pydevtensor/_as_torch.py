"""`import torch` and `import torchvision` of programs that name them.

A finder at the front of sys.meta_path answers for these two names. `torch.nn` becomes
the module pydevtensor.nn itself, so that classes and functions have one identity by
either name. Only `torch` is a module of its own, since its __version__ is that of the
PyTorch release whose behaviour is followed, and `torch._C`, which has stand-ins.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
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


# --- python -m pydevtensor run


def run(arguments: Sequence[str]) -> None:
    """Run a program as `python ARGUMENTS` does, with pydevtensor as torch."""
    install_as_torch()
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.modules["__main__"] = main
    _show_only_the_program()
    kind = arguments[0] if arguments[0] in ("-m", "-c") else "script"
    given = arguments[kind != "script" :]
    if not given:
        sys.exit(f"python -m pydevtensor run {kind}: give what to run after {kind}")
    first, *rest = given
    sys.argv[:] = [first if kind == "script" else kind, *rest]
    path = os.path.join(os.getcwd(), first)
    safe = sys.flags.safe_path  # python -P, which leaves sys.path[0] out
    if kind == "-m":
        _run_module(first, True)
    elif kind == "-c":
        if not safe:
            sys.path[0] = ""
        import linecache

        code = compile(first, "<string>", "exec", dont_inherit=True)
        # Since Python 3.13 a traceback shows the lines of -c.
        if register := getattr(linecache, "_register_code", None):
            register(code, first, "<string>")
        exec(code, vars(main))
    elif os.path.isdir(path) or _is_archive(path):
        sys.path[: not safe] = [path]
        _run_module("__main__", False)
    else:
        if not safe:
            sys.path[0] = os.path.dirname(os.path.realpath(path))
        exec(_read(path, main), vars(main))


def _run_module(name: str, sets_argv: bool) -> None:
    # The interpreter calls this for `python -m`.
    from runpy import _run_module_as_main  # type: ignore[attr-defined]

    _run_module_as_main(name, sets_argv)


def _read(path: str, main: Any) -> Any:
    """The code of a script, of which the main module says where it is from."""
    from importlib.machinery import SourceFileLoader

    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        print(f"{sys.executable}: can't open file {path!r}: {reason}", file=sys.stderr)
        sys.exit(2)
    main.__file__ = path
    main.__cached__ = None
    main.__loader__ = SourceFileLoader("__main__", path)
    return compile(source, path, "exec", dont_inherit=True)


def _is_archive(path: str) -> bool:
    from zipfile import is_zipfile

    return path.endswith((".zip", ".pyz")) and is_zipfile(path)


def _show_only_the_program() -> None:
    """Leave the frames that lead to the program out of the traceback that ends it."""
    import runpy

    files = {__file__, runpy.__file__, sys._getframe(2).f_code.co_filename}
    files |= {"<frozen runpy>", "<frozen importlib._bootstrap>"}
    show = sys.excepthook

    def excepthook(kind: Any, value: Any, trace: Any) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename in files:
            trace = trace.tb_next
        sys.last_traceback = trace
        show(kind, value.with_traceback(trace), trace)

    sys.excepthook = excepthook
