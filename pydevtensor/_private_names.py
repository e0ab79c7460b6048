"""Private names of PyTorch that libraries call, and what they are here.

Nobody can tell those libraries that they should not. A name is looked up here by
_stand_ins.find() before it becomes a stand-in.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import IO, Any

import pydevtensor as torch
from pydevtensor import _C


def find(path: str) -> Any:
    """The value of a name, given without `torch.`; KeyError where it is not here."""
    lists = re.fullmatch(r"_foreach_([a-z]\w*?)(_?)", path)
    if lists and any(hasattr(_C.Tensor, lists[1] + end) for end in ("", lists[2])):
        return partial(_each, *lists.groups())
    if path in _SAME:
        return attrgetter(_SAME[path])(torch)
    return _NAMES[path]


# --- checks ---------------------------------------------------------------------------


def _check(
    kind: type[Exception], cond: Any, message: str | Callable[[], str] | None = None
) -> None:
    """Raises kind where cond is False; message: a text, or a function that makes it."""
    if not cond:
        said = message() if callable(message) else message
        raise kind("a check of the program failed" if said is None else said)


def _check_with(kind: type[Exception], cond: Any, message: Any = None) -> None:
    _check(kind, cond, message)


def _check_all(cond: Any, message: Any = None) -> None:
    _check(RuntimeError, bool(cond.all()), message)


def _check_all_with(kind: type[Exception], cond: Any, message: Any = None) -> None:
    _check(kind, bool(cond.all()), message)


# --- lists of Tensors -----------------------------------------------------------------


def _each(name: str, in_place: str, tensors: Any, *others: Any, **options: Any) -> Any:
    """A function of each Tensor of a list, with the n-th of the other lists.

    A number, or a Tensor of no dimensions, goes with all of them.
    """
    if name in ("maximum", "minimum"):
        return _extremes(name, in_place, tensors, others)
    if name == "norm" and others:
        options, others = {"p": others[0], **options}, ()
    if name in ("addcmul", "addcdiv") and len(others) == 3:
        options, others = {"value": others[2], **options}, others[:2]
    method = getattr(_C.Tensor, name + in_place)
    made = []
    for number, tensor in enumerate(tensors):
        args = [_nth(value, number) for value in others]
        named = {key: _nth(value, number) for key, value in options.items()}
        made.append(method(tensor, *args, **named))
    return None if in_place else tuple(made)


def _extremes(name: str, in_place: str, tensors: Any, others: Any) -> Any:
    (other,) = others
    numbers = not isinstance(other, (list, tuple))
    made = []
    for number, tensor in enumerate(tensors):
        if numbers:
            value = tensor.clamp(**{"min" if name == "maximum" else "max": other})
        else:
            value = getattr(torch, name)(tensor, other[number])
        made.append(tensor.copy_(value) if in_place else value)
    return None if in_place else tuple(made)


def _nth(value: Any, number: int) -> Any:
    return value[number] if isinstance(value, (list, tuple)) else value


# --- functions of Tensors -------------------------------------------------------------


def _softmax(input: Any, dim: int, half_to_float: bool = False) -> Any:
    return torch.softmax(input, dim, torch.float32 if half_to_float else None)


def _softmax_backward(grad: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    product = grad * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def _offsets_of(index: Any, size: int, *, out_int32: bool = False) -> Any:
    """crow_indices, the offsets of rows, from the sorted row indices of elements."""
    kind = torch.int32 if out_int32 else torch.int64
    counts = torch.bincount(index, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(kind)


def _indices_of(
    crow_indices: Any,
    col_indices: Any,
    *,
    out_int32: bool = False,
    transpose: bool = False,
) -> Any:
    """The pairs of row and column, of the offsets of rows."""
    kind = torch.int32 if out_int32 else torch.int64
    counts = crow_indices.diff()
    rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    pair = (col_indices, rows) if transpose else (rows, col_indices)
    return torch.stack([part.to(kind) for part in pair])


def _shape_as_tensor(input: Any) -> Any:
    return torch.tensor(input.shape, dtype=torch.int64)


def _parameters(tensor: Any, fill: str, *args: Any, **options: Any) -> Any:
    with torch.no_grad():
        return getattr(tensor, fill)(*args, **options)


# --- devices, optimizers, settings ----------------------------------------------------


def _accelerator() -> Any:
    return _C.device("cuda" if _C._device_count("cuda") else "cpu")


def _device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a GPU; of the current one where optional; -1 for the CPU."""
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is not None:
        device = torch.device(device)
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type != "cuda":
            raise ValueError(
                f"{device} is not a GPU; give 'cuda', 'cuda:0', or an index"
            )
        if device.index is not None:
            return int(device.index)
    if device is None and not optional:
        raise ValueError("no device; give 'cuda', 'cuda:0', or an index")
    return torch.cuda.current_device()


def _fused_or_foreach(
    params: Iterable[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(False, False): a step is one kernel for each group in any case."""
    return False, False


def _with_grad(step: Any) -> Any:
    """step() of an optimizer, with gradients where its option `differentiable` says."""
    from functools import wraps

    @wraps(step)
    def stepped(self: Any, *args: Any, **options: Any) -> Any:
        with torch.set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **options)

    return stepped


def _activation(name: str) -> Any:
    if name not in ("relu", "gelu"):
        raise RuntimeError(f"the activation is {name!r}; give 'relu' or 'gelu'")
    return getattr(torch.nn.functional, name)


def _parse_to(*args: Any, **options: Any) -> Any:
    from pydevtensor.nn.modules.module import _parse_to as parse

    return parse(*args, **options)


def _default_group() -> Any:
    return torch.distributed.group.WORLD


def _default_store() -> Any:
    world = _default_group()
    return world._store


class _Patch:
    """A context manager and decorator that sets a compiler's options: no-op."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class _DatasetKind:
    Map, Iterable = 0, 1


def _no(*args: Any, **options: Any) -> bool:
    return False


def _nothing(*args: Any, **options: Any) -> None:
    pass


def _itself(function: Any) -> Any:
    return function


_COLLATE = "utils.data._utils.collate."
# Other names for what is here.
_SAME = {
    "_C.DisableTorchFunction": "_C.DisableTorchFunctionSubclass",
    "_vmap_internals.vmap": "func.vmap",
    "fx.node.Argument": "fx.node.Node",
    "fx.node.Target": "fx.node.Node",
    "utils._device.DeviceContext": "device",
    f"{_COLLATE}default_collate": "utils.data.default_collate",
    f"{_COLLATE}default_convert": "utils.data.default_convert",
}
_INIT = "nn.init._no_grad_"
_NAMES: dict[str, Any] = {
    "_assert_async": partial(_check, RuntimeError),
    "_check": partial(_check, RuntimeError),
    "_check_index": partial(_check, IndexError),
    "_check_not_implemented": partial(_check, NotImplementedError),
    "_check_tensor_all": _check_all,
    "_check_tensor_all_with": _check_all_with,
    "_check_type": partial(_check, TypeError),
    "_check_value": partial(_check, ValueError),
    "_check_with": _check_with,
    "_convert_indices_from_coo_to_csr": _offsets_of,
    "_convert_indices_from_csr_to_coo": _indices_of,
    "_shape_as_tensor": _shape_as_tensor,
    "_softmax": _softmax,
    "_softmax_backward_data": _softmax_backward,
    "legacy_contiguous_format": torch.contiguous_format,
    "_C._are_functorch_transforms_active": _no,
    "_C._distributed_rpc._is_current_rpc_agent_set": _no,
    "_C._functorch.is_legacy_batchedtensor": _no,
    "_C._get_accelerator": _accelerator,
    "_C._get_default_device": lambda: torch.get_default_device().type,
    "_C._get_privateuse1_backend_name": lambda: "privateuseone",
    "_C._jit_can_fuse_on_cpu": _no,
    "_C._jit_can_fuse_on_gpu": _no,
    "_C._jit_override_can_fuse_on_cpu": _nothing,
    "_C._jit_override_can_fuse_on_gpu": _nothing,
    "_C._jit_set_nvfuser_enabled": _nothing,
    "_C._jit_set_nvfuser_guard_mode": _nothing,
    "_C._jit_set_profiling_executor": _nothing,
    "_C._jit_set_profiling_mode": _nothing,
    "_C._jit_set_texpr_fuser_enabled": _nothing,
    "_C._nn._parse_to": _parse_to,
    "_C._set_math_sdp_allow_fp16_bf16_reduction": _nothing,
    "_dynamo.config.patch": _Patch,
    "_dynamo.reset": _nothing,
    "_dynamo.eval_frame.is_dynamo_supported": _no,
    "_dynamo.is_compiling": _no,
    "_dynamo.mark_dynamic": _nothing,
    "_logging.set_logs": _nothing,
    "_subclasses.fake_tensor.is_fake": _no,
    "_tensor.Tensor": _C.Tensor,
    "_utils._element_size": lambda dtype: dtype.itemsize,
    "_utils._get_device_index": _device_index,
    "autograd._disable_profiler": _nothing,
    "autograd._profiler_enabled": _no,
    "distributed.distributed_c10d._get_default_group": _default_group,
    "distributed.distributed_c10d._get_default_store": _default_store,
    "distributed.rpc.api._require_initialized": _itself,
    "jit._overload": _itself,
    "jit._overload_method": _itself,
    f"{_INIT}fill_": lambda tensor, val: _parameters(tensor, "fill_", val),
    f"{_INIT}normal_": lambda tensor, mean, std, generator=None: _parameters(
        tensor, "normal_", mean, std, generator=generator
    ),
    f"{_INIT}uniform_": lambda tensor, a, b, generator=None: _parameters(
        tensor, "uniform_", a, b, generator=generator
    ),
    f"{_INIT}zero_": lambda tensor: _parameters(tensor, "zero_"),
    "nn.modules.module._EXTRA_STATE_KEY_SUFFIX": "_extra_state",
    "nn.modules.transformer._get_activation_fn": _activation,
    "optim.optimizer._default_to_fused_or_foreach": _fused_or_foreach,
    "optim.optimizer._get_capturable_supported_devices": lambda *_, **__: ["cuda"],
    "optim.optimizer._use_grad_for_differentiable": _with_grad,
    "optim.optimizer.required": object(),  # the default of an option to be given
    "serialization.DEFAULT_PROTOCOL": 2,
    "serialization.FILE_LIKE": str | os.PathLike | IO[bytes],
    "serialization.MAP_LOCATION": Callable | torch.device | str | dict | None,
    "utils.data.dataloader._DatasetKind": _DatasetKind,
    "utils.data.functional_datapipe": lambda name, **options: _itself,
}
