"""The functions behind the modules of pydevtensor.nn."""

from __future__ import annotations

import math
import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad

Tensor = _C.Tensor


# --- linear


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.T + bias; input (..., in), weight (out, in), bias (out).

    >>> nn.functional.linear(torch.ones(2, 3), torch.ones(4, 3)).shape
    torch.Size([2, 4])
    """
    try:
        if bias is None:
            return input @ weight.t()
        if input.ndim == 2:
            return _C.addmm(bias, input, weight.t())
        flat = input.flatten(0, -2) if input.ndim > 1 else input.unsqueeze(0)
        shape = input.shape[:-1] + weight.shape[:1]
        return _C.addmm(bias, flat, weight.t()).reshape(shape)
    except RuntimeError:
        if not input.ndim or input.shape[-1] != weight.shape[-1]:
            raise RuntimeError(
                f"linear: the input has shape {[*input.shape]}; for a weight of shape "
                f"{[*weight.shape]} its last size has to be {weight.shape[-1]}"
            ) from None
        raise


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """x1 @ A @ x2 for each matrix A of weight (out, in1, in2), plus bias.

    >>> x, y = torch.ones(2, 3), torch.ones(2, 4)
    >>> nn.functional.bilinear(x, y, torch.ones(5, 3, 4)).shape
    torch.Size([2, 5])
    """
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            "bilinear: the inputs have shapes "
            f"{[*input1.shape]} and {[*input2.shape]}, which may differ in the last "
            "size only"
        )
    for name, given, place in (("input1", input1, 1), ("input2", input2, 2)):
        if given.shape[-1] != weight.shape[place]:
            raise RuntimeError(
                f"bilinear: {name} has shape {[*given.shape]}; for a weight of shape "
                f"{[*weight.shape]} its last size has to be {weight.shape[place]}"
            )
    out, left, right = weight.shape
    columns = weight.permute(1, 0, 2).reshape(left, out * right)
    products = (input1 @ columns).reshape(*input1.shape[:-1], out, right)
    result = (products * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """Zero elements with probability p and divide the others by 1 - p, in training.

    >>> nn.functional.dropout(torch.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    _check_probability(p)
    if not training or p == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    if inplace:
        return input.mul_(_C.empty_like(input).bernoulli_(1 - p).div_(1 - p))
    mask = _C.empty_like(input, dtype=_C.bool).bernoulli_(1 - p)
    return _C._dropout(input, mask, 1 - p)


# --- activations


def relu(input: Any, inplace: bool = False) -> Any:
    """max(x, 0) of each element.

    >>> nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else input.relu()


def _widened(input: Any) -> Any:
    """The input, in float32 if it is half-precision: rounds the result only once."""
    half = getattr(input, "dtype", None) in (_C.float16, _C.bfloat16)
    return input.float() if half else input


def _finished(name: str, result: Any, input: Any, inplace: bool = False) -> Any:
    """The result of an activation, in the input's type, named by its derivative."""
    result = result.to(input.dtype)
    return input.copy_(result) if inplace else _C._named(result, name + "Backward0")


def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x, or negative_slope * x where x is negative.

    >>> nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    result = _C.where(input > 0, input, input * negative_slope)
    return _finished("LeakyRelu", result, input, inplace)


def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x, or alpha * (e^x - 1) where x is negative.

    >>> nn.functional.elu(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    # The exponential of a large x would overflow, and so would its gradient.
    x = _widened(input)
    low = _C.minimum(x, _C.zeros_like(x))
    result = _C.where(x > 0, x, alpha * low.expm1())
    return _finished("Elu", result, input, inplace)


def gelu(input: Any, approximate: str = "none") -> Any:
    """x * Phi(x), Phi the normal's CDF; approximate: 'none' or 'tanh'.

    >>> nn.functional.gelu(torch.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    x = _widened(input)
    if approximate == "none":
        twice = 1 + _C.erf(x * math.sqrt(0.5))
    elif approximate == "tanh":
        twice = 1 + (math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)).tanh()
    else:
        raise RuntimeError(
            f"gelu: approximate is {approximate!r}; give 'none' or 'tanh'"
        )
    return _finished("Gelu", 0.5 * x * twice, input)


def silu(input: Any, inplace: bool = False) -> Any:
    """x * sigmoid(x).

    >>> nn.functional.silu(torch.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    x = _widened(input)
    return _finished("Silu", x * x.sigmoid(), input, inplace)


def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """log(1 + e^(beta x)) / beta, or x where beta x is above threshold.

    >>> nn.functional.softplus(torch.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """
    x = _widened(input)
    scaled = x * beta
    low = _C.minimum(scaled, _C.full_like(scaled, threshold))
    result = _C.where(scaled > threshold, x, low.exp().log1p() / beta)
    return _finished("Softplus", result, input)


def logsigmoid(input: Any) -> Any:
    """log(sigmoid(x)), computed stably.

    >>> nn.functional.logsigmoid(torch.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """
    x = _widened(input)
    result = _C.minimum(x, _C.zeros_like(x)) - (-x.abs()).exp().log1p()
    return _finished("LogSigmoid", result, input)


def sigmoid(input: Any) -> Any:
    """1 / (1 + e^-x).

    >>> nn.functional.sigmoid(torch.tensor([-1.0, 2.0]))
    tensor([0.2689, 0.8808])
    """
    return input.sigmoid()


def tanh(input: Any) -> Any:
    """The hyperbolic tangent.

    >>> nn.functional.tanh(torch.tensor([-1.0, 2.0]))
    tensor([-0.7616,  0.9640])
    """
    return input.tanh()


def _softmax_dim(name: str, dim: Any, ndim: int) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"{name}: without dim, one is chosen by the number of dimensions; give dim",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """e^x divided by its sum along dim, converted to dtype first if it is given.

    >>> nn.functional.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    dim = _softmax_dim("softmax", dim, input.ndim)
    return _C.softmax(input, dim, dtype)


def softmin(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """softmax of -input.

    >>> nn.functional.softmin(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return softmax(-input, _softmax_dim("softmin", dim, input.ndim), dtype=dtype)


def log_softmax(
    input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
) -> Any:
    """log(softmax(input)), computed stably.

    >>> nn.functional.log_softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([-2.4076, -1.4076, -0.4076])
    """
    dim = _softmax_dim("log_softmax", dim, input.ndim)
    return _C.log_softmax(input, dim, dtype)


# --- normalization


def layer_norm(
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
) -> Any:
    """Normalize over the last dimensions, then multiply by weight and add bias.

    normalized_shape is their shape and that of weight and bias. Raises RuntimeError if
    input's shape does not end with it.

    >>> nn.functional.layer_norm(torch.tensor([[1.0, 2.0, 3.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    return _C.layer_norm(input, normalized_shape, weight, bias, eps)


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    """Normalize each channel (dimension 1), then multiply by weight and add bias.

    In training with the batch's statistics, with which the running ones are updated by
    momentum (the variance is the unbiased one); else with the running ones. weight,
    bias and the running statistics have shape (C,).

    >>> mean, var = torch.tensor([2.0]), torch.tensor([4.0])
    >>> nn.functional.batch_norm(torch.tensor([[4.0]]), mean, var)
    tensor([[1.0000]])
    """
    if training:
        if (running_mean is None) != (running_var is None):
            raise ValueError(
                "batch_norm: one of running_mean and running_var is None; give both, "
                "or neither"
            )
        if input.ndim > 1 and input.numel() == input.shape[1] != 0:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{input.shape}; use eval(), or larger batches"
            )
    return _C.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


# --- losses


def _reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that the two deprecated arguments ask for, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _reduce(
    name: str, loss: Any, reduction: str, size_average: Any = None, reduce: Any = None
) -> Any:
    """The loss of a batch, named by its derivative if there is a name."""
    reduction = _reduction(size_average, reduce, reduction)
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    elif reduction != "none":
        raise ValueError(
            f"{reduction} is not a valid value for reduction; give mean, sum or none"
        )
    return _C._named(loss, name + "Backward0") if name else loss


def _gap(name: str, input: Any, target: Any) -> Any:
    """input - target, with a warning if they broadcast."""
    if input.shape != target.shape:
        warnings.warn(
            f"{name}: the target's size {[*target.shape]} differs from the input's "
            f"{[*input.shape]}, so they broadcast; reshape one of them",
            stacklevel=4,
        )
    try:
        return input - target
    except RuntimeError as error:
        raise RuntimeError(f"{name}: {error}") from None


def _need_same_size(name: str, input: Any, target: Any) -> None:
    if input.device != target.device:
        raise RuntimeError(
            f"{name}: the input, of shape {[*input.shape]}, is on {input.device} and "
            f"the target, of shape {[*target.shape]}, on {target.device}; bring them "
            f"together, e.g. with target.to('{input.device}')"
        )
    if input.shape != target.shape:
        raise ValueError(
            f"{name}: the target's size {[*target.shape]} must be the same as the "
            f"input's, {[*input.shape]}; reshape one of them"
        )


def mse_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The squared differences: their mean, sum, or (reduction='none') each.

    >>> nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    squares = _gap("mse_loss", input, target).square()
    return _reduce("MseLoss", squares, reduction, size_average, reduce)


def l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """The absolute differences.

    >>> nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """
    gap = _gap("l1_loss", input, target)
    return _reduce("", gap.abs(), reduction, size_average, reduce)


def huber_loss(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0
) -> Any:
    """Half the squared difference up to delta, linear with slope delta above it.

    >>> nn.functional.huber_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if delta <= 0:
        raise RuntimeError(f"huber_loss: delta is {delta}; give more than 0")
    loss = _huber(_gap("huber_loss", input, target).abs(), delta)
    return _reduce("HuberLoss", loss, reduction)


def _huber(gap: Any, delta: float) -> Any:
    near, far = 0.5 * gap.square(), delta * (gap - 0.5 * delta)
    return _C.where(gap <= delta, near, far)


def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    """huber_loss with a delta of beta, divided by beta; l1_loss if beta is 0.

    >>> nn.functional.smooth_l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss: beta is {beta}; give 0 or more")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    loss = _huber(_gap("smooth_l1_loss", input, target).abs(), beta)
    loss = _reduce("", loss, reduction, size_average, reduce)
    return _C._named(loss / beta, "SmoothL1LossBackward0")


def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-(t log x + (1 - t) log(1 - x)); logarithms are at least -100.

    >>> p = torch.tensor([0.9, 0.2])
    >>> nn.functional.binary_cross_entropy(p, torch.tensor([1.0, 0.0]))
    tensor(0.1643)
    """
    _need_same_size("binary_cross_entropy", input, target)
    # Not on a GPU, which would have to be synchronized.
    if input.device.type == "cpu" and ((input < 0) | (input > 1)).any():
        raise RuntimeError(
            "binary_cross_entropy: all elements of input should be between 0 and 1; "
            "give probabilities, such as input.sigmoid()"
        )
    least = _C.full_like(input, -100.0)
    loss = -(
        target * _C.maximum(input.log(), least)
        + (1 - target) * _C.maximum((1 - input).log(), least)
    )
    loss = loss if weight is None else loss * weight
    return _reduce("BinaryCrossEntropy", loss, reduction, size_average, reduce)


def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """binary_cross_entropy of sigmoid(input), computed stably.

    >>> x = torch.tensor([2.0, -1.0])
    >>> nn.functional.binary_cross_entropy_with_logits(x, torch.tensor([1.0, 0.0]))
    tensor(0.2201)
    """
    _need_same_size("binary_cross_entropy_with_logits", input, target)
    loss = (1 - target) * input
    soft = -logsigmoid(input)
    loss += soft if pos_weight is None else soft * (1 + (pos_weight - 1) * target)
    loss = loss if weight is None else loss * weight
    name = "BinaryCrossEntropyWithLogits"
    return _reduce(name, loss, reduction, size_average, reduce)


def kl_div(
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    """target * (log target - input); input holds log-probabilities.

    >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
    >>> nn.functional.kl_div(q.log(), p, reduction='sum')
    tensor(0.5108)
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        positive = target > 0
        safe = _C.where(positive, target, 1.0)
        loss = _C.where(positive, target * (safe.log() - input), target * -input * 0)
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return _reduce("", loss, reduction, size_average, reduce)


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-input at each target class; input: log-probabilities, (N, C, ...) or (C).

    target: class indices (int64 or uint8), of input's shape without C; weight: one for
    each class, shape (C,). reduction='mean' divides the sum by the weights of the
    targets. Targets equal to ignore_index do not count.

    Raises IndexError for an index that is not a class; on a GPU, AcceleratorError at
    the next synchronization.

    >>> x = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()
    >>> nn.functional.nll_loss(x, torch.tensor([0, 1]))
    tensor(0.1643)
    """
    reduction = _reduction(size_average, reduce, reduction)
    return _C._nll_loss(input, target, weight, ignore_index, reduction)


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """The cross entropy of softmax(input) and target.

    input: logits, (N, C, ...) or (C); target: class indices, of input's shape without
    C, or class probabilities, of input's shape. label_smoothing is the part of each
    target that is spread evenly over the classes. The others are as for nll_loss.

    >>> x = torch.tensor([[2.0, -1.0], [0.0, 3.0]])
    >>> nn.functional.cross_entropy(x, torch.tensor([0, 1]))
    tensor(0.0486)
    """
    if label_smoothing > 1:
        raise RuntimeError(
            f"cross_entropy: label_smoothing is {label_smoothing}; give 0 to 1"
        )
    reduction = _reduction(size_average, reduce, reduction)
    return _C._cross_entropy(
        input, target, weight, ignore_index, reduction, label_smoothing
    )


# --- others


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """int64 of shape (*tensor.shape, num_classes): 1 at each element's index, else 0.

    tensor: int64 of any shape. num_classes=-1: the maximum plus 1, which synchronizes
    with a GPU. Raises RuntimeError for an element that is not from 0 to
    num_classes - 1; on a GPU, AcceleratorError at the next synchronization.

    >>> nn.functional.one_hot(torch.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    return _C._one_hot(tensor, num_classes)


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """The rows of weight at the indices in input.

    input: int64 or int32 of any shape; weight: (n, size); result: (*input.shape, size).
    Row padding_idx gets no gradient. max_norm first scales the selected rows of weight
    down to that norm_type-norm, in place. scale_grad_by_freq divides a row's gradient
    by how often its index occurs. sparse has no effect: gradients are dense. Raises
    IndexError for an index that is not from 0 to n - 1; on a GPU, AcceleratorError at
    the next synchronization.

    >>> weight = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    >>> nn.functional.embedding(torch.tensor([1, 0]), weight)
    tensor([[2., 3.],
            [0., 1.]])
    """
    row = -1 if padding_idx is None else _padding_row(padding_idx, weight.shape[0])
    if max_norm is not None:
        _shorten(weight, input, max_norm, norm_type)
    return _C.embedding(weight, input, row, scale_grad_by_freq, sparse)


def _padding_row(index: int, rows: int) -> int:
    if not -rows <= index < rows:
        raise AssertionError(
            f"Padding_idx must be within num_embeddings: {index} is not in "
            f"{-rows} to {rows - 1}"
        )
    return index % rows


@no_grad()
def _shorten(weight: Any, input: Any, max_norm: float, norm_type: float) -> None:
    # A row that is selected twice is written twice, with the same values.
    chosen = input.reshape(-1)
    rows = _C.embedding(weight, chosen)
    norms = rows.double().norm(norm_type, 1, keepdim=True)
    factors = _C.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
    weight.index_copy_(0, chosen, rows * factors.to(weight.dtype))


def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    """input divided by its p-norm along dim, or by eps if that is larger.

    >>> nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(p, dim, keepdim=True)
    return input / _C.maximum(norm, _C.full_like(norm, eps))


_publish(__name__)
