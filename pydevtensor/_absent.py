"""What PyTorch has and this package does not, and what to do instead.

One table by PyTorch's names without `torch.`; an entry holds for all below its name.
"""

from __future__ import annotations

import warnings

_STATE_DICT = "save and load a state_dict() with torch.save() and torch.load()"
_RANKS = "train with nn.parallel.DistributedDataParallel"
_QUANTIZED = "convert values with .to(torch.float16) or .to(torch.bfloat16)"
_DENSE = "call to_dense() first; docs/sparse.md lists what there is"
_CUDA = "use the CPU, or GPUs of the type 'cuda'"
_WAY_ROUND = {
    "_dynamo": "call the function itself; nothing is compiled here",
    "_inductor": "call the function itself; nothing is compiled here",
    "_utils": "pickles of PyTorch's tensors do not load; write them there with "
    "torch.save(), and read them with torch.load()",
    "ao": _QUANTIZED,
    "distributed.fsdp": "divide parameters with FullyShardedDataParallel",
    "distributed.pipelining": _RANKS,
    "distributed.rpc": "use send() and recv() of torch.distributed",
    "distributed.tensor": "make one with distribute_tensor() or DTensor.from_local()",
    "distributed.tensor.parallel": _RANKS,
    "export": _STATE_DICT,
    "fx": "write the changed module as a class",
    "hub": "download the repository with git, and call "
    "torch.hub.load(folder, name, source='local')",
    "library": "use torch.library.custom_op() and what registers its parts",
    "masked": "give the functions of torch.masked a Tensor and a mask of bools",
    "mps": _CUDA,
    "mtia": _CUDA,
    "nested": "pad the sequences with nn.utils.rnn.pad_sequence(), and use a mask",
    "nn.intrinsic": _QUANTIZED,
    "nn.qat": _QUANTIZED,
    "nn.quantizable": _QUANTIZED,
    "nn.quantized": _QUANTIZED,
    "onnx": "write models with torch.onnx.export()",
    "package": _STATE_DICT,
    "quantization": _QUANTIZED,
    "quantize_per_channel": _QUANTIZED,
    "quantize_per_tensor": _QUANTIZED,
    "sparse": _DENSE,
    "sparse_bsr_tensor": _DENSE,
    "utils._python_dispatch": "derive a class from torch.overrides.TorchFunctionMode, "
    "or give a subclass of Tensor a __torch_function__",
    "utils.bottleneck": "use cProfile",
    "utils.cpp_extension": "derive a class from torch.autograd.Function",
    "utils.tensorboard": "install the package that it needs: pip install tensorboard",
    "xpu": _CUDA,
}


def absent(module: str, name: str) -> str:
    """The error message for a name that a module of pydevtensor lacks."""
    path = f"{module}.{name}".removeprefix("pydevtensor.")
    way = advice(path)
    if way:
        return f"pydevtensor has no torch.{path}; {way}"
    return f"{module} has no {name!r}; dir({module}) lists what there is"


def advice(path: str) -> str | None:
    """The advice for a name that is missing, given without `torch.`."""
    while path:
        if path in _WAY_ROUND:
            return _WAY_ROUND[path]
        path = path.rpartition(".")[0]
    return None


_compiling = False


def warn_of_compiling(name: str, stacklevel: int = 3) -> None:
    """Warn, the first time in a process, that a function compiles nothing."""
    global _compiling
    if not _compiling:
        _compiling = True
        warnings.warn(
            f"{name}() gives back what it gets: pydevtensor compiles nothing, and the "
            "program runs as it is written",
            UserWarning,
            stacklevel,
        )
