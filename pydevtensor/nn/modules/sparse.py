"""Tables of which rows are chosen by index."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn._functional.sparse import padding_row
from pydevtensor.nn.modules._layer import Parametrized
from pydevtensor.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]

# The options that extra_repr() leaves out where they have these values.
_USUAL = {"padding_idx": None, "max_norm": None, "norm_type": 2, "mode": None}
_USUAL |= {"scale_grad_by_freq": False, "sparse": False}


class _Table(Parametrized):
    """Base of modules with a table of rows.

    num_embeddings       how many rows there are
    embedding_dim        size of a row
    max_norm, norm_type  rows are scaled down to that norm when they are selected
    sparse               weight's gradient is a sparse tensor of the selected rows
    """

    _ints = ("num_embeddings", "embedding_dim")
    _repr = ""  # the options that extra_repr() shows where they are not as in _USUAL

    def _make(
        self,
        *,
        device: Any,
        dtype: Any,
        _weight: Any,
        _freeze: bool = False,
        **options: Any,
    ) -> None:
        """Register the table: _weight, or a new one, and initialize that."""
        row = options["padding_idx"]
        if row is not None:
            options["padding_idx"] = padding_row(row, options["num_embeddings"])
        super()._make(**options)
        weight, freeze = _weight, _freeze
        shape = [self.num_embeddings, self.embedding_dim]
        if weight is None:
            made = _C.empty(shape, device=device, dtype=dtype)
            self.weight: Parameter = Parameter(made, requires_grad=not freeze)
            self.reset_parameters()
            return
        if [*weight.shape] != shape:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"{[*weight.shape]}, not {shape}"
            )
        self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Initialize the table again, row padding_idx with zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx])

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name in self._repr.split():
            value = getattr(self, name)
            if value != _USUAL[name]:
                text += f", {name}={value!r}"
        return text


def _need_matrix(embeddings: Any) -> None:
    if embeddings.dim() != 2:
        raise AssertionError(
            "Embeddings parameter is expected to be 2-dimensional, and has shape "
            f"{[*embeddings.shape]}"
        )


class Embedding(
    _Table,
    calls=F.embedding,
    takes="num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, "
    "max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool "
    "= False, sparse: bool = False, _weight: Any = None, _freeze: bool = False, "
    "device, dtype",
):
    """A table of num_embeddings rows, which are selected by index.

    From input, int64 or int32 of any shape, to (*input.shape, embedding_dim). weight,
    the table, starts with samples of the standard normal distribution. Raises
    IndexError for an index out of range; on a GPU, AcceleratorError at the next
    synchronization. See also EmbeddingBag.

    padding_idx         this row starts with zeros and gets no gradient; AssertionError
                        if it is not a row
    scale_grad_by_freq  a row's gradient is divided by how often it was selected

    >>> words = nn.Embedding(100, 16, padding_idx=0)
    >>> words(torch.tensor([[1, 7], [5, 0]])).shape
    torch.Size([2, 2, 16])
    """

    _repr = "padding_idx max_norm norm_type scale_grad_by_freq sparse"

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

        embeddings           the table, a matrix; AssertionError for another number of
                             dimensions
        freeze               the table does not require gradients
        padding_idx          this row gets no gradient; it keeps its values
        max_norm, norm_type  as for Embedding
        scale_grad_by_freq   as for Embedding
        sparse               as for Embedding
        """
        _need_matrix(embeddings)
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


class EmbeddingBag(
    _Table,
    calls=F.embedding_bag,
    inputs="input, offsets=None, per_sample_weights=None",
    takes="num_embeddings: int, embedding_dim: int, max_norm: float | None = None, "
    "norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = 'mean', "
    "sparse: bool = False, _weight: Any = None, include_last_offset: bool = False, "
    "padding_idx: int | None = None, device, dtype",
):
    """A table of rows, of which bags of indices choose some and average them.

    From input, bags as rows (B, L), or one after the other (N) with offsets that say
    where each begins, to (B, embedding_dim). See also nn.functional.embedding_bag(),
    which has the errors.

    scale_grad_by_freq   a row's gradient is divided by how often it was selected; not
                         with mode='max'
    mode                 'mean', 'sum' or 'max' of each column
    include_last_offset  offsets ends with one more, the end of the last bag
    padding_idx          this row starts with zeros, gets no gradient and does not count

    >>> words = nn.EmbeddingBag(100, 16, mode='sum')
    >>> words(torch.tensor([1, 7, 5]), torch.tensor([0, 2])).shape
    torch.Size([2, 16])
    """

    _ints = ()  # as in PyTorch
    _repr = "max_norm norm_type scale_grad_by_freq mode padding_idx"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A module over the given table (n, size), which is shared, not copied.

        embeddings           the table, a matrix; AssertionError for another number of
                             dimensions
        freeze               the table does not require gradients
        max_norm, norm_type  as for EmbeddingBag
        scale_grad_by_freq   as for EmbeddingBag
        mode                 'mean', 'sum' or 'max' of each column
        sparse               as for Embedding
        include_last_offset  as for EmbeddingBag
        padding_idx          this row gets no gradient and does not count
        """
        _need_matrix(embeddings)
        rows, size = embeddings.shape
        made = cls(
            rows,
            size,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad = not freeze
        return made
