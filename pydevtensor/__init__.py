"""Tensors that live on one device, with PyTorch's semantics.

Use it as `import pydevtensor as torch`. Importing it touches no GPU and no NumPy and
starts no thread; `python -m pydevtensor` shows what there is to compute on.
"""

import builtins as _builtins
import os as _os
import sys as _sys
from math import e, inf, nan, pi  # noqa: F401

try:
    from pydevtensor import _C
except ImportError:
    if _builtins.any(name.startswith("_C.") for name in _os.listdir(__path__[0])):
        raise
    raise ImportError(
        f"{__path__[0]} holds the sources of pydevtensor and no built library; run "
        "Python in another folder or with -P, so that it imports the installed package "
        "(`make build` or `pip install .` installs one)"
    ) from None

__version__ = "0.1.0"

newaxis = None


def _library_folders():
    """Where this package's libraries are, and the folders of installed packages."""
    own = _C.__file__.rpartition("/")[0]
    packages = [own.rpartition("/")[0]]
    for path in _sys.path:
        if isinstance(path, str) and "-packages" in path and ":" not in path:
            packages.append(path)
    return own, ":".join(dict.fromkeys(packages))


_C._find_libraries(*_library_folders())
# Every public name of the extension module is the package's: there is no second list.
globals().update((k, v) for k, v in vars(_C).items() if not k.startswith("_"))
_rebuild_tensor = _C._rebuild_tensor  # which pickles name
_standard_gamma = _C._standard_gamma  # PyTorch has it here
# From here on bool, range, sum and others are tensors' and no longer Python's.

# Loaded on first use: a name and the module that has it.
_LATER = {
    "BFloat16Tensor": "_classes",
    "BoolTensor": "_classes",
    "ByteTensor": "_classes",
    "CharTensor": "_classes",
    "DoubleTensor": "_classes",
    "FloatTensor": "_classes",
    "HalfTensor": "_classes",
    "IntTensor": "_classes",
    "LongTensor": "_classes",
    "ShortTensor": "_classes",
    "amp": "amp",
    "array_api": "array_api",
    "autograd": "autograd",
    "autocast": "amp.autocast_mode",
    "clear_autocast_cache": "amp.autocast_mode",
    "get_autocast_cpu_dtype": "amp.autocast_mode",
    "get_autocast_dtype": "amp.autocast_mode",
    "get_autocast_gpu_dtype": "amp.autocast_mode",
    "is_autocast_cache_enabled": "amp.autocast_mode",
    "is_autocast_cpu_enabled": "amp.autocast_mode",
    "is_autocast_enabled": "amp.autocast_mode",
    "set_autocast_cache_enabled": "amp.autocast_mode",
    "set_autocast_cpu_dtype": "amp.autocast_mode",
    "set_autocast_cpu_enabled": "amp.autocast_mode",
    "set_autocast_dtype": "amp.autocast_mode",
    "set_autocast_enabled": "amp.autocast_mode",
    "set_autocast_gpu_dtype": "amp.autocast_mode",
    "no_grad": "autograd",
    "enable_grad": "autograd",
    "set_grad_enabled": "autograd",
    "inference_mode": "autograd",
    "is_inference_mode_enabled": "autograd",
    "cpu": "cpu",
    "cuda": "cuda",
    "Event": "_streams",
    "Stream": "_streams",
    "random": "random",
    "get_rng_state": "random",
    "set_rng_state": "random",
    "GradScaler": "amp.grad_scaler",
    "are_deterministic_algorithms_enabled": "_determinism",
    "get_deterministic_debug_mode": "_determinism",
    "get_device_module": "_settings",
    "get_num_interop_threads": "_settings",
    "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "is_anomaly_enabled": "autograd.anomaly_mode",
    "is_deterministic_algorithms_warn_only_enabled": "_determinism",
    "is_warn_always_enabled": "_settings",
    "set_deterministic_debug_mode": "_determinism",
    "set_flush_denormal": "_settings",
    "set_num_interop_threads": "_settings",
    "set_warn_always": "_settings",
    "use_deterministic_algorithms": "_determinism",
    "__config__": "__config__",
    "accelerator": "accelerator",
    "set_default_tensor_type": "_classes",
    "backends": "backends",
    "mps": "mps",
    "multiprocessing": "multiprocessing",
    "xpu": "xpu",
    "compile": "compiler",
    "compiler": "compiler",
    "fused": "compiler",
    "install_as_torch": "_as_torch",
    "load_ipython_extension": "_magic",
    "jit": "jit",
    "library": "library",
    "onnx": "onnx",
    "ops": "ops",
    "overrides": "overrides",
    "testing": "testing",
    "types": "types",
    "torch_version": "torch_version",
    "version": "version",
    "vision": "vision",
    "finfo": "_functions.dtypes",
    "iinfo": "_functions.dtypes",
    "func": "func",
    "fx": "fx",
    "functional": "functional",
    "hub": "hub",
    "futures": "futures",
    "vmap": "func",
    "fft": "fft",
    "linalg": "linalg",
    "masked": "masked",
    "signal": "signal",
    "special": "special",
    "distributed": "distributed",
    "distributions": "distributions",
    "utils": "utils",
    "nn": "nn",
    "optim": "optim",
    "printing": "printing",
    "profiler": "profiler",
    "quasirandom": "quasirandom",
    "set_printoptions": "printing",
    "get_printoptions": "printing",
    "load": "serialization",
    "safetensors": "safetensors",
    "sparse": "sparse",
    "save": "serialization",
    "serialization": "serialization",
    "storage": "storage",
    "TypedStorage": "storage",
    "UntypedStorage": "storage",
}


def __getattr__(name):
    where = _LATER.get(name)
    if where is None:
        return _find_absent(__name__, name)
    from importlib import import_module

    module = import_module("pydevtensor." + where)
    value = module if where == name else getattr(module, name)
    globals()[name] = value
    return value


class _StandIns:
    """The finder of modules that PyTorch has and this package has no file of."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("pydevtensor."):
            from pydevtensor._stand_ins import find_spec

            return find_spec(name)
        return None


_sys.meta_path.append(_StandIns)


def _find_absent(module, name):
    """The stand-in for a name that a module lacks, or AttributeError with advice."""
    if not name or name[:2] == "__":
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if name[0] == "_" and _os.path.exists(f"{__path__[0]}/{name}.py"):
        raise AttributeError(name)  # `from pydevtensor import _x` goes on with the file
    from pydevtensor._stand_ins import find

    return find(module, name)


_C.__path__ = []  # modules below torch._C are stand-ins


def __dir__():
    # pytest adds names such as '@pytest_ar'.
    return sorted(name for name in {*globals(), *_LATER} if name[0] != "@")


def try_gpu(i: "int" = 0) -> _C.device:
    """GPU i where it exists, else the CPU; cuda.why_unavailable() says why not.

    >>> torch.try_gpu(1000)
    device(type='cpu')
    """
    return (
        _C.device("cuda", i) if 0 <= i < _C._device_count("cuda") else _C.device("cpu")
    )


def try_all_gpus() -> "list[_C.device]":
    """All GPUs, or [device(type='cpu')] where there is none.

    >>> torch.try_all_gpus()[0].type in ('cuda', 'cpu')
    True
    """
    gpus = [_C.device("cuda", i) for i in _builtins.range(_C._device_count("cuda"))]
    return gpus or [_C.device("cpu")]


def _assert(condition, message):  # which fx records, as assert is not
    kind = _builtins.type(condition)
    if kind not in (_builtins.bool, _C.Tensor) and hasattr(kind, "__torch_function__"):
        from pydevtensor.overrides import handle_torch_function

        return handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message
    return None


__all__ = [name for name in __dir__() if not name.startswith("_")]

if _builtins.any(name.startswith("PYDEVTENSOR_") for name in _os.environ):
    from pydevtensor._variables import warn_of_unknown as _warn_of_unknown

    _warn_of_unknown()

if _os.environ.get("PYDEVTENSOR_TRANSFER_GUARD"):
    from pydevtensor.cuda import guards as _guards

    _guards.read_environment()
