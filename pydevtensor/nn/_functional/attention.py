"""Attention: weighted means of values, by how well keys fit queries."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._autocast import casts
from pydevtensor._functions import function
from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.dropout import dropout

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


def _check(
    query: Any, key: Any, value: Any, mask: Any, dropout_p: float, causal: bool
) -> None:
    tensors = {"query": query, "key": key, "value": value}
    shapes = ", ".join(f"{name} {[*t.shape]}" for name, t in tensors.items())
    if causal and mask is not None:
        raise RuntimeError(
            "is_causal=True and an attn_mask were given; give one of them"
        )
    if min(t.ndim for t in tensors.values()) < 2:
        raise RuntimeError(
            f"got {shapes}; give tensors of 2 dimensions or more, (..., length, size)"
        )
    if key.dtype != query.dtype or value.dtype != query.dtype:
        raise RuntimeError(
            f"query, key and value have types {query.dtype}, {key.dtype} and "
            f"{value.dtype}; convert them to one, e.g. with .to({query.dtype})"
        )
    if not query.is_floating_point():
        raise RuntimeError(
            f"not defined for tensors of type {query.dtype}; convert them "
            "first, e.g. with .float()"
        )
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise RuntimeError(
            f"got {shapes}; query and key need the same last size, key and "
            "value the same length, their last size but one"
        )
    if mask is not None and mask.dtype not in (_C.bool, _C.float32, query.dtype):
        raise RuntimeError(
            f"attn_mask has type {mask.dtype}; give bool, float32 or the "
            f"query's type, {query.dtype}"
        )
    if dropout_p > 1:
        raise RuntimeError(f"dropout_p is {dropout_p}; give 0 to 1")


def _groups(query: Any, key: Any, value: Any) -> tuple[Any, Any, int]:
    """Key and value, and how many heads of query share one of theirs."""
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise IndexError(
            "enable_gqa=True takes heads in dimension -3, but a tensor has 2 dimensions"
        )
    heads, key_heads, value_heads = (t.shape[-3] for t in (query, key, value))
    if not key_heads or not value_heads or heads % key_heads or heads % value_heads:
        raise RuntimeError(
            f"{heads} heads of query cannot share {key_heads} of key and "
            f"{value_heads} of value; give numbers that divide that of query"
        )
    if key_heads == value_heads:
        return key, value, heads // key_heads
    key = key.repeat_interleave(heads // key_heads, -3)
    return key, value.repeat_interleave(heads // value_heads, -3), 1


def _composed(
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    dropout_p: float,
    causal: bool,
    scale: float,
) -> Any:
    """The same by operations on the whole matrix of scores."""
    dtype = query.dtype
    if dtype in (_C.float16, _C.bfloat16):
        query, key, value = query.float(), key.float(), value.float()
    scores = query @ key.transpose(-2, -1) * scale
    counts = None
    if causal:
        size = scores.shape[-2:]
        counts = _C.ones(size, dtype=_C.bool, device=query.device).tril()
    elif mask is not None and mask.dtype == _C.bool:
        counts = mask
    elif mask is not None:
        scores, counts = scores + mask, mask != -math.inf
    if counts is not None:
        # A finite number, so that rows without a key have no NaN in their gradients.
        scores = _C.where(counts, scores, -1e30)
    shares = scores.softmax(-1)
    if counts is not None:
        shares = shares * counts
    if dropout_p > 0 and query.device.type == "cpu":
        shares = dropout(shares, dropout_p)
    elif dropout_p > 0:  # the kernels' mask: a call may be composed the next time alone
        shares = _C._attention_dropout(shares, value, dropout_p)
    return (shares @ value).to(dtype)


@function()
@casts(cpu="lower", cuda="lower")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(scale * query @ key.T + attn_mask) @ value, of shape (..., L, Ev).

    Leading dimensions broadcast. A query without a key gives zeros. RuntimeError for
    other shapes, types and masks.

    The scores are computed a tile of queries and keys at a time, and again in the
    backward pass, so memory grows with L and S, not with their product (Dao et al.,
    2022, "FlashAttention"). That needs a mask that requires no gradient, and on the CPU
    dropout_p=0.

    query       (..., L, E), floating
    key         (..., S, E), of query's type
    value       (..., S, Ev), of query's type
    attn_mask   broadcasts to (..., L, S): False leaves a key out, or numbers are added
    dropout_p   probability of a share to be zeroed, 0 to 1, whether in training or not
    is_causal   let query i take keys 0 to i; not with attn_mask
    scale       1 / sqrt(E) if it is None
    enable_gqa  let heads, dimension -3, of query share those of key and value, whose
                numbers divide query's

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    groups = 1
    if enable_gqa:
        key, value, groups = _groups(query, key, value)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    dropout_p = max(dropout_p, 0.0)
    composed = dropout_p > 0 and query.device.type == "cpu"
    if attn_mask is not None:
        composed = composed or attn_mask.requires_grad or attn_mask.ndim < 2
        leading = (query, key, value) if groups == 1 else (query,)
        batch = _C.broadcast_shapes(*(t.shape[:-2] for t in leading))
        scores = (*batch, query.shape[-2], key.shape[-2])
        try:
            composed = (
                composed or _C.broadcast_shapes(attn_mask.shape, scores) != scores
            )
        except RuntimeError:
            raise RuntimeError(
                f"attn_mask has shape {[*attn_mask.shape]}, which does not "
                f"broadcast to that of the scores, {[*scores]}"
            ) from None
    if not composed:
        return _C._attention(
            query, key, value, attn_mask, is_causal, scale, groups, dropout_p
        )
    if groups > 1:
        key = key.repeat_interleave(groups, -3)
        value = value.repeat_interleave(groups, -3)
    return _composed(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _check_inputs(query: Any, key: Any, value: Any, padding: Any, mask: Any) -> None:
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query has {query.ndim} dimensions; give (length, size), or (length, "
            "batch, size)"
        )
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(
            f"query, key and value have {query.ndim}, {key.ndim} and {value.ndim} "
            "dimensions; give them all with a batch, or none"
        )
    if padding is not None and padding.ndim != query.ndim - 1:
        raise AssertionError(
            f"key_padding_mask has {padding.ndim} dimensions; give one for each key"
            + (" of each sequence: (batch, keys)" if query.ndim == 3 else "")
        )
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(
            f"attn_mask has {mask.ndim} dimensions; give (length, keys), or (batch * "
            "heads, length, keys)"
        )


def _as_added(mask: Any, name: str, dtype: Any) -> Any:
    """A mask as numbers that are added: where a bool is True, -inf."""
    if mask is None:
        return None
    if mask.dtype == _C.bool:
        return _C.zeros_like(mask, dtype=dtype).masked_fill_(mask, -math.inf)
    if not mask.is_floating_point():
        raise AssertionError(
            f"{name} has type {mask.dtype}; give bool, with True for what is left "
            "out, or numbers that are added"
        )
    return mask


def _with_last(tensor: Any, added: Any) -> Any:
    return _C.cat([tensor, added.to(tensor.dtype)], 1)


def _static(name: str, given: Any, made: Any) -> Any:
    """The projected keys or values, or those that the caller has already."""
    if given is None:
        return made
    if given.shape[0] != made.shape[0] or given.shape[2] != made.shape[2]:
        raise AssertionError(
            f"{name} has shape {[*given.shape]}; give (batch * heads, keys, head "
            f"size), here ({made.shape[0]}, keys, {made.shape[2]})"
        )
    return given


def _projected(inputs: Any, weights: Any, bias: Any) -> Iterable[Any]:
    """query, key and value times a weight each, or times the three parts of one."""
    query, key, value = inputs
    if len(weights) == 3:
        return map(
            F.linear, inputs, weights, [None] * 3 if bias is None else bias.chunk(3)
        )
    if query is key and key is value:
        return F.linear(query, weights[0], bias).chunk(3, -1)
    sizes = [query.shape[-1], 2 * query.shape[-1]]
    first, others = weights[0].split(sizes)
    first_bias: Any = None
    others_bias: Any = None
    if bias is not None:
        first_bias, others_bias = bias.split(sizes)
    q = F.linear(query, first, first_bias)
    if key is value:
        return q, *F.linear(key, others, others_bias).chunk(2, -1)
    biases = [None] * 2 if bias is None else others_bias.chunk(2)
    return q, *map(F.linear, (key, value), others.chunk(2), biases)


def _check_sizes(
    query: Any, key: Any, value: Any, embed_dim: int, num_heads: int, separate: bool
) -> None:
    """Raise unless the sizes go together; separate: key and value have weights of their
    own, and may have other sizes."""
    batch, size = query.shape[1:]
    if size != embed_dim:
        raise AssertionError(
            f"the query's last size is {size}; the layer's embed_dim is {embed_dim}"
        )
    if not num_heads:
        raise ZeroDivisionError("num_heads is 0; give a divisor of embed_dim")
    if size % num_heads:
        raise AssertionError(f"embed_dim {size} is not divisible by {num_heads} heads")
    if key.shape[:2] != value.shape[:2] or (not separate and key.shape != value.shape):
        raise AssertionError(
            f"key has shape {[*key.shape]} and value {[*value.shape]}; their lengths "
            "and batches, and without kdim and vdim their sizes, have to be equal"
        )
    if key.shape[1] != batch:
        raise RuntimeError(
            f"query has a batch of {batch} and key one of {key.shape[1]}; give as many "
            "sequences of each (batch_first tells which dimension they are in)"
        )


def _check_masks(
    mask: Any, padding: Any, query: Any, keys: int, num_heads: int
) -> None:
    """Raise unless the masks have an element for each query and key."""
    length, batch = query.shape[:2]
    if mask is not None:
        wanted = (length, keys) if mask.ndim == 2 else (batch * num_heads, length, keys)
        if mask.shape != wanted:
            raise RuntimeError(
                f"attn_mask has shape {[*mask.shape]}; {length} queries and {keys} "
                f"keys take {[*wanted]}"
            )
    if padding is not None and padding.shape != (batch, keys):
        raise AssertionError(
            f"key_padding_mask has shape {[*padding.shape]}; give [{batch}, {keys}]: "
            "an element for each key of each sequence"
        )


def _with_added(pair: Any, biases: Any, zeros: bool) -> Any:
    """Keys and values of all heads, with those of biases and with zeros behind them."""
    heads, _, head_size = pair[0].shape
    if biases:
        rows = (bias.reshape(-1, 1, head_size) for bias in biases)
        pair = [
            _with_last(x, row.repeat(heads // len(row), 1, 1))
            for x, row in zip(pair, rows, strict=True)
        ]
    if zeros:
        none = pair[0].new_zeros((heads, 1, head_size))
        pair = [_with_last(x, none) for x in pair]
    return pair


def _merged(mask: Any, padding: Any, added: int, shape: tuple[int, ...]) -> Any:
    """A mask to add to scores of this shape, made of two, either of which may be None.

    The last keys, `added` of them, are masked by neither.
    """
    if added and mask is not None:
        mask = _C.cat([mask, mask.new_zeros((*mask.shape[:-1], added))], -1)
    if added and padding is not None:
        padding = _C.cat([padding, padding.new_zeros((*padding.shape[:-1], added))], -1)
    if mask is not None and mask.ndim == 3:
        mask = mask.reshape(shape)
    if padding is None:
        return mask
    padding = padding.reshape(shape[0], 1, 1, shape[-1])
    return padding if mask is None else mask + padding


@function()
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Attention of several heads between projections: see nn.MultiheadAttention.

    Returns the result, (L, N, E), and with need_weights the shares, (N, L, S), else
    None. AssertionError or RuntimeError for other shapes.

    query                         (L, N, E) or (L, E)
    key, value                    (S, N, E) or (S, E)
    embed_dim_to_check            E, the size that query has to have
    num_heads                     heads of attention, which divide E
    in_proj_weight                the three projections one below the other, (3 E, E)
    in_proj_bias                  their biases, (3 E), or None
    bias_k, bias_v                a key and a value to add, (1, 1, E), or None
    add_zero_attn                 add a key and a value of zeros
    dropout_p                     probability of dropout of the shares, in training
    out_proj_weight               the projection of the result, (E, E)
    out_proj_bias                 its bias, (E), or None
    training                      whether there is dropout
    key_padding_mask              (N, S): True leaves a key out, or numbers are added to
                                  its scores
    need_weights                  also give the shares, which takes more memory
    attn_mask                     (L, S) or (N * num_heads, L, S): True leaves a key out
                                  for a query, or numbers are added
    use_separate_proj_weight      project with the next three in place of in_proj_weight
    q_proj_weight                 (E, E)
    k_proj_weight, v_proj_weight  (E, last size of key), (E, last size of value)
    static_k, static_v            projected keys and values to use, (N * num_heads, S, E
                                  / num_heads)
    average_attn_weights          shares are means over the heads, else (N, num_heads,
                                  L, S)
    is_causal                     say that attn_mask is causal; RuntimeError without
                                  attn_mask

    >>> x, w = torch.ones(3, 1, 4), torch.ones(12, 4)
    >>> call = nn.functional.multi_head_attention_forward
    >>> y, shares = call(
    ...     x, x, x, 4, 2, w, None, None, None, False, 0.0, torch.eye(4), None
    ... )
    >>> y.shape, shares.shape
    (torch.Size([3, 1, 4]), torch.Size([1, 3, 3]))
    """
    _check_inputs(query, key, value, key_padding_mask, attn_mask)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "is_causal=True says that attn_mask is causal, but there is none; give "
            "one, e.g. of nn.Transformer.generate_square_subsequent_mask"
        )
    # A causal call that returns no shares does not need the mask.
    causal = is_causal and key_padding_mask is None and not need_weights
    padding = _as_added(key_padding_mask, "key_padding_mask", query.dtype)
    mask = None if causal else _as_added(attn_mask, "attn_mask", query.dtype)

    batched = query.ndim == 3
    if not batched:
        given = {id(x): x.unsqueeze(1) for x in (query, key, value)}
        query, key, value = (given[id(x)] for x in (query, key, value))
        padding = None if padding is None else padding.unsqueeze(0)
    length, batch, size = query.shape
    keys = key.shape[0]
    _check_sizes(
        query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight
    )
    head_size = size // num_heads

    weights: Any = (in_proj_weight,)
    if use_separate_proj_weight:
        weights = q_proj_weight, k_proj_weight, v_proj_weight
    if any(weight is None for weight in weights):
        raise AssertionError(
            "a weight is None; give in_proj_weight or, for use_separate_proj_weight, "
            "q_proj_weight, k_proj_weight and v_proj_weight"
        )
    q, k, v = _projected((query, key, value), weights, in_proj_bias)

    _check_masks(mask, padding, query, keys, num_heads)

    # (batch * heads, length, head size)
    q, k, v = (
        x.reshape(x.shape[0], batch * num_heads, head_size).transpose(0, 1)
        for x in (q, k, v)
    )
    k, v = _static("static_k", static_k, k), _static("static_v", static_v, v)
    has_biases = bias_k is not None and bias_v is not None
    k, v = _with_added((k, v), (bias_k, bias_v) if has_biases else (), add_zero_attn)
    shape = batch, num_heads, length, k.shape[1]
    mask = _merged(mask, padding, has_biases + add_zero_attn, shape)

    if not training:
        dropout_p = 0.0
    q, k, v = (x.reshape(batch, num_heads, -1, head_size) for x in (q, k, v))
    shares = None
    if need_weights:
        scores = (q * math.sqrt(1 / head_size)) @ k.transpose(-2, -1)
        shares = (scores if mask is None else scores + mask).softmax(-1)
        shares = dropout(shares, dropout_p) if dropout_p > 0 else shares
        out = shares @ v
    else:
        # Not the body here, so that vmap() and modes see the call.
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    out = out.permute(2, 0, 1, 3).reshape(length, batch, size)
    out = F.linear(out, out_proj_weight, out_proj_bias)
    if shares is not None and average_attn_weights:
        shares = shares.mean(1)
    if not batched:
        out = out.squeeze(1)
        shares = None if shares is None else shares.squeeze(0)
    return out, shares
