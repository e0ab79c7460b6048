"""Tables of which rows are chosen by index."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn._functional.sparse import padding_row
from pydevtensor.nn.modules._layer import explain, need_ints
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Base of modules with a table of rows."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _add_table(self, weight: Any, freeze: bool, device: Any, dtype: Any) -> None:
        """Register the table: weight, or a new one, and initialize that."""
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

    def _shown(self, *options: tuple[str, Any]) -> str:
        """The sizes, and the options that are not as given here."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, plain in options:
            value = getattr(self, name)
            if value != plain:
                text += f", {name}={value!r}"
        return text


def _need_matrix(embeddings: Any) -> None:
    if embeddings.dim() != 2:
        raise AssertionError(
            "Embeddings parameter is expected to be 2-dimensional, and has shape "
            f"{[*embeddings.shape]}"
        )


class Embedding(_Table):
    """A table of num_embeddings rows, which are selected by index.

    From input, int64 or int32 of any shape, to (*input.shape, embedding_dim). weight,
    the table, starts with samples of the standard normal distribution. Raises
    IndexError for an index out of range; on a GPU, AcceleratorError at the next
    synchronization. See also EmbeddingBag.

    num_embeddings       how many rows there are
    embedding_dim        size of a row
    padding_idx          this row starts with zeros and gets no gradient; AssertionError
                         if it is not a row
    max_norm, norm_type  rows are scaled down to that norm when they are selected
    scale_grad_by_freq   a row's gradient is divided by how often it was selected
    sparse               has no effect: gradients are dense
    device, dtype        of the parameters

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
        need_ints(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            padding_idx = padding_row(padding_idx, num_embeddings)
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._add_table(_weight, _freeze, device, dtype)

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
        return self._shown(
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            ("sparse", False),
        )

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
        sparse               has no effect: gradients are dense
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


class EmbeddingBag(_Table):
    """A table of rows, of which bags of indices choose some and average them.

    From input, bags as rows (B, L), or one after the other (N) with offsets that say
    where each begins, to (B, embedding_dim). See also nn.functional.embedding_bag(),
    which has the errors.

    num_embeddings       how many rows there are
    embedding_dim        size of a row
    max_norm, norm_type  rows are scaled down to that norm when they are selected
    scale_grad_by_freq   a row's gradient is divided by how often it was selected; not
                         with mode='max'
    mode                 'mean', 'sum' or 'max' of each column
    sparse               has no effect: gradients are dense
    include_last_offset  offsets ends with one more, the end of the last bag
    padding_idx          this row starts with zeros, gets no gradient and does not count
    device, dtype        of the parameters

    >>> words = nn.EmbeddingBag(100, 16, mode='sum')
    >>> words(torch.tensor([1, 7, 5]), torch.tensor([0, 2])).shape
    torch.Size([2, 16])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            padding_idx = padding_row(padding_idx, num_embeddings)
        self.padding_idx = padding_idx
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._add_table(_weight, False, device, dtype)

    def forward(
        self, input: Any, offsets: Any = None, per_sample_weights: Any = None
    ) -> Any:
        """One row for each bag, 0 for an empty one.

        input               indices, int64 or int32 of shape (B, L), or (N) with offsets
        offsets             where each bag begins in an input (N), integers (B) that
                            start with 0 and do not decrease
        per_sample_weights  factors of the rows, of input's shape, for mode='sum' only
        """
        try:
            return F.embedding_bag(
                input,
                self.weight,
                offsets,
                self.max_norm,
                self.norm_type,
                self.scale_grad_by_freq,
                self.mode,
                self.sparse,
                per_sample_weights,
                self.include_last_offset,
                self.padding_idx,
            )
        except Exception as error:
            explain(self, error, input=input)
            raise

    def extra_repr(self) -> str:
        return self._shown(
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
            ("mode", None),
            ("padding_idx", None),
        )

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
        sparse               has no effect: gradients are dense
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
