"""Attention of several heads."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import functional as F
from pydevtensor.nn import init
from pydevtensor.nn.modules._layer import Parametrized, explain
from pydevtensor.nn.modules.linear import NonDynamicallyQuantizableLinear

__all__ = ["MultiheadAttention"]


class MultiheadAttention(
    Parametrized,
    takes="embed_dim: int, num_heads: int, dropout, bias, add_bias_kv: bool = False, "
    "add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, "
    "batch_first, device, dtype",
):
    """Attention of num_heads heads, each on embed_dim / num_heads of the sizes.

    query, key and value are projected, each head computes softmax(q k^T / sqrt(size))
    v, and the results, side by side, are projected again. Inputs are (L, N, embed_dim),
    (S, N, kdim) and (S, N, vdim), with N first if batch_first, or without N. Raises
    AssertionError or RuntimeError for inputs and masks of other shapes. See also
    nn.functional.scaled_dot_product_attention(), without projections.

    embed_dim      last size of query and of the result
    num_heads      how many heads there are; AssertionError unless it divides embed_dim
    dropout        probability of dropout of the weights
    bias           whether the projections have biases
    add_bias_kv    add a key and a value that are learned to those of each sequence
    add_zero_attn  add a key and a value of zeros
    kdim, vdim     last sizes of key and value, embed_dim by default
    batch_first    take (N, length, size) in place of (length, N, size)

    >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.ones(5, 3, 8)
    >>> y, shares = attention(x, x, x)
    >>> y.shape, shares.shape
    (torch.Size([5, 3, 8]), torch.Size([5, 3, 3]))
    """

    def _make(self, **options: Any) -> None:
        embed_dim, num_heads = options["embed_dim"], options["num_heads"]
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"MultiheadAttention: embed_dim is {embed_dim} and num_heads "
                f"{num_heads}; give positive numbers"
            )
        if embed_dim % num_heads:
            raise AssertionError(
                f"MultiheadAttention: embed_dim {embed_dim} is not divisible by "
                f"num_heads {num_heads}"
            )
        made = {"device": options["device"], "dtype": options["dtype"]}
        bias = options["bias"]
        added = (1, 1, embed_dim) if options.pop("add_bias_kv") else None
        for name in ("kdim", "vdim"):
            options[name] = embed_dim if options[name] is None else options[name]
        super()._make(**options)
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.head_dim: int = embed_dim // num_heads
        sizes: dict[str, tuple[int, ...] | None] = dict.fromkeys(
            ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
        )
        if self._qkv_same_embed_dim:
            sizes["in_proj_weight"] = 3 * embed_dim, embed_dim
        else:
            sizes["q_proj_weight"] = embed_dim, embed_dim
            sizes["k_proj_weight"] = embed_dim, self.kdim
            sizes["v_proj_weight"] = embed_dim, self.vdim
        sizes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        self._add({**sizes, "bias_k": added, "bias_v": added}, **made)
        self.out_proj: NonDynamicallyQuantizableLinear = (
            NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, **made)
        )
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj", "q_proj", "k_proj", "v_proj"):
            weight = getattr(self, f"{name}_weight")
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """The result, of query's shape, and with need_weights the shares of the keys.

        query, key, value     (L, N, embed_dim), (S, N, kdim) and (S, N, vdim), or N
                              first if batch_first, or without N
        key_padding_mask      (N, S): True leaves a key out, or numbers are added to its
                              scores
        need_weights          also give the shares, else None, which is faster
        attn_mask             (L, S) or (N * num_heads, L, S): True leaves a key out for
                              a query, or numbers are added
        average_attn_weights  shares (N, L, S), the means over the heads, else (N,
                              num_heads, L, S)
        is_causal             say that attn_mask is causal, which saves time;
                              RuntimeError without attn_mask
        """
        turned = self.batch_first and getattr(query, "ndim", 0) == 3
        try:
            if turned:
                # The same tensor again stays one tensor: it is projected once.
                made = {id(t): t.transpose(0, 1) for t in (query, key, value)}
                query, key, value = (made[id(t)] for t in (query, key, value))
            out, shares = F.multi_head_attention_forward(
                query,
                key,
                value,
                self.embed_dim,
                self.num_heads,
                self.in_proj_weight,
                self.in_proj_bias,
                self.bias_k,
                self.bias_v,
                self.add_zero_attn,
                self.dropout,
                self.out_proj.weight,
                self.out_proj.bias,
                self.training,
                key_padding_mask,
                need_weights,
                attn_mask,
                not self._qkv_same_embed_dim,
                self.q_proj_weight,
                self.k_proj_weight,
                self.v_proj_weight,
                average_attn_weights=average_attn_weights,
                is_causal=is_causal,
            )
        except Exception as error:
            explain(self, error, query=query, key=key, value=value)
            raise
        return out.transpose(0, 1) if turned else out, shares
