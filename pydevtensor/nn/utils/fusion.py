"""A batch normalization computed as part of the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from pydevtensor import _C
from pydevtensor.nn.modules.module import need_module
from pydevtensor.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _check(name: str, layer: Any, bn: Any) -> None:
    need_module(name, layer)
    need_module(name, bn)
    if layer.training or bn.training:
        raise AssertionError(
            "only layers in evaluation mode can be fused; call eval() on both"
        )
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError(
            f"{bn} has no running statistics to fuse; use track_running_stats=True"
        )


def _statistics(bn: Any) -> tuple[Any, Any, Any, Any, Any]:
    return bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A new convolution that does what conv and the batch normalization after it do.

    AssertionError unless both are in evaluation mode and bn has running statistics.

    conv       the convolution
    bn         the batch normalization
    transpose  whether conv is a transposed convolution

    >>> conv, bn = nn.Conv2d(3, 4, 2).eval(), nn.BatchNorm2d(4).eval()
    >>> x = torch.rand(2, 3, 5, 5)
    >>> torch.allclose(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
    True
    """
    _check("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *_statistics(bn), transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of fuse_conv_bn_eval().

    conv_w, conv_b  weight and bias (or None) of the convolution
    bn_rm, bn_rv    running means and variances of the normalization, (channels)
    bn_eps          what it adds to variances
    bn_w, bn_b      its weight and bias; each may be None
    transpose       whether the convolution is a transposed one

    >>> one = torch.ones(1)
    >>> w, b = nn.utils.fuse_conv_bn_weights(
    ...     torch.ones(1, 1, 1), None, one, one * 4, 0, one, None
    ... )
    >>> w.item(), b.item()
    (0.5, -0.5)
    """
    scale = _C.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    factor = scale if bn_w is None else bn_w * scale
    weight = (conv_w * factor.reshape(shape)).to(conv_w.dtype)
    return _parameters(conv_w, conv_b, weight, bn_rm, factor, bn_b)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A new Linear that does what linear and the batch normalization after it do.

    AssertionError unless both are in evaluation mode, and bn has running statistics.

    linear  the linear layer
    bn      the batch normalization, of as many features as linear has outputs, or one

    >>> linear, bn = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    >>> x = torch.rand(2, 3)
    >>> fused = nn.utils.fuse_linear_bn_eval(linear, bn)
    >>> torch.allclose(fused(x), bn(linear(x)), atol=1e-6)
    True
    """
    _check("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            f"the linear layer has {linear.out_features} outputs and the normalization "
            f"{bn.num_features} features; they have to be as many, or one"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, *_statistics(bn)
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any,
    linear_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of fuse_linear_bn_eval().

    linear_w, linear_b  weight and bias (or None) of the linear layer
    bn_rm, bn_rv        running means and variances of the normalization, (features)
    bn_eps              what it adds to variances
    bn_w, bn_b          its weight and bias (or None)

    >>> one = torch.ones(1)
    >>> w, b = nn.utils.fuse_linear_bn_weights(
    ...     torch.ones(1, 1), None, one, one * 4, 0, one, one
    ... )
    >>> w.item(), b.item()
    (0.5, 0.5)
    """
    factor = bn_w * _C.rsqrt(bn_rv + bn_eps)
    weight = linear_w * factor.unsqueeze(-1).to(linear_w.dtype)
    return _parameters(linear_w, linear_b, weight, bn_rm, factor, bn_b)


def _parameters(
    former: Any, bias: Any, weight: Any, mean: Any, factor: Any, shift: Any
) -> tuple[Parameter, Parameter]:
    """The fused weight and bias, which want gradients where the former ones did."""
    fused = ((0 if bias is None else bias) - mean) * factor
    if shift is not None:
        fused = fused + shift
    dtype = former.dtype if bias is None else bias.dtype
    wants = bias is not None and bias.requires_grad
    return (Parameter(weight, former.requires_grad), Parameter(fused.to(dtype), wants))
