"""The Transformer and its layers (Vaswani et al., 2017, Attention Is All You Need)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn.modules._layer import Parametrized
from pydevtensor.nn.modules.attention import MultiheadAttention
from pydevtensor.nn.modules.container import ModuleList
from pydevtensor.nn.modules.dropout import Dropout
from pydevtensor.nn.modules.linear import Linear
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _activation(given: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    if given not in ("relu", "gelu") and isinstance(given, str):
        raise RuntimeError(
            f"activation is {given!r}; give 'relu', 'gelu' or a function"
        )
    return getattr(F, given) if isinstance(given, str) else given


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Any:
    return _C.full((size, size), -math.inf, device=device, dtype=dtype).triu(1)


def _is_causal(mask: Any, given: bool | None, size: int) -> bool:
    """Whether a mask leaves out the keys after each query, unless that is said."""
    if given is not None or mask is None:
        return bool(given)
    if mask.shape != (size, size):
        return False
    return bool((mask == _causal_mask(size, mask.device, mask.dtype)).all())


def _length(x: Any, batch_first: bool) -> int:
    return x.shape[1 if batch_first and x.ndim == 3 else 0]


def _clones(layer: Any, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class _Layer(
    Parametrized,
    takes="d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float "
    "= 0.1, activation: str | Callable[[Any], Any] = F.relu, layer_norm_eps: float "
    "= 1e-5, batch_first, norm_first: bool = False, bias, device, dtype",
):
    """Attention and two linear layers, with what the subclasses' parts share.

    nhead            heads of attention, which divide d_model
    dim_feedforward  size between the linear layers
    dropout          probability of dropout, in attention and after each part
    activation       between the linear layers: 'relu', 'gelu' or a function;
                     RuntimeError for another string
    layer_norm_eps   eps of the LayerNorms, added to variances
    batch_first      take N as the first dimension, not as the second
    norm_first       normalize the input of each part instead of its sum
    bias             whether the linear layers, projections and LayerNorms have biases
    """

    _attentions: tuple[str, ...]

    def _make(
        self,
        *,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Any,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        **made: Any,
    ) -> None:
        super()._make()
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, **made
            )
            setattr(self, name, attention)
        self.linear1: Linear = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for i in parts:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
            setattr(self, f"norm{i}", norm)
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation: Callable[[Any], Any] = _activation(activation)
        # For PyTorch, which may load the layer from a file.
        self.activation_relu_or_gelu = {F.relu: 1, F.gelu: 2}.get(self.activation, 0)

    def _residual(self, i: int, x: Any, part: Callable[[Any], Any]) -> Any:
        """x and the result of part i, which is counted from 1, normalized."""
        norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))

    def _attend(self, i: int, x: Any, memory: Any, **options: Any) -> Any:
        """Attention i to memory, or of x to itself where memory is None."""

        def part(x: Any) -> Any:
            seen = x if memory is None else memory
            attention = getattr(self, self._attentions[i - 1])
            return attention(x, seen, seen, need_weights=False, **options)[0]

        return self._residual(i, x, part)

    def _feed(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers, each with a residual and a LayerNorm.

    Inputs are (S, N, d_model), or (N, S, d_model) with batch_first. Raises
    AssertionError for sizes that do not fit. See also TransformerEncoder, a stack of
    these.

    d_model  size of an element

    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(torch.ones(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
    ) -> Any:
        """The elements after attention to each other, of src's shape.

        src                   (S, N, d_model), (N, S, d_model) with batch_first, or (S,
                              d_model)
        src_mask              (S, S) or (N * nhead, S, S): True leaves an element out
                              for another, or numbers are added to scores
        src_key_padding_mask  (N, S): True leaves an element out for all
        is_causal             say that src_mask is causal, which saves time;
                              RuntimeError without src_mask
        """
        options = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}
        x = self._attend(1, src, None, is_causal=is_causal, **options)
        return self._residual(2, x, self._feed)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's result, and two linear layers.

    The target is (T, N, d_model) and the memory, the encoder's result, (S, N, d_model),
    or with N first if batch_first. Errors are those of nn.TransformerEncoderLayer. See
    also TransformerDecoder, a stack of these.

    d_model  size of an element

    >>> layer = nn.TransformerDecoderLayer(8, 2, 16)
    >>> layer(torch.ones(4, 5, 8), torch.ones(3, 5, 8)).shape
    torch.Size([4, 5, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """The target's elements after attention to each other and to memory.

        tgt                      the target, (T, N, d_model), N first if batch_first, or
                                 without N
        memory                   an encoder's result, (S, N, d_model) likewise
        tgt_mask                 (T, T) or (N * nhead, T, T): True leaves an element of
                                 tgt out for another, or numbers are added to scores
        memory_mask              (T, S) or (N * nhead, T, S): the same of memory's
                                 elements
        tgt_key_padding_mask     (N, T): True leaves an element of tgt out for all
        memory_key_padding_mask  (N, S): True leaves an element of memory out for all
        tgt_is_causal            say that tgt_mask is causal, which saves time;
                                 RuntimeError without tgt_mask
        memory_is_causal         the same of memory_mask
        """
        options = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask}
        x = self._attend(1, tgt, None, is_causal=tgt_is_causal, **options)
        options = {
            "attn_mask": memory_mask,
            "key_padding_mask": memory_key_padding_mask,
        }
        x = self._attend(2, x, memory, is_causal=memory_is_causal, **options)
        return self._residual(3, x, self._feed)


class TransformerEncoder(Module):
    """num_layers copies of encoder_layer, one after the other, then norm.

    The copies start with equal parameters. Where no gradient is computed, in evaluation
    with src_key_padding_mask, batch_first and no mask, elements of the padding are
    zeros before norm, as in PyTorch, unless enable_nested_tensor=False.

    encoder_layer         the layer that is copied; it is not used itself
    num_layers            how many copies
    norm                  a module for the last result, such as LayerNorm; None: none
    enable_nested_tensor  set padding to zeros as said above
    mask_check            of no effect: where the padding is, is always looked at

    >>> layer = nn.TransformerEncoderLayer(8, 2, 16)
    >>> nn.TransformerEncoder(layer, 3)(torch.ones(5, 3, 8)).shape
    torch.Size([5, 3, 8])
    """

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers: ModuleList = _clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def _clears_padding(self, src: Any, mask: Any, padding: Any) -> bool:
        """Whether PyTorch would leave the padding out of its computation."""
        first: Any = self.layers[0] if len(self.layers) else None
        if padding is None or mask is not None or src.ndim != 3 or self.training:
            return False
        if not self.enable_nested_tensor or type(first) is not TransformerEncoderLayer:
            return False
        return (
            not first.norm_first
            and first.self_attn.batch_first
            and first.self_attn.in_proj_bias is not None
            and first.self_attn.num_heads % 2 == 0
            and first.activation in (F.relu, F.gelu)
            and first.norm1.eps == first.norm2.eps
            and padding.dtype == _C.bool
            and not (
                _C.is_grad_enabled()
                and any(p.requires_grad for p in first.parameters())
            )
            # Padding comes last in each sequence.
            and bool((padding[:, 1:] >= padding[:, :-1]).all())
        )

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
    ) -> Any:
        """The last layer's result, of src's shape.

        src                   (S, N, d_model), (N, S, d_model) with batch_first, or (S,
                              d_model)
        mask                  (S, S) or (N * nhead, S, S), each layer's src_mask
        src_key_padding_mask  (N, S): True leaves an element out for all
        is_causal             whether mask is causal; None: compare it, which waits for
                              a GPU
        """
        out = src
        causal = False
        if len(self.layers):
            attention = getattr(self.layers[0], "self_attn", None)
            batch_first = getattr(attention, "batch_first", False)
            causal = _is_causal(mask, is_causal, _length(src, batch_first))
        for layer in self.layers:
            out = layer(
                out,
                src_mask=mask,
                src_key_padding_mask=src_key_padding_mask,
                is_causal=causal,
            )
        if self._clears_padding(src, mask, src_key_padding_mask):
            out = out.masked_fill(src_key_padding_mask.unsqueeze(-1), 0)
        return out if self.norm is None else self.norm(out)


class TransformerDecoder(Module):
    """num_layers copies of decoder_layer, one after the other, then norm.

    decoder_layer  the layer that is copied; it is not used itself
    num_layers     how many copies
    norm           a module for the last result, such as LayerNorm; None: none

    >>> layer = nn.TransformerDecoderLayer(8, 2, 16)
    >>> nn.TransformerDecoder(layer, 2)(torch.ones(4, 5, 8), torch.ones(3, 5, 8)).shape
    torch.Size([4, 5, 8])
    """

    def __init__(self, decoder_layer: Any, num_layers: int, norm: Any = None) -> None:
        super().__init__()
        self.layers: ModuleList = _clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The last layer's result, of tgt's shape.

        tgt                      the target, (T, N, d_model), N first if batch_first, or
                                 without N
        memory                   an encoder's result, (S, N, d_model) likewise
        tgt_mask                 which elements of tgt each one takes, as for
                                 nn.TransformerDecoderLayer
        memory_mask              which elements of memory each one takes
        tgt_key_padding_mask     (N, T): True leaves an element of tgt out for all
        memory_key_padding_mask  (N, S): True leaves an element of memory out for all
        tgt_is_causal            whether tgt_mask is causal; None: compare it, which
                                 waits for a GPU
        memory_is_causal         say that memory_mask is causal, which saves time
        """
        out = tgt
        causal = False
        if len(self.layers):
            attention = getattr(self.layers[0], "self_attn", None)
            batch_first = getattr(attention, "batch_first", False)
            causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, batch_first))
        for layer in self.layers:
            out = layer(
                out,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return out if self.norm is None else self.norm(out)


class Transformer(
    Parametrized,
    takes="d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, "
    "num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1, "
    "activation: str | Callable[[Any], Any] = F.relu, custom_encoder: Any = None, "
    "custom_decoder: Any = None, layer_norm_eps: float = 1e-5, batch_first, "
    "norm_first: bool = False, bias, device, dtype",
):
    """An encoder of the source and a decoder of the target that attends to it.

    src is (S, N, d_model) and tgt (T, N, d_model), or with N first if batch_first; the
    result has tgt's shape. Raises RuntimeError for other sizes. See also
    generate_square_subsequent_mask(), for tgt_mask.

    d_model             size of an element
    nhead               heads of attention, which divide d_model
    num_encoder_layers  how many layers the encoder has
    num_decoder_layers  how many layers the decoder has
    dim_feedforward     size between the linear layers
    dropout             probability of dropout, in attention and after each part
    activation          between the linear layers: 'relu', 'gelu' or a function
    custom_encoder      a module in place of the TransformerEncoder that would be made
    custom_decoder      a module in place of the TransformerDecoder that would be made
    layer_norm_eps      eps of the LayerNorms, added to variances
    batch_first         take N as the first dimension, not as the second
    norm_first          normalize the input of each part instead of its sum
    bias                whether the linear layers, projections and LayerNorms have
                        biases

    >>> model = nn.Transformer(8, 2, 1, 1, 16)
    >>> model(torch.ones(3, 5, 8), torch.ones(4, 5, 8)).shape
    torch.Size([4, 5, 8])
    """

    def _make(
        self,
        *,
        num_encoder_layers: int,
        num_decoder_layers: int,
        custom_encoder: Any,
        custom_decoder: Any,
        **options: Any,
    ) -> None:
        super()._make()

        def norm() -> LayerNorm:
            names = ("bias", "device", "dtype")
            own = {name: options[name] for name in names}
            return LayerNorm(options["d_model"], options["layer_norm_eps"], **own)

        if custom_encoder is None:
            encoder = TransformerEncoderLayer(**options)
            custom_encoder = TransformerEncoder(encoder, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder = TransformerDecoderLayer(**options)
            custom_decoder = TransformerDecoder(decoder, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        for name in ("d_model", "nhead", "batch_first"):
            setattr(self, name, options[name])

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: Any = None
    ) -> Any:
        """A mask that leaves out the elements after each one: -inf above the diagonal.

        sz             rows and columns
        device, dtype  of the mask, the default ones if left out

        >>> nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """The decoder's result, of tgt's shape.

        src                      the source, (S, N, d_model), N first if batch_first, or
                                 without N
        tgt                      the target, (T, N, d_model) likewise
        src_mask                 (S, S) or (N * nhead, S, S): True leaves an element of
                                 src out for another, or numbers are added to scores
        tgt_mask                 (T, T) or (N * nhead, T, T): the same of tgt's elements
        memory_mask              (T, S) or (N * nhead, T, S): which of the encoder's
                                 elements each of tgt's takes
        src_key_padding_mask     (N, S): True leaves an element of src out for the
                                 encoder
        tgt_key_padding_mask     (N, T): True leaves an element of tgt out for all
        memory_key_padding_mask  (N, S): True leaves one out for the decoder
        src_is_causal            whether src_mask is causal; None: compare it, which
                                 waits for a GPU
        tgt_is_causal            whether tgt_mask is causal; None: compare it, which
                                 waits for a GPU
        memory_is_causal         say that memory_mask is causal, which saves time
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 == tgt.ndim and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(
                f"Transformer: src has {src.shape[batch]} sequences and tgt "
                f"{tgt.shape[batch]}; give as many of each (batch_first="
                f"{self.batch_first}: they are dimension {batch})"
            )
        for name, x in (("src", src), ("tgt", tgt)):
            if x.shape[-1] != self.d_model:
                raise RuntimeError(
                    f"Transformer: {name} has shape {[*x.shape]}; its last size has to "
                    f"be d_model, {self.d_model}"
                )
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
