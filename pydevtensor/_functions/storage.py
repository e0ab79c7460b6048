"""The storage of a tensor, and another one for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function, method
from pydevtensor._functions.checks import at_least

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


@function()
def is_storage(obj: Any) -> bool:
    """Whether obj is a storage.UntypedStorage or a storage.TypedStorage.

    >>> torch.is_storage(torch.ones(2).untyped_storage()), torch.is_storage([1])
    (True, False)
    """
    from pydevtensor.storage import _Storage

    return isinstance(obj, _Storage)


@function(factory=True)
def from_file(
    filename: Any, shared: bool = False, size: int = 0, **factory: Any
) -> Tensor:
    """A vector in the memory of a mapped file.

    filename  the path
    shared    True: writes change the file, which is created or extended if need be;
              False: writes change the process's copy only
    size      number of elements; RuntimeError if the file has fewer and is not shared

    Raises RuntimeError for a device other than the CPU and for pin_memory.

    >>> import tempfile
    >>> file = tempfile.NamedTemporaryFile()
    >>> torch.from_file(file.name, shared=True, size=3).fill_(2)
    tensor([2., 2., 2.])
    >>> torch.from_file(file.name, size=3)
    tensor([2., 2., 2.])
    """
    from pydevtensor.storage import UntypedStorage

    at_least(0, "size", size)
    vector = _C.empty(0, **factory)
    if vector.device.type != "cpu" or factory.get("pin_memory"):
        raise RuntimeError(
            "the memory of a file is the CPU's, and not pinned; call to(device), or "
            "pin_memory(), on the result"
        )
    try:
        memory = UntypedStorage.from_file(filename, shared, size * vector.itemsize)
    except OSError as error:
        raise RuntimeError(f"{filename} cannot be opened: {error.strerror}") from None
    return vector.detach().set_(memory).requires_grad_(vector.requires_grad)


@method()
def untyped_storage(input: Tensor) -> Any:
    """The memory that the tensor and its views share, as a storage.UntypedStorage.

    >>> torch.ones(3)[1:].untyped_storage().nbytes()
    12
    """
    from pydevtensor.storage import UntypedStorage

    return UntypedStorage._over(_C._storage_bytes(input.detach()))


@method()
def storage(input: Tensor) -> Any:
    """The memory that the tensor and its views share, as a storage.TypedStorage.

    It warns, as PyTorch has it for old programs only. See also untyped_storage().

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> torch.tensor([[1, 2], [3, 4]])[1].storage().tolist()
    [1, 2, 3, 4]
    """
    import warnings

    from pydevtensor.storage import TypedStorage

    warnings.warn(
        "a TypedStorage is for old programs; use tensor.untyped_storage()",
        UserWarning,
        stacklevel=2,
    )
    whole = untyped_storage(input)
    return TypedStorage(wrap_storage=whole, dtype=input.dtype)


@method()
def set_(
    input: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Let the tensor use other memory, sizes and strides.

    source          a Tensor or a storage; None: no elements
    storage_offset  where the first element is, counted in elements from that of a
                    Tensor, or from the storage's start
    size            sizes; None: those of a Tensor, all elements of a storage
    stride          strides in elements; None: those of a Tensor, or row-major ones

    A storage that is too small gets larger, as by UntypedStorage.resize_().
    RuntimeError for another type or device than the tensor has, or where the storage is
    too small and not resizable.

    >>> x = torch.tensor([1.0, 2.0, 3.0])
    >>> torch.empty(0).set_(x.untyped_storage(), 1, (2,))
    tensor([2., 3.])
    """
    from pydevtensor._functions.resize import reaching
    from pydevtensor.storage import _in_elements, _Storage

    whole, offset = source, storage_offset
    if source is None:
        whole = input.new_empty(0)
    elif isinstance(source, _Storage):
        whole = _in_elements(_C._storage_bytes(source._elements), input.dtype)
    elif not isinstance(source, _C.Tensor):
        raise TypeError(
            f"source is a {type(source).__name__}; give a Tensor or a storage"
        )
    else:
        offset += source.storage_offset()
        if size is None:
            size, stride = source.shape, source.stride()
    if whole.dtype != input.dtype or whole.device != input.device:
        raise RuntimeError(
            f"the source is of {whole.dtype} on {whole.device}, the tensor of "
            f"{input.dtype} on {input.device}; convert one of them first"
        )
    if size is None:
        size = (whole.numel() - offset,)
    if stride is None:
        stride, step = [], 1
        for n in reversed(size):
            stride.insert(0, step)
            step *= n
    input.data = reaching(whole.detach(), size, stride, offset)
    return input


@method()
def is_shared(input: Tensor) -> bool:
    """Whether processes share the memory; memory of GPUs counts as such.

    >>> torch.ones(2).is_shared(), torch.ones(2).share_memory_().is_shared()
    (False, True)
    """
    return untyped_storage(input).is_shared()
