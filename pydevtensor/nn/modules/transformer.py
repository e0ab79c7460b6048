"""The Transformer and its layers (Vaswani et al., 2017, Attention Is All You Need)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.nn import functional as F
from pydevtensor.nn import init
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


class _Layer(Module):
    """Attention and two linear layers, with what the subclasses' parts share."""

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
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

    def _add(self, x: Any, norm: Any, part: Callable[[Any], Any]) -> Any:
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    def _attend(
        self,
        attention: Any,
        dropout: Any,
        x: Any,
        memory: Any,
        mask: Any,
        padding: Any,
        causal: bool,
    ) -> Any:
        memory = x if memory is None else memory
        out, _ = attention(
            x,
            memory,
            memory,
            attn_mask=mask,
            key_padding_mask=padding,
            is_causal=causal,
            need_weights=False,
        )
        return dropout(out)

    def _feed(self, dropout: Any, x: Any) -> Any:
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear layers, each with a residual and a LayerNorm.

    d_model: size of an element; nhead: heads of attention, which divide d_model;
    dim_feedforward: size between the linear layers; activation: 'relu', 'gelu' or a
    function; norm_first: normalize the input of each part instead of its sum. Inputs
    are (S, N, d_model), or (N, S, d_model) with batch_first. For masks see
    nn.MultiheadAttention. Raises RuntimeError for another activation, AssertionError
    for sizes that do not fit.

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
        x = self._add(
            src,
            self.norm1,
            lambda x: self._attend(
                self.self_attn,
                self.dropout1,
                x,
                None,
                src_mask,
                src_key_padding_mask,
                is_causal,
            ),
        )
        return self._add(x, self.norm2, lambda x: self._feed(self.dropout2, x))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to an encoder's result, and two linear layers.

    Arguments are those of nn.TransformerEncoderLayer. The target is (T, N, d_model) and
    the memory, the encoder's result, (S, N, d_model), or with N first if batch_first.

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
        x = self._add(
            tgt,
            self.norm1,
            lambda x: self._attend(
                self.self_attn,
                self.dropout1,
                x,
                None,
                tgt_mask,
                tgt_key_padding_mask,
                tgt_is_causal,
            ),
        )
        x = self._add(
            x,
            self.norm2,
            lambda x: self._attend(
                self.multihead_attn,
                self.dropout2,
                x,
                memory,
                memory_mask,
                memory_key_padding_mask,
                memory_is_causal,
            ),
        )
        return self._add(x, self.norm3, lambda x: self._feed(self.dropout3, x))


class TransformerEncoder(Module):
    """num_layers copies of encoder_layer, one after the other, then norm.

    The copies start with equal parameters. Where no gradient is computed, in evaluation
    with src_key_padding_mask, batch_first and no mask, elements of the padding are
    zeros before norm, as in PyTorch, unless enable_nested_tensor=False.

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


class Transformer(Module):
    """An encoder of the source and a decoder of the target that attends to it.

    The arguments of the layers are those of nn.TransformerEncoderLayer. src is (S, N,
    d_model) and tgt (T, N, d_model), or with N first if batch_first; the result has
    tgt's shape. Raises RuntimeError for other sizes.

    >>> model = nn.Transformer(8, 2, 1, 1, 16)
    >>> model(torch.ones(3, 5, 8), torch.ones(4, 5, 8)).shape
    torch.Size([4, 5, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        given = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

        def norm() -> LayerNorm:
            return LayerNorm(
                d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype
            )

        if custom_encoder is None:
            encoder = TransformerEncoderLayer(*given)
            custom_encoder = TransformerEncoder(encoder, num_encoder_layers, norm())
        self.encoder = custom_encoder
        if custom_decoder is None:
            decoder = TransformerDecoderLayer(*given)
            custom_decoder = TransformerDecoder(decoder, num_decoder_layers, norm())
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Any = None, dtype: Any = None
    ) -> Any:
        """A mask that leaves out the elements after each one: -inf above the diagonal.

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
