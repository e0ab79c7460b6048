"""Attention whose scores and masks are functions of indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from pydevtensor import _C, cuda
from pydevtensor._C import Tensor
from pydevtensor._names import give as _give
from pydevtensor._names import publish as _publish
from pydevtensor.func._vmap import vmap
from pydevtensor.nn import functional as F
from pydevtensor.nn.attention._block_mask import BlockMask, blocks_of, noop_mask, pair

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks"]
__all__ += ["create_block_mask", "create_mask", "flex_attention", "noop_mask"]
__all__ += ["or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexKernelOptions(dict[str, Any]):
    """Options of PyTorch's kernels, such as BLOCK_M, which have no effect here.

    >>> nn.attention.flex_attention.FlexKernelOptions(BLOCK_M=64)
    {'BLOCK_M': 64}
    """


class AuxRequest(NamedTuple):
    """Asks flex_attention() for values beside its result.

    lse: the logarithm of the sum of each query's exponentials. max_scores: each
    query's largest score.

    >>> nn.attention.flex_attention.AuxRequest(lse=True)
    AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The values that an AuxRequest asked for, each (B, H, L) or None.

    >>> nn.attention.flex_attention.AuxOutput()
    AuxOutput(lse=None, max_scores=None)
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _combined(name: str, masks: tuple[Any, ...], join: Any, start: bool) -> Any:
    if not all(map(callable, masks)):
        raise RuntimeError(
            f"{name}(): got {masks}; give functions of (batch, head, query, key)"
        )

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=_C.bool)
        for each in masks:
            result = join(result, each(b, h, q_idx, kv_idx))
        return result

    return mask


def and_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mask_mod that lets a pair count where all of mask_mods do.

    RuntimeError for what is not callable.

    >>> flex = nn.attention.flex_attention
    >>> near = flex.and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i - j < 2)
    >>> flex.create_mask(near, None, None, 3, 3, device='cpu')[0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """
    return _combined("and_masks", mask_mods, lambda a, b: a & b, True)


def or_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mask_mod that lets a pair count where one of mask_mods does.

    RuntimeError for what is not callable.

    >>> flex = nn.attention.flex_attention
    >>> mask = flex.or_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: j < 2)
    >>> flex.create_mask(mask, None, None, 2, 3, device='cpu')[0, 0].int()
    tensor([[1, 1, 0],
            [1, 1, 0]], dtype=torch.int32)
    """
    return _combined("or_masks", mask_mods, lambda a, b: a | b, False)


def _over_indices(function: Callable[..., Any], before: int) -> Callable[..., Any]:
    """A function of four index vectors, by one of four indices: its (B, H, L, S).

    before: how many Tensors of that shape come before the indices.
    """
    for place in (3, 2, 1, 0):
        dims = [None] * 4
        dims[place] = 0  # type: ignore[call-overload]
        function = vmap(function, (0,) * before + tuple(dims))
    return function


def _indices(shape: Any, device: Any) -> list[Any]:
    return [_C.arange(n, dtype=_C.int32, device=device) for n in shape]


def _masked(mask_mod: Any, shape: tuple[int, ...], device: Any) -> Any:
    """The answer of mask_mod for each pair."""
    if not all(shape):
        return _C.empty(shape, dtype=_C.bool, device=device)
    return _over_indices(mask_mod, 0)(*_indices(shape, device))


def _parameters(function: Any) -> int:
    from inspect import Parameter, signature

    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    found = signature(function).parameters.values()
    return sum(p.kind in kinds and p.default is Parameter.empty for p in found)


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask of a function as a bool Tensor (B, H, Q_LEN, KV_LEN), True for what
    counts.

    mod_fn  a mask_mod of (b, h, q_idx, kv_idx), or a score_mod of (score, b, h, q_idx,
            kv_idx), whose -inf is False; AssertionError for other numbers of parameters
    B, H    the batch and the number of heads, 1 if they are None
    Q_LEN   the number of queries
    KV_LEN  the number of keys
    device  a GPU if there is one, else the CPU, if it is None

    >>> flex = nn.attention.flex_attention
    >>> flex.create_mask(lambda b, h, i, j: i >= j, None, None, 2, 2, device='cpu')
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    count = _parameters(mod_fn)
    if count not in (4, 5):
        raise AssertionError(
            f"create_mask(): the function has {count} parameters; give one of (b, h, "
            "q_idx, kv_idx) or (score, b, h, q_idx, kv_idx)"
        )
    if device is None:
        device = "cuda" if cuda.is_available() else "cpu"
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if count == 4:
        return _masked(mod_fn, shape, device)
    scores = _C.zeros(shape, device=device)
    made = _over_indices(mod_fn, 1)(scores, *_indices(shape, device))
    result: Tensor = made != -math.inf
    return result


def create_block_mask(
    mask_mod: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The BlockMask of a mask_mod, for flex_attention().

    mask_mod              a function of (b, h, q_idx, kv_idx), Tensors without
                          dimensions, that gives a bool Tensor, True for what counts
    B, H                  None for a mask that is the same for all
    Q_LEN, KV_LEN         the numbers of queries and keys
    device                that of create_mask()
    BLOCK_SIZE            of a block: one number, or that of queries and that of keys
    separate_full_blocks  list blocks of which all counts on their own
    compute_dq_write_order, dq_kv_order  for a kernel of PyTorch's, without effect

    AssertionError for a mask_mod of other parameters, or that gives no bools.

    >>> flex = nn.attention.flex_attention
    >>> causal = lambda b, h, q_idx, kv_idx: q_idx >= kv_idx
    >>> flex.create_block_mask(causal, None, None, 512, 512, device='cpu').sparsity()
    37.5
    """
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    if mask.dtype != _C.bool:
        raise AssertionError(
            f"create_block_mask(): mask_mod gives {mask.dtype}; give comparisons, "
            "which are bool"
        )
    sizes = pair(BLOCK_SIZE)
    return blocks_of(mask, sizes, mask_mod, separate_full_blocks)


def _check(q: Tensor, k: Tensor, v: Tensor, mask: BlockMask | None, gqa: bool) -> None:
    shapes = f"query {[*q.shape]}, key {[*k.shape]}, value {[*v.shape]}"
    if not q.ndim == k.ndim == v.ndim == 4:
        raise NotImplementedError(f"{shapes}; give (batch, heads, length, size)")
    if not q.device == k.device == v.device:
        raise ValueError(
            f"query is on {q.device}, key on {k.device} and value on {v.device}; move "
            "them to one device with .to()"
        )
    if not q.is_floating_point():
        raise RuntimeError(f"query has type {q.dtype}; convert it, e.g. with .float()")
    if q.shape[3] != k.shape[3]:
        raise ValueError(f"{shapes}; query and key need the same last size")
    if k.shape[:3] != v.shape[:3]:
        raise RuntimeError(
            f"{shapes}; key and value need the same batch, heads, length"
        )
    if q.shape[0] != k.shape[0]:
        batch = None if mask is None else mask.kv_num_blocks.shape[0]
        if batch != q.shape[0] or k.shape[0] != 1:
            raise ValueError(
                f"{shapes}; give one batch. A batch of 1 of key and value is shared "
                f"where block_mask has that of query, B={q.shape[0]}"
            )
    heads, shared = q.shape[1], k.shape[1]
    if not gqa and heads != shared:
        raise ValueError(
            f"{shapes}; give as many heads, or enable_gqa=True, which lets heads of "
            "query share those of key and value"
        )
    if gqa and (not shared or heads % shared):
        raise ValueError(
            f"{shapes}; {heads} heads of query cannot share {shared} of key and value; "
            "give a number that divides it"
        )
    if mask is not None and mask.shape[-2:] != (q.shape[2], k.shape[2]):
        raise ValueError(
            f"block_mask is for {mask.shape[-2]} queries and {mask.shape[-1]} keys; "
            f"there are {q.shape[2]} and {k.shape[2]}; make one with "
            f"create_block_mask(mask_mod, B, H, {q.shape[2]}, {k.shape[2]})"
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(scale * query @ key.T)) @ value, of shape (B, H, L, Ev).

    score_mod and mask_mod run once, by vmap(), on all scores and indices. Without a
    score_mod it is scaled_dot_product_attention(), whose memory does not grow with L *
    S but for the mask; with one it is operations on the whole matrix of scores, in
    float32, or in float64 for a query of float64. A query without a key gives zeros.
    Gradients lead to query, key and value, and to what score_mod captures, on the CPU
    too.

    query           (B, H, L, E), floating
    key             (B, H, S, E), or of fewer heads with enable_gqa
    value           (B, H, S, Ev), with the heads of key
    score_mod       a function of (score, b, h, q_idx, kv_idx), Tensors without
                    dimensions, that gives the score to use
    block_mask      of create_block_mask(): its mask_mod says which pairs count
    scale           1 / sqrt(E) if it is None
    enable_gqa      let heads of query share those of key and value, whose number
                    divides query's
    return_lse      return also the logarithm of the sum of exponentials, (B, H, L),
                    -inf for a query without a key
    kernel_options  has no effect
    return_aux      return also an AuxOutput with what this asks for; not with
                    return_lse

    NotImplementedError for other than 4 dimensions, ValueError for sizes and devices
    that do not fit, and for a block_mask of other lengths.

    >>> flex = nn.attention.flex_attention
    >>> x = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    >>> causal = lambda b, h, q_idx, kv_idx: q_idx >= kv_idx
    >>> mask = flex.create_block_mask(causal, None, None, 2, 2, device='cpu')
    >>> flex.flex_attention(x, x, x, block_mask=mask)
    tensor([[[[1.0000, 0.0000],
              [0.3302, 0.6698]]]])
    >>> flex.flex_attention(x, x, x, score_mod=lambda s, b, h, i, j: 2 * s)
    tensor([[[[0.8044, 0.1956],
              [0.1956, 0.8044]]]])
    """
    if return_lse and return_aux is not None:
        raise ValueError(
            "flex_attention(): return_lse and return_aux were given; give return_aux="
            "AuxRequest(lse=True)"
        )
    _check(query, key, value, block_mask, enable_gqa)
    key, value = key.to(query.dtype), value.to(query.dtype)
    groups = query.shape[1] // key.shape[1] if enable_gqa else 1
    shape = (*query.shape[:3], key.shape[2])
    counts = None
    if block_mask is not None:
        counts = _masked(block_mask.mask_mod, shape, query.device)
    if score_mod is None and not return_lse and return_aux is None:
        key, value = (x.expand(query.shape[0], -1, -1, -1) for x in (key, value))
        return F.scaled_dot_product_attention(
            query, key, value, counts, scale=scale, enable_gqa=groups > 1
        )
    if groups > 1:
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    if scale is None:
        scale = 1 / math.sqrt(query.shape[3]) if query.shape[3] else 1.0
    working = _C.float64 if query.dtype == _C.float64 else _C.float32
    scores = query.to(working) @ key.to(working).mT * scale
    if score_mod is not None and scores.numel():
        places = _indices(shape, query.device)
        scores = _over_indices(score_mod, 1)(scores, *places).to(working)
    if counts is not None:
        scores = scores.masked_fill(~counts, -math.inf)
    # Rows without a key: finite, so that their gradients are no NaN.
    empty = (scores == -math.inf).all(-1)
    filled = scores.masked_fill(empty[..., None], 0.0)
    shares = filled.softmax(-1).masked_fill(empty[..., None], 0.0)
    out = shares.to(query.dtype) @ value
    if not return_lse and return_aux is None:
        return out
    asked = AuxRequest(lse=True) if return_aux is None else return_aux
    lse = largest = None
    if asked.lse:
        lse = filled.logsumexp(-1).masked_fill(empty, -math.inf)
    if asked.max_scores and shape[3]:
        largest = scores.detach().amax(-1)
    return (out, lse) if return_lse else (out, AuxOutput(lse, largest))


_give(__name__, BlockMask)
_publish(__name__)
