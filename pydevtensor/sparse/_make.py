"""Makes sparse tensors of indices and values."""

from __future__ import annotations

from typing import Any, NamedTuple

import pydevtensor as torch
from pydevtensor import _C
from pydevtensor.sparse._pattern import Pattern
from pydevtensor.sparse._tensor import SparseTensor

_checks = False


class check_sparse_tensor_invariants:
    """Says whether sparse tensors are checked when they are made; a context manager.

    enable: whether. The functions that make sparse tensors take check_invariants, too.

    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether they are."""
        return _checks

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        global _checks
        _checks = True

    @staticmethod
    def disable() -> None:
        """Do not check from now on."""
        global _checks
        _checks = False

    def __enter__(self) -> None:
        global _checks
        self._before.append(_checks)
        _checks = self.state

    def __exit__(self, *unused: object) -> None:
        global _checks
        _checks = self._before.pop()


class _Options(NamedTuple):
    """The options of all functions that make a sparse tensor."""

    dtype: Any = None
    device: Any = None
    pin_memory: bool = False  # has no effect
    requires_grad: bool = False
    check_invariants: bool | None = None

    def values(self, given: Any, node: str) -> Any:
        """The values that the tensor holds: their history leads to those given."""
        made = _C.as_tensor(given, dtype=self.dtype, device=self.device)
        if made.requires_grad:
            return _C._named(made.view(made.shape), node)
        return made.detach()

    def checks(self, indices: Any) -> bool:
        """Whether indices are checked: by default those in the host's memory, as one
        has to wait for others."""
        if self.check_invariants is not None:
            return self.check_invariants
        return _checks or bool(indices.device.type == "cpu")

    def made(self, pattern: Pattern, held: Any) -> SparseTensor:
        made = SparseTensor(pattern, held)
        return made.requires_grad_() if self.requires_grad and held.is_leaf else made


def coo(
    indices: Any,
    values: Any = None,
    size: Any = None,
    is_coalesced: bool | None = None,
    **named: Any,
) -> SparseTensor:
    """torch.sparse_coo_tensor()."""
    options = _Options(**named)
    if values is None:
        size = indices if size is None else size
        k = len(size)
        indices = _C.zeros((k, 0), dtype=_C.int64)
        values = _C.zeros(0, dtype=options.dtype)
        is_coalesced = True
    node = "SparseCooTensorWithDimsAndTensorsBackward0"
    held = options.values(values, node)
    where = _C.as_tensor(indices, device=held.device).detach().long()
    if where.dim() != 2:
        raise RuntimeError(
            f"indices has {where.dim()} dimensions; give (dimensions, entries)"
        )
    if held.dim() == 0 and where.shape[1] == 1:
        held = held.unsqueeze(0)
    k, count = where.shape
    if not held.dim() or held.shape[0] != count:
        raise RuntimeError(
            f"indices has {count} entries and values has the shape "
            f"{tuple(held.shape)}; give a value for each"
        )
    if size is None:
        most = (where.amax(1) + 1).tolist() if count else [0] * k
        size = (*most, *held.shape[1:])
    size = tuple(size)
    if len(size) != k + held.dim() - 1 or size[k:] != tuple(held.shape[1:]):
        raise RuntimeError(
            f"size is {size}, for {k} rows of indices and values of the shape "
            f"{tuple(held.shape)}; give a size for each row of indices, then those of "
            "a value"
        )
    pattern = Pattern(size[:k], where, bool(is_coalesced) or count < 2)
    if options.checks(where):
        _check_coo(pattern, bool(is_coalesced))
    return options.made(pattern, held)


def _check_coo(pattern: Pattern, coalesced: bool) -> None:
    if not pattern.count:
        return
    lows, highs = pattern.indices.amin(1).tolist(), pattern.indices.amax(1).tolist()
    for dim, (low, high, size) in enumerate(
        zip(lows, highs, pattern.shape, strict=True)
    ):
        if low < 0 or high >= size:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size} but "
                f"found index {low if low < 0 else high}; give indices below the size"
            )
    if coalesced and (pattern.keys().diff() <= 0).any():
        raise RuntimeError(
            "is_coalesced is True, and the indices are not sorted, or one occurs twice"
        )


def _check_vectors(names: tuple[str, str], starts: Any, inner: Any, held: Any) -> None:
    for name, each in zip((*names, "values"), (starts, inner, held), strict=True):
        if each.dim() != 1:
            raise RuntimeError(
                f"{name} has {each.dim()} dimensions; give a vector: batches and "
                "blocks are for other layouts, so make a tensor of each matrix"
            )
    for name, each in zip(names, (starts, inner), strict=True):
        if each.dtype not in (_C.int64, _C.int32):
            raise RuntimeError(f"{name} is of {each.dtype}; give int64 or int32")
    if not starts.shape[0] or inner.shape != held.shape:
        raise RuntimeError(
            f"{names[0]} has {starts.shape[0]} numbers, {names[1]} {inner.shape[0]} "
            f"and values {held.shape[0]}; give one more than {names[0][1:4]}s, and as "
            "many of the others as entries"
        )


def _check_compressed(
    names: tuple[str, str], starts: Any, inner: Any, across: int
) -> None:
    wrong = bool((starts[1:] < starts[:-1]).any()) or int(starts[0]) != 0
    if wrong or int(starts[-1]) != inner.shape[0]:
        raise RuntimeError(
            f"{names[0]} does not go from 0 to the {inner.shape[0]} entries "
            "without decreasing; give where the entries of each begin, and the end"
        )
    if inner.shape[0] and not 0 <= int(inner.min()) <= int(inner.max()) < across:
        raise RuntimeError(f"{names[1]} has numbers beyond 0 to {across - 1}")


def compressed(
    by_column: bool,
    starts: Any,
    inner: Any,
    values: Any,
    size: Any = None,
    **named: Any,
) -> SparseTensor:
    """torch.sparse_csr_tensor(), or sparse_csc_tensor()."""
    options = _Options(**named)
    held = options.values(values, "SparseCompressedTensorBackward0")
    starts, inner = (
        _C.as_tensor(x, device=held.device).detach() for x in (starts, inner)
    )
    names = (
        ("ccol_indices", "row_indices")
        if by_column
        else ("crow_indices", "col_indices")
    )
    _check_vectors(names, starts, inner, held)
    outer = starts.shape[0] - 1
    if size is None:
        most = int(inner.max()) + 1 if inner.shape[0] else 0
        size = (most, outer) if by_column else (outer, most)
    size = tuple(size)
    if len(size) != 2 or size[by_column] != outer:
        raise RuntimeError(
            f"size is {size}, and {names[0]} is for {outer} {names[0][1:4]}s; give the "
            "sizes of a matrix"
        )
    if options.checks(inner):
        _check_compressed(names, starts, inner, size[1 - by_column])
    return options.made(Pattern.compressed(size, starts, inner, by_column), held)


def of_dense(tensor: Any, dims: int) -> SparseTensor:
    """The elements of a Tensor that are not 0, along the first dimensions."""
    held = tensor != 0
    if dims < tensor.dim():
        held = held.flatten(dims).any(-1)
    where = held.nonzero().t().contiguous()
    values = _C._named(tensor[tuple(where)], "ToSparseBackward1")
    return SparseTensor(Pattern(tensor.shape[:dims], where, True), values)


class _Typed(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return (
            type(value) is SparseTensor
            and value.type() == f"torch.sparse.{cls.__name__}"
        )


def _typed(dense: Any) -> Any:
    """The class of sparse tensors of the dtype of a class of dense ones."""
    name, dtype = dense.__name__, dense.dtype

    def make(cls: Any, *args: Any, device: Any = None) -> Any:
        if all(isinstance(n, int) for n in args):
            args = (args,)
        return coo(*args, dtype=dtype, device=device)

    doc = f"""sparse_coo_tensor() of {dtype}, as old programs call it.

    >>> torch.sparse.{name}(torch.tensor([[0], [1]]), torch.tensor([3]), (2, 2))._nnz()
    1
    """
    members = {"__new__": make, "__doc__": doc, "__module__": "pydevtensor.sparse"}
    return _Typed(name, (), members)


ByteTensor, CharTensor, ShortTensor, IntTensor, LongTensor = map(
    _typed,
    (
        torch.ByteTensor,
        torch.CharTensor,
        torch.ShortTensor,
        torch.IntTensor,
        torch.LongTensor,
    ),
)
HalfTensor, FloatTensor, DoubleTensor = map(
    _typed, (torch.HalfTensor, torch.FloatTensor, torch.DoubleTensor)
)
