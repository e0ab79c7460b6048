"""How functions of nn are written: convolutions, pooling, normalization."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C, finfo
from pydevtensor.onnx._records import record, refused
from pydevtensor.onnx._writer import Writer, pair


def _spatial(y: Any) -> int:
    return int(y.dim()) - 2


@record("conv1d", "conv2d", "conv3d")
def _conv(
    w: Writer,
    y: Any,
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    n = weight.dim() - 2
    if y.dim() != n + 2:
        raise refused("a convolution without a dimension of batches")
    size, steps = list(weight.shape[2:]), pair(dilation, n)
    if padding == "same":
        whole = [(k - 1) * d for k, d in zip(size, steps, strict=True)]
        pads = [p // 2 for p in whole] + [p - p // 2 for p in whole]
    else:
        pads = pair(0 if padding == "valid" else padding, n) * 2
    given = [x, weight] + ([] if bias is None else [bias])
    return w.put(
        "Conv",
        *given,
        kernel_shape=size,
        strides=pair(stride, n),
        pads=pads,
        dilations=steps,
        group=groups,
    )


@record("max_pool1d", "max_pool2d", "max_pool3d")
def _max_pool(
    w: Writer,
    y: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    if return_indices:
        raise refused("indices of max_pool()")
    return w.put(
        "MaxPool",
        x,
        dilations=pair(dilation, _spatial(y)),
        **_window(y, kernel_size, stride, padding, ceil_mode),
    )


def _window(y: Any, size: Any, stride: Any, padding: Any, ceil: bool) -> dict[str, Any]:
    n = _spatial(y)
    return {
        "kernel_shape": pair(size, n),
        "strides": pair(size if stride is None else stride, n),
        "pads": pair(padding, n) * 2,
        "ceil_mode": int(ceil),
    }


@record("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(
    w: Writer,
    y: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    if divisor_override is not None:
        raise refused("avg_pool() with divisor_override")
    return w.put(
        "AveragePool",
        x,
        count_include_pad=int(count_include_pad),
        **_window(y, kernel_size, stride, padding, ceil_mode),
    )


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
        return w.put(f"{op}Pool", x, **_window(y, size, None, 0, False))


@record("batch_norm")
def _batch_norm(
    w: Writer,
    y: Any,
    x: Any,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if training or mean is None:
        raise refused("batch_norm() without running statistics")
    weight = _C.ones_like(mean) if weight is None else weight
    bias = _C.zeros_like(mean) if bias is None else bias
    return w.put("BatchNormalization", x, weight, bias, mean, var, epsilon=eps)


@record("layer_norm")
def _layer_norm(
    w: Writer,
    y: Any,
    x: Any,
    shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    weight = _C.ones(shape, dtype=y.dtype) if weight is None else weight
    given = [x, weight] + ([] if bias is None else [bias])
    return w.put("LayerNormalization", *given, axis=-len(shape), epsilon=eps)


@record("rms_norm")
def _rms_norm(
    w: Writer, y: Any, x: Any, shape: Any, weight: Any = None, eps: Any = None
) -> Any:
    axes = w.ints(range(-len(shape), 0))
    mean = w.put("ReduceMean", w.put("Mul", x, x), axes, keepdims=1)
    least = w.of(finfo(y.dtype).eps if eps is None else eps, y.dtype)
    found = w.put("Div", x, w.put("Sqrt", w.put("Add", mean, least)))
    return found if weight is None else w.put("Mul", found, weight)


def by_channel(weight: Any, dims: int) -> Any:
    return weight.reshape([-1] + [1] * (dims - 2))


@record("group_norm")
def _group_norm(
    w: Writer,
    y: Any,
    x: Any,
    groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    rows = w.put("Reshape", x, w.ints([0, groups, -1]))
    one, zero = _C.ones(groups, dtype=y.dtype), _C.zeros(groups, dtype=y.dtype)
    found = w.put("InstanceNormalization", rows, one, zero, epsilon=eps)
    found = w.put("Reshape", found, w.ints([-1, *y.shape[1:]]))
    for op, part in (("Mul", weight), ("Add", bias)):
        if part is not None:
            found = w.put(op, found, by_channel(part, y.dim()))
    return found


@record("interpolate")
def _interpolate(
    w: Writer,
    y: Any,
    x: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    *unused: Any,
) -> Any:
    kinds = {"nearest": "nearest", "bicubic": "cubic"}
    kinds |= dict.fromkeys(("linear", "bilinear", "trilinear"), "linear")
    if mode not in kinds:
        raise refused(f"interpolate() with mode={mode!r}")
    where = "half_pixel" if mode != "nearest" else "asymmetric"
    scales = [b / a for a, b in zip(x.shape[2:], y.shape[2:], strict=True)]
    return w.put(
        "Resize",
        x,
        "",
        _C.tensor([1.0, 1.0, *scales]),
        mode=kinds[mode],
        coordinate_transformation_mode="align_corners" if align_corners else where,
        nearest_mode="floor" if mode == "nearest" else None,
        cubic_coeff_a=-0.75 if mode == "bicubic" else None,
    )


@record("pixel_shuffle")
def _pixel_shuffle(w: Writer, y: Any, x: Any, factor: int) -> Any:
    return w.put("DepthToSpace", x, blocksize=factor, mode="CRD")


@record("one_hot")
def _one_hot(w: Writer, y: Any, x: Any, num_classes: int = -1) -> Any:
    ends = _C.tensor([0, 1])
    return w.put("OneHot", x, w.of(y.shape[-1], _C.int64), ends)
