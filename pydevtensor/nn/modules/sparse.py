"""The Embedding module."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn._functional.sparse import padding_row
from pydevtensor.nn.modules._layer import explain
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of num_embeddings rows, which are selected by index.

    From input, int64 or int32 of any shape, to (*input.shape, embedding_dim). weight,
    the table, starts with samples of the standard normal distribution.

    padding_idx          this row starts with zeros and gets no gradient
    max_norm, norm_type  rows are scaled down to that norm when they are selected
    scale_grad_by_freq   a row's gradient is divided by how often it was selected
    sparse               has no effect: gradients are dense

    Raises IndexError for an index out of range; on a GPU, AcceleratorError at the next
    synchronization.

    >>> words = nn.Embedding(100, 16, padding_idx=0)
    >>> words(torch.tensor([[1, 7], [5, 0]])).shape
    torch.Size([2, 2, 16])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            padding_idx = padding_row(padding_idx, num_embeddings)
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            self.weight = Parameter(
                _C.empty(num_embeddings, embedding_dim, device=device, dtype=dtype),
                requires_grad=not _freeze,
            )
            self.reset_parameters()
        else:
            if [*_weight.shape] != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim: "
                    f"{[*_weight.shape]}, not {[num_embeddings, embedding_dim]}"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Initialize the table again, row padding_idx with zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx])

    def forward(self, input: Any) -> Any:
        try:
            return F.embedding(
                input,
                self.weight,
                self.padding_idx,
                self.max_norm,
                self.norm_type,
                self.scale_grad_by_freq,
                self.sparse,
            )
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, plain in (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        ):
            value = getattr(self, name)
            if value != plain:
                text += f", {name}={value}"
        return text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A module over the given table (n, size), which is shared, not copied.

        freeze: the table does not require gradients.
        """
        if embeddings.dim() != 2:
            raise AssertionError(
                "Embeddings parameter is expected to be 2-dimensional, and has shape "
                f"{[*embeddings.shape]}"
            )
        rows, size = embeddings.shape
        return cls(
            rows,
            size,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            embeddings,
            freeze,
        )
