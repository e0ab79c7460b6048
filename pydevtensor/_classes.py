"""The names of classes that PyTorch has for element types, such as FloatTensor."""

from __future__ import annotations

from operator import index
from typing import Any, ClassVar

from pydevtensor import _C
from pydevtensor._names import give

_DOC = """A CPU tensor of {kind}.

size: ints, for elements of any value, or one sequence of data. device: the CPU
(RuntimeError for another). See also tensor().

>>> torch.{name}([1, 2])
tensor({shown})
"""


class TensorType(type):
    """The class of FloatTensor and the others: what they make are Tensors."""

    dtype: _C.dtype

    def __init__(cls, name: str, bases: Any, members: Any) -> None:
        super().__init__(name, bases, members)
        kind = str(cls.dtype)
        shown = "[1., 2.]" if cls.dtype.is_floating_point else "[1, 2]"
        if cls.dtype is _C.bool:
            shown = "[True, True]"
        elif cls.dtype not in (_C.int64, _C.float32):  # which are printed without
            shown += f", dtype={kind}"
        cls.__doc__ = _DOC.format(
            kind=kind.removeprefix("torch."), name=name, shown=shown
        )

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _C.Tensor) and (
            value.dtype is cls.dtype and not value.is_cuda
        )

    def __call__(cls, *size: Any, device: Any = "cpu") -> _C.Tensor:
        if _C.device(device).type != "cpu":
            raise RuntimeError(
                f"{cls.__name__}() makes CPU tensors; use torch.tensor(data, "
                f"dtype={cls.dtype}, device={str(device)!r})"
            )
        if len(size) == 1 and isinstance(size[0], _C.Size):
            size = tuple(size[0])
        elif len(size) == 1 and not _is_index(size[0]):
            return _C.tensor(size[0], dtype=cls.dtype, device="cpu")
        if not all(map(_is_index, size)):
            raise TypeError(
                f"{cls.__name__}(): {size} are not sizes; give ints, or one sequence "
                "of data"
            )
        return _C.empty(size or (0,), dtype=cls.dtype, device="cpu")


def set_default_tensor_type(t: Any) -> None:
    """set_default_dtype() by t, a class such as torch.DoubleTensor or its name.

    TypeError for a type that is not a floating one, and for a class of GPUs, instead of
    which set_default_device('cuda') makes new tensors there.

    >>> torch.set_default_tensor_type(torch.DoubleTensor)
    >>> torch.ones(1).dtype
    torch.float64
    >>> torch.set_default_tensor_type('torch.FloatTensor')
    """
    name = f"torch.{t.__name__}" if isinstance(t, TensorType) else t
    kind = globals().get(str(name).removeprefix("torch."))
    if not isinstance(kind, TensorType) or not kind.dtype.is_floating_point:
        raise TypeError(
            f"set_default_tensor_type(): {t!r} is not a floating type of the CPU; give "
            "torch.FloatTensor or another, and for GPUs call "
            "torch.set_default_device('cuda')"
        )
    _C.set_default_dtype(kind.dtype)


def _is_index(value: Any) -> bool:
    if isinstance(value, _C.Tensor):
        return False
    try:
        index(value)
    except TypeError:
        return False
    return True


class BoolTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.bool


class ByteTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.uint8


class CharTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.int8


class ShortTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.int16


class IntTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.int32


class LongTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.int64


class HalfTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.float16


class BFloat16Tensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.bfloat16


class FloatTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.float32


class DoubleTensor(metaclass=TensorType):
    dtype: ClassVar[_C.dtype] = _C.float64


give(
    "pydevtensor",
    BoolTensor,
    ByteTensor,
    CharTensor,
    ShortTensor,
    IntTensor,
    LongTensor,
    HalfTensor,
    BFloat16Tensor,
    FloatTensor,
    DoubleTensor,
)
