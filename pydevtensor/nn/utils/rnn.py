"""Sequences of different lengths, padded to one or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydevtensor import _C
from pydevtensor._names import publish as _publish

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def _converter(name: str, dtype: _C.dtype) -> Any:
    """The method of PackedSequence that converts to a type."""

    def convert(self: PackedSequence) -> PackedSequence:
        return self.to(dtype=dtype)

    convert.__name__, convert.__qualname__ = name, f"PackedSequence.{name}"
    convert.__doc__ = f"Convert data to {str(dtype).removeprefix('torch.')}."
    return convert


class PackedSequence(_Fields):
    """Sequences without padding: the first elements of all, the second of those, ...

    The longest sequence comes first. pack_padded_sequence() and pack_sequence() make
    it.

    data              the elements
    batch_sizes       how many sequences reach each step, int64, on the CPU, else
                      ValueError
    sorted_indices    from which index in the batch each came; None: the batch was
                      sorted
    unsorted_indices  where each belongs; None: what sorted_indices says

    >>> batch = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    >>> packed = nn.utils.rnn.pack_sequence(batch)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(
                    "PackedSequence: batch_sizes is missing; give data and batch_sizes"
                )
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                f"PackedSequence: batch_sizes is on {batch_sizes.device}; it has to be "
                "on the CPU, e.g. batch_sizes.cpu()"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move or convert data as Tensor.to() does, and move the indices with it."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        options = {k: v for k, v in kwargs.items() if k in ("non_blocking", "copy")}
        indices = [
            None if i is None else i.to(data.device, **options)
            for i in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to a GPU, the current one unless another is named."""
        device = args[0] if args else kwargs.pop("device", None)
        device = "cuda" if device is None else device
        if isinstance(device, int):
            device = _C.device("cuda", device)
        return self.to(device, *args[1:], **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move to the CPU."""
        return self.to("cpu", *args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """Copy data and indices to page-locked memory."""
        pinned = [
            None if t is None else t.pin_memory()
            for t in (self.data, self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(pinned[0], self.batch_sizes, *pinned[1:])

    double = _converter("double", _C.float64)
    float = _converter("float", _C.float32)
    half = _converter("half", _C.float16)
    long = _converter("long", _C.int64)
    int = _converter("int", _C.int32)
    short = _converter("short", _C.int16)
    char = _converter("char", _C.int8)
    byte = _converter("byte", _C.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether data is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether data is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes a permutation.

    permutation  a vector of integers; None gives None

    >>> nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = _C.arange(len(permutation), device=permutation.device)
    return _C.empty_like(permutation).scatter_(0, permutation, places)


def _checked_lengths(name: str, lengths: Any) -> list[Any]:
    """The lengths as ints, from a list or a Tensor on the CPU."""
    if isinstance(lengths, _C.Tensor):
        if lengths.ndim != 1 or lengths.device.type != "cpu":
            raise RuntimeError(
                f"{name}: lengths is a Tensor of shape {[*lengths.shape]} on "
                f"{lengths.device}; give one dimension, on the CPU: lengths.cpu()"
            )
        lengths = lengths.tolist()
    return [int(length) for length in lengths]


def _packed(elements: Any, lengths: list[Any]) -> Any:
    """(data, batch_sizes) of rows `elements`[step * batch + b], lengths descending."""
    batch = len(lengths)
    sizes, left = [], batch
    for step in range(lengths[0]):
        while left and lengths[left - 1] <= step:
            left -= 1
        sizes.append(left)
    where = [t * batch + b for t, size in enumerate(sizes) for b in range(size)]
    index = _C.tensor(where, dtype=_C.int64, device=elements.device)
    return elements.index_select(0, index), _C.tensor(
        sizes, dtype=_C.int64, device="cpu"
    )


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch.

    RuntimeError for lengths that do not fit. See also pad_packed_sequence(), which
    undoes it.

    input           the batch, (T, B, ...)
    lengths         the length of each sequence, 1 to T, a list or a Tensor on the CPU
    batch_first     take (B, T, ...)
    enforce_sorted  raise RuntimeError for lengths that grow; False takes any order

    >>> x = torch.tensor([[1, 4], [2, 0], [3, 0]])
    >>> nn.utils.rnn.pack_padded_sequence(x, [3, 1]).data
    tensor([1, 4, 2, 3])
    """
    name = "pack_padded_sequence"
    counts = _checked_lengths(name, lengths)
    order = None
    if not enforce_sorted:
        by_length = sorted(range(len(counts)), key=lambda b: -counts[b])
        counts = [counts[b] for b in by_length]
        order = _C.tensor(by_length, dtype=_C.int64, device=input.device)
        if len(order) == input.shape[0 if batch_first else 1]:
            input = input.index_select(0 if batch_first else 1, order)
    steps = input.transpose(0, 1) if batch_first else input
    longest, batch = steps.size(0), steps.size(1)
    if len(counts) != batch:
        raise RuntimeError(
            f"{name}: {len(counts)} lengths were given for a batch of {batch} "
            "sequences; give a length for each (batch_first tells which dimension is "
            "the batch)"
        )
    if not batch or min(counts) < 1:
        raise RuntimeError(
            f"{name}: the lengths are {counts}; each sequence has to have an element, "
            "leave out those that are empty"
        )
    if counts != sorted(counts, reverse=True):
        raise RuntimeError(
            f"{name}: the lengths {counts} grow; sort the batch by length, the longest "
            "first, or give enforce_sorted=False"
        )
    if counts[0] > longest:
        raise RuntimeError(
            f"{name}: a length is {counts[0]}, and the padded sequences have {longest} "
            "elements; give lengths up to that"
        )
    rows = steps[: counts[0]].reshape((counts[0] * batch, *steps.shape[2:]))
    data, sizes = _packed(rows, counts)
    return PackedSequence(data, sizes, order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, ...]:
    """Undo pack_padded_sequence(): the padded batch, and the lengths.

    The batch has the order that it had before, and total_length steps where that is
    given. See also unpack_sequence(), which gives a list.

    sequence       a PackedSequence
    batch_first    give (B, T, ...) in place of (T, B, ...)
    padding_value  what fills the shorter sequences
    total_length   T, at least the longest length, else ValueError; that by default

    >>> batch = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    >>> packed = nn.utils.rnn.pack_sequence(batch)
    >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    steps, batch = len(sizes), sizes[0]
    total = steps if total_length is None else total_length
    if total < steps:
        raise ValueError(
            f"pad_packed_sequence: total_length is {total_length}, and the longest "
            f"sequence has {steps} elements; give at least that"
        )
    data = sequence.data
    where = [t * batch + b for t, size in enumerate(sizes) for b in range(size)]
    index = _C.tensor(where, dtype=_C.int64, device=data.device)
    shape = data.shape[1:]
    rows = data.new_full((total * batch, *shape), padding_value)
    padded = rows.index_copy(0, index, data).reshape((total, batch, *shape))
    counts = [0] * batch
    for size in sizes:
        for b in range(size):
            counts[b] += 1
    lengths = _C.tensor(counts, dtype=_C.int64, device="cpu")
    if batch_first:
        padded = padded.transpose(0, 1)
    order = sequence.unsorted_indices
    if order is not None:
        padded = padded.index_select(0 if batch_first else 1, order)
        lengths = lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """Stack sequences (L, ...) as (T, B, ...), padded to the longest.

    RuntimeError for no sequences, and for other shapes behind the length that differ.
    See also pack_sequence(), which leaves the padding out.

    sequences      a list of Tensors, which may differ in their first size
    batch_first    give (B, T, ...) in place of (T, B, ...)
    padding_value  what fills the shorter sequences
    padding_side   where it goes, 'right' or 'left'; RuntimeError for another

    >>> nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], True, 9)
    tensor([[1, 2],
            [3, 9]])
    """
    if not isinstance(sequences, (Iterable, _C.Tensor)):
        raise RuntimeError(
            f"pad_sequence: sequences is {type(sequences).__name__}; give a list of "
            "Tensors"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: padding_side is {padding_side!r}; give 'left' or 'right'"
        )
    sequences = [*sequences]
    if not sequences:
        raise RuntimeError("pad_sequence: there are no sequences; give one or more")
    for at, sequence in enumerate(sequences):
        if not isinstance(sequence, _C.Tensor):
            raise TypeError(
                f"pad_sequence: sequence {at} is {type(sequence).__name__}; give "
                "Tensors"
            )
    rest = sequences[0].shape[1:]
    for at, sequence in enumerate(sequences):
        if sequence.shape[1:] != rest:
            raise RuntimeError(
                f"pad_sequence: sequence 0 has shape {[*sequences[0].shape]} and "
                f"sequence {at} {[*sequence.shape]}; they may differ in their first "
                "size only"
            )
    longest = max(len(sequence) for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - len(sequence)
        if missing:
            gap = sequence.new_full((missing, *rest), padding_value)
            left = padding_side == "left"
            sequence = _C.cat([gap, sequence] if left else [sequence, gap])
        padded.append(sequence)
    return _C.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Any, lengths: Any, batch_first: bool = False
) -> list[Any]:
    """The list of sequences of a padded batch, without the padding.

    padded_sequences  the batch, (T, B, ...), padded at the end
    lengths           the length of each sequence, a Tensor of B integers
    batch_first       take (B, T, ...)

    >>> padded = torch.tensor([[1, 3], [2, 0]])
    >>> nn.utils.rnn.unpad_sequence(padded, torch.tensor([2, 1]))
    [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [
        sequence[:length]
        for sequence, length in zip(padded_sequences, lengths.tolist(), strict=True)
    ]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences (L, ...).

    The longest comes first; enforce_sorted=False takes them in any order. See also
    unpack_sequence(), which undoes it.

    sequences       a list of Tensors, which may differ in their first size
    enforce_sorted  raise RuntimeError for lengths that grow; False takes any order

    >>> nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(
        pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The list of sequences that pack_sequence() packed.

    packed_sequences  a PackedSequence

    >>> batch = [torch.tensor([1, 2]), torch.tensor([3])]
    >>> packed = nn.utils.rnn.pack_sequence(batch)
    >>> nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


_publish(__name__)
