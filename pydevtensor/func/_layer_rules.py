"""Batching rules of layers, losses and random numbers: see _rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C
from pydevtensor.func import _batched
from pydevtensor.func._batched import each, full, is_batched, state, wrap
from pydevtensor.func._rules import (
    _aligned,
    _Arguments,
    _rule,
    _wrapped,
    elementwise,
)

Tensor = _C.Tensor

# --- layers ---------------------------------------------------------------------------


def _folded(spatial: int | None) -> Callable[..., Any]:
    """Functions of a batch of their own, which joins the other one.

    spatial: the dimensions behind batch and channels; None: what input.ndim says.
    """

    def rule(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        x = args[0]
        if not is_batched(x, level) or any(
            is_batched(y, level) for y in (*args[1:], *kwargs.values())
        ):
            return each(level, func, args, kwargs)
        if spatial is not None and x.ndim == spatial + 1:
            return _wrapped(func(x.value, *args[1:], **kwargs), level)
        sizes = [*x.value.shape][:2]
        made = func(x.value.flatten(0, 1), *args[1:], **kwargs)
        return _batched.map_tensors(lambda y: wrap(y.unflatten(0, sizes), level), made)

    return rule


for _n in (1, 2, 3):
    for _kind in ("max", "avg", "adaptive_max", "adaptive_avg", "lp"):
        for _end in ("", "_with_indices"):
            _rule(f"{_kind}_pool{_n}d{_end}")(_folded(_n))
_rule("interpolate", "upsample", "pixel_shuffle", "pixel_unshuffle")(_folded(None))
_rule("instance_norm", "local_response_norm", "channel_shuffle")(_folded(None))


@_rule("conv1d", "conv2d", "conv3d")
@_rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _convolution(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, w, b = args[0], a.get("weight"), a.get("bias")
    spatial = w.ndim - 2
    if x.ndim == spatial + 1:
        made = func(x.unsqueeze(0), *a.args[1:], **kwargs)
        return made.squeeze(0)
    size = state.sizes[level - 1]
    if not is_batched(w, level) and not is_batched(b, level):
        made = a.run(x.value.flatten(0, 1))
        return wrap(made.unflatten(0, [size, x.shape[0]]), level)
    # Elements with weights of their own are groups.
    value = full(x, level).transpose(0, 1).flatten(1, 2)
    a.set("weight", full(w, level).flatten(0, 1))
    a.set("bias", None if b is None else full(b, level).flatten())
    a.set("groups", size * a.get("groups", 1))
    made = a.run(value)
    return wrap(made.unflatten(1, [size, -1]).transpose(0, 1), level)


@_rule("layer_norm", "rms_norm")
def _layer_norm(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, w, b = args[0], a.get("weight"), a.get("bias")
    if not is_batched(x, level):
        return each(level, func, args, kwargs)
    if not is_batched(w, level) and not is_batched(b, level):
        return wrap(a.run(x.value), level)
    a.set("weight", None)
    if b is not None:
        a.set("bias", None)
    made: Any = wrap(a.run(x.value), level)
    made = made if w is None else made * w
    return made if b is None else made + b


@_rule("group_norm")
def _group_norm(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, w, b = args[0], a.get("weight"), a.get("bias")
    shape = [-1, *[1] * (x.ndim - 2)]
    made = _folded(None)(
        level, func, (x, a.get("num_groups")), {"eps": a.get("eps", 1e-5)}
    )
    made = made if w is None else made * w.reshape(shape)
    return made if b is None else made + b.reshape(shape)


@_rule("batch_norm")
def _batch_norm(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, w, b = args[0], a.get("weight"), a.get("bias")
    mean, var = a.get("running_mean"), a.get("running_var")
    shape = [-1, *[1] * (x.ndim - 2)]
    if not a.get("training"):
        made = (x - mean.reshape(shape)) * (var + a.get("eps", 1e-5)).rsqrt().reshape(
            shape
        )
    elif mean is not None or not is_batched(x, level):
        raise _batched.Concrete("vmap(): batch_norm() that keeps statistics")
    else:
        size = state.sizes[level - 1]
        value = x.value.transpose(0, 1).flatten(1, 2)
        value = func(value, None, None, training=True, eps=a.get("eps", 1e-5))
        made = wrap(value.unflatten(1, [size, -1]).transpose(0, 1), level)
    made = made if w is None else made * w.reshape(shape)
    return made if b is None else made + b.reshape(shape)


@_rule("scaled_dot_product_attention")
def _attention(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    if a.get("dropout_p"):
        return each(level, func, args, kwargs)
    mask = a.get("attn_mask")
    ndim = max(x.ndim for x in args[:3])
    if is_batched(mask, level):
        a.set("attn_mask", _aligned(mask, level, ndim))
    return wrap(a.run(*(full(x, level) for x in args[:3])), level)


@_rule("dropout", "alpha_dropout", "bernoulli", "rand_like", "randn_like", "poisson")
@_rule("bernoulli_", "uniform_", "normal_", "exponential_", "random_", "randint_like")
def _random(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    named = func.__name__ in ("dropout", "alpha_dropout")
    a = _Arguments(func, args, kwargs)
    if named and not (a.get("training", True) and a.get("p", 0.5)):
        return elementwise(level, func, args, kwargs)
    return state.draws[level - 1].batched(
        lambda: elementwise(level, func, args, kwargs)
    )


# --- losses ---------------------------------------------------------------------------


def _reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else getattr(loss, reduction)()


@_rule("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss")
@_rule("binary_cross_entropy", "binary_cross_entropy_with_logits", "poisson_nll_loss")
def _loss(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    reduction = a.get("reduction", "mean")
    if a.get("size_average") is not None or a.get("reduce") is not None:
        return each(level, func, args, kwargs)
    a.set("reduction", "none")
    for name in ("input", "target"):  # of one shape, or the function warns
        a.set(name, wrap(full(a.get(name), level), level))
    return _reduced(elementwise(level, func, a.args, a.kwargs), reduction)


@_rule("kl_div")
def _kl_div(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    reduction = a.get("reduction", "mean")
    a.set("reduction", "none")
    loss = elementwise(level, func, a.args, a.kwargs)
    if reduction == "batchmean":
        return loss.sum() / args[0].shape[0]
    return _reduced(loss, reduction)


@_rule("cross_entropy", "nll_loss")
def _cross_entropy(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, target, weight = args[0], a.get("target"), a.get("weight")
    reduction = a.get("reduction", "mean")
    old = a.get("size_average") is not None or a.get("reduce") is not None
    if is_batched(weight, level) or old:
        return each(level, func, args, kwargs)
    kinds = target.is_floating_point()
    values = [full(x, level), full(target, level)]
    if x.ndim > 1:
        sizes = [*values[0].shape][:2]
        values = [v.flatten(0, 1) for v in values]
    a.set("reduction", "none")
    a.set("target", values[1])
    loss = a.run(values[0])
    loss = loss.unflatten(0, sizes) if x.ndim > 1 else loss
    made: Any = wrap(loss, level)
    if reduction != "mean":
        return _reduced(made, reduction)
    if kinds:
        return made.mean()
    ignored = target == a.get("ignore_index", -100)
    counted = (~ignored).to(x.dtype)
    if weight is not None:
        counted = counted * weight[target.masked_fill(ignored, 0)]
    return made.sum() / counted.sum()


@_rule("pad")
def _pad(level: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    a = _Arguments(func, args, kwargs)
    x, mode = args[0], a.get("mode", "constant")
    if mode == "constant":
        return wrap(a.run(x.value), level)
    return _folded(len(a.get("pad")) // 2)(level, func, args, kwargs)
