"""Options of linear_cross_entropy(): the rows that it takes at a time."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C

__all__ = ["LinearCrossEntropyOptions"]

_HALVES = (_C.float16, _C.bfloat16)
_POLICIES = ("auto", "accurate", "balanced", "compact")


class LinearCrossEntropyOptions:
    """Let linear_cross_entropy() compute the logits of some rows at a time.

    For a sum or a mean of losses it computes logits only once, since it computes the
    gradients from them at the same time.

    allow_retain_graph  changes nothing: backward() can be repeated
    batch_chunk_size    rows at a time; None: as chunking_method says
    chunking_method     'aspect_ratio': so many that their logits take as much memory as
                        the input; 'aspect_ratio:n': an n-th of it; 'auto': by the type
                        of elements; None: all at a time, without batch_chunk_size
    acc_policy          'auto', 'accurate', 'balanced' or 'compact': 'auto' computes
                        halves in float32
    acc_dtype           the type that logits and sums are computed in; None: by the
                        policy

    ValueError for other values, and for both batch_chunk_size and a chunking_method.

    >>> options = nn.LinearCrossEntropyOptions(batch_chunk_size=1)
    >>> x, w = torch.ones(3, 2), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    >>> target = torch.tensor([0, 0, 0])
    >>> nn.functional.linear_cross_entropy(x, w, target, options=options)
    tensor(0.3133)
    """

    __slots__ = (
        "acc_dtype",
        "acc_policy",
        "allow_retain_graph",
        "batch_chunk_size",
        "chunking_method",
    )

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: Any = None,
    ) -> None:
        self.allow_retain_graph = allow_retain_graph
        self.batch_chunk_size, self.chunking_method = batch_chunk_size, chunking_method
        self.acc_policy, self.acc_dtype = acc_policy, acc_dtype
        if self.acc_policy not in _POLICIES:
            raise ValueError(
                f"invalid acc_policy: {self.acc_policy!r}; give one of {_POLICIES}"
            )
        method = self.chunking_method
        if method not in (None, "auto") and not self._divisor(method):
            raise ValueError(
                f"invalid chunking_method: {method!r}; give 'auto', 'aspect_ratio', "
                "'aspect_ratio:2' or None"
            )
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(
                f"batch_chunk_size must be positive int or None, got {size!r}"
            )
        floats = (*_HALVES, _C.float32, _C.float64)
        if self.acc_dtype is not None and self.acc_dtype not in floats:
            raise ValueError(
                f"acc_dtype is {self.acc_dtype!r}; give a type of floats, or None"
            )

    def __repr__(self) -> str:
        return (
            "LinearCrossEntropyOptions("
            f"allow_retain_graph={self.allow_retain_graph!r}, "
            f"batch_chunk_size={self.batch_chunk_size!r}, "
            f"chunking_method={self.chunking_method!r}, "
            f"acc_policy={self.acc_policy!r}, acc_dtype={self.acc_dtype!r})"
        )

    @staticmethod
    def _divisor(method: Any) -> int:
        """n of 'aspect_ratio:n'; 0 for another text."""
        name, colon, number = str(method).partition(":")
        number = number if colon else "1"
        return int(number) if name == "aspect_ratio" and number.isdigit() else 0

    def _sizes(
        self, rows: int, features: int, classes: int, dtype: Any
    ) -> tuple[int, Any]:
        """The rows at a time, and the type to compute in."""
        method, size = self.chunking_method, self.batch_chunk_size
        if method == "auto":
            # PyTorch's choice, for halves and for other types.
            by_type = "aspect_ratio" if dtype in _HALVES else "aspect_ratio:2"
            method = None if size is not None else by_type
        count = rows if size is None else min(size, rows)
        if method is not None:
            least = -(-rows // max(1, -(-classes // max(1, features))))
            count = 1 << max(0, least - 1).bit_length()
            count = min(count // self._divisor(method), rows)
            if size is not None and size != count:
                raise ValueError(
                    f"batch_chunk_size is {size}, and chunking_method {method!r} gives "
                    f"{count}; give one of them"
                )
        kind = self.acc_dtype
        if kind is None:
            halves = self.acc_policy == "auto" and dtype in _HALVES
            kind = _C.float32 if halves else dtype
        if kind != dtype and not (dtype in _HALVES and kind == _C.float32):
            raise RuntimeError(
                f"linear_cross_entropy: acc_dtype is {kind}, and the input {dtype}; "
                "give the input's type, or float32 for halves"
            )
        return max(1, count), kind
