"""Records of functions of nn.functional with many options."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import finfo
from pydevtensor.onnx._records import Arguments, record, refused
from pydevtensor.onnx._writer import Ref, Writer, values

# --- convolutions and pooling


def pair(value: Any, count: int) -> list[int]:
    """A number for each of the dimensions."""
    return [value] * count if isinstance(value, int) else list(value)


@record("conv1d", "conv2d", "conv3d", by_name=True)
def _conv(w: Writer, y: Any, a: Arguments) -> Any:
    n = a.weight.dim() - 2
    if y.dim() != n + 2:
        raise refused("a convolution without a dimension of batches")
    size, steps = list(a.weight.shape[2:]), pair(a.dilation, n)
    if a.padding == "same":
        whole = [(k - 1) * d for k, d in zip(size, steps, strict=True)]
        pads = [p // 2 for p in whole] + [p - p // 2 for p in whole]
    else:
        pads = pair(0 if a.padding == "valid" else a.padding, n) * 2
    given = [a.input, a.weight] + ([] if a.bias is None else [a.bias])
    return w.put(
        "Conv",
        *given,
        kernel_shape=size,
        strides=pair(a.stride, n),
        pads=pads,
        dilations=steps,
        group=a.groups,
    )


def _window(y: Any, a: Arguments) -> dict[str, Any]:
    n = y.dim() - 2
    return {
        "kernel_shape": pair(a.kernel_size, n),
        "strides": pair(a.kernel_size if a.stride is None else a.stride, n),
        "pads": pair(a.padding, n) * 2,
        "ceil_mode": int(a.ceil_mode),
    }


@record("max_pool1d", "max_pool2d", "max_pool3d", by_name=True)
def _max_pool(w: Writer, y: Any, a: Arguments) -> Any:
    if a.return_indices:
        raise refused("indices of max_pool()")
    steps = pair(a.dilation, y.dim() - 2)
    return w.put("MaxPool", a.input, dilations=steps, **_window(y, a))


@record("avg_pool1d", "avg_pool2d", "avg_pool3d", by_name=True)
def _avg_pool(w: Writer, y: Any, a: Arguments) -> Any:
    if a.divisor_override is not None:
        raise refused("avg_pool() with divisor_override")
    padded = int(a.count_include_pad)
    return w.put("AveragePool", a.input, count_include_pad=padded, **_window(y, a))


for _name, _op in (("avg", "Average"), ("max", "Max")):

    @record(*(f"adaptive_{_name}_pool{n}d" for n in (1, 2, 3)))
    def _adaptive(
        w: Writer, y: Any, x: Any, output_size: Any, *u: Any, op: str = _op
    ) -> Any:
        into, out = x.shape[2:], tuple(y.shape[2:])
        if all(size == 1 for size in out):
            return w.put(f"Global{op}Pool", x)
        if any(a % b for a, b in zip(into, out, strict=True)):
            raise refused(f"adaptive pooling from {into} to {out}, no multiples")
        size = [a // b for a, b in zip(into, out, strict=True)]
        return w.put(f"{op}Pool", x, kernel_shape=size, strides=size)


# --- normalization


@record("batch_norm", by_name=True)
def _batch_norm(w: Writer, y: Any, a: Arguments) -> Any:
    mean, var = a.running_mean, a.running_var
    if a.training or mean is None:
        raise refused("batch_norm() without running statistics")
    weight = torch.ones_like(mean) if a.weight is None else a.weight
    bias = torch.zeros_like(mean) if a.bias is None else a.bias
    return w.put("BatchNormalization", a.input, weight, bias, mean, var, epsilon=a.eps)


@record("layer_norm", by_name=True)
def _layer_norm(w: Writer, y: Any, a: Arguments) -> Any:
    shape = a.normalized_shape
    weight = torch.ones(shape, dtype=y.dtype) if a.weight is None else a.weight
    if w.version < 17:
        axes = [*range(-len(shape), 0)]
        rest = w.put("Sub", a.input, w.reduce("ReduceMean", a.input, axes, True))
        found = w.put("Mul", _normed(w, rest, axes, w.of(a.eps, y.dtype)), weight)
        return found if a.bias is None else w.put("Add", found, a.bias)
    given = [a.input, weight] + ([] if a.bias is None else [a.bias])
    return w.put("LayerNormalization", *given, axis=-len(shape), epsilon=a.eps)


def _normed(w: Writer, x: Any, axes: list[int], least: str) -> Any:
    """x divided by its root mean square over the axes."""
    mean = w.reduce("ReduceMean", w.put("Mul", x, x), axes, True)
    return w.put("Div", x, w.put("Sqrt", w.put("Add", mean, least)))


@record("rms_norm", by_name=True)
def _rms_norm(w: Writer, y: Any, a: Arguments) -> Any:
    axes = [*range(-len(a.normalized_shape), 0)]
    least = w.of(finfo(y.dtype).eps if a.eps is None else a.eps, y.dtype)
    found = _normed(w, a.input, axes, least)
    return found if a.weight is None else w.put("Mul", found, a.weight)


@record("group_norm", by_name=True)
def _group_norm(w: Writer, y: Any, a: Arguments) -> Any:
    rows = w.put("Reshape", a.input, w.ints([0, a.num_groups, -1]))
    one = torch.ones(a.num_groups, dtype=y.dtype)
    zero = torch.zeros_like(one)
    found = w.put("InstanceNormalization", rows, one, zero, epsilon=a.eps)
    found = w.put("Reshape", found, w.ints([-1, *y.shape[1:]]))
    return scaled(w, found, a.weight, a.bias, y.dim())


def scaled(w: Writer, x: Any, weight: Any, bias: Any, dims: int) -> Any:
    """x times a weight plus a bias, of one element for each channel, or None."""
    for op, part in (("Mul", weight), ("Add", bias)):
        if part is not None:
            x = w.put(op, x, part.reshape([-1] + [1] * (dims - 2)))
    return x


# --- images, padding, classes


@record("interpolate", by_name=True)
def _interpolate(w: Writer, y: Any, a: Arguments) -> Any:
    mode = a.mode
    kinds = {"nearest": "nearest", "bicubic": "cubic"}
    kinds |= dict.fromkeys(("linear", "bilinear", "trilinear"), "linear")
    if mode not in kinds:
        raise refused(f"interpolate() with mode={mode!r}")
    where = "half_pixel" if mode != "nearest" else "asymmetric"
    sizes = zip(a.input.shape[2:], y.shape[2:], strict=True)
    return w.put(
        "Resize",
        a.input,
        "",
        torch.tensor([1.0, 1.0, *(new / old for old, new in sizes)]),
        mode=kinds[mode],
        coordinate_transformation_mode="align_corners" if a.align_corners else where,
        nearest_mode="floor" if mode == "nearest" else None,
        cubic_coeff_a=-0.75 if mode == "bicubic" else None,
    )


@record("pixel_shuffle")
def _pixel_shuffle(w: Writer, y: Any, x: Any, factor: int) -> Any:
    return w.put("DepthToSpace", x, blocksize=factor, mode="CRD")


@record("pad", by_name=True)
def _pad(w: Writer, y: Any, a: Arguments) -> Any:
    ends = [[0] * y.dim(), [0] * y.dim()]
    for i, size in enumerate(a.pad):
        ends[i % 2][-1 - i // 2] = size
    words = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    words["circular"] = "wrap"
    fill = [w.of(a.value or 0, y.dtype)] if a.mode == "constant" else []
    return w.put("Pad", a.input, w.ints(ends[0] + ends[1]), *fill, mode=words[a.mode])


@record("one_hot")
def _one_hot(w: Writer, y: Any, x: Any, num_classes: int = -1) -> Any:
    ends = torch.tensor([0, 1])
    return w.put("OneHot", x, w.of(y.shape[-1], torch.int64), ends)


@record("embedding")
def _embedding(w: Writer, y: Any, x: Any, weight: Any, *unused: Any) -> Any:
    return w.put("Gather", weight, x)


# --- attention


@record("scaled_dot_product_attention", by_name=True)
def _attention(w: Writer, y: Any, a: Arguments) -> Any:
    if a.enable_gqa:
        raise refused("scaled_dot_product_attention() with enable_gqa")
    factor = a.query.shape[-1] ** -0.5 if a.scale is None else a.scale
    scores = w.call("matmul", a.query, w.call("transpose", a.key, -2, -1))
    mask = a.attn_mask
    if a.is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    scores = masked(w, w.call("mul", scores, factor), mask, hides=False)
    return w.put("MatMul", w.put("Softmax", scores, axis=-1), a.value)


def masked(w: Writer, scores: Any, mask: Any, hides: bool) -> Any:
    """Scores of attention with a mask: numbers to add, or bools, or None.

    hides  whether True hides an element; else False does
    """
    if mask is None:
        return scores
    dtype = scores.value.dtype
    if values(mask).dtype == torch.bool:
        sums = [w.of(float("-inf"), dtype), w.of(0, dtype)]
        mask = w.put("Where", mask, *(sums if hides else sums[::-1]))
    return Ref(w.put("Add", scores, mask), scores.value)
