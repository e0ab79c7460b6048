"""The cross entropy of a linear layer, computed for some rows at a time."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor.autograd import Function, enable_grad, grad
from pydevtensor.autograd.function import once_differentiable
from pydevtensor.nn import functional as F

Tensor = _C.Tensor


class _Rows:
    """Losses of some rows. classes: the weights of the classes. ignored: ignore_index.
    kind: the type of logits and sums."""

    def __init__(self, weight: Any, bias: Any, classes: Any, ignored: int, kind: Any):
        self.weight, self.kind = weight.detach().to(kind), kind
        self.bias = None if bias is None else bias.detach().to(kind)
        self.classes = None if classes is None else classes.to(kind)
        self.ignored = ignored

    def losses(self, x: Tensor, target: Tensor, gradient: Any) -> tuple[Tensor, Any]:
        """Each row's loss and, from the gradient of the losses if that is given, the
        gradient of the logits."""
        logits = F.linear(x, self.weight, self.bias)
        logits.requires_grad_(gradient is not None)
        with enable_grad():
            found = F.cross_entropy(
                logits,
                target,
                self.classes,
                ignore_index=self.ignored,
                reduction="none",
            )
        if gradient is None:
            return found, None
        (of_logits,) = grad(found, logits, gradient.expand(found.shape).to(self.kind))
        return found.detach(), of_logits

    def divisor(self, target: Tensor) -> Tensor:
        """The divisor of a mean: the sum of the weights of targets not ignored."""
        counts = target != self.ignored
        if self.classes is None:
            return counts.sum().to(self.kind)
        return self.classes[target.where(counts, 0)].where(counts, 0).sum()


class _Gradients:
    """The gradients of input, weight and bias, as far as they are wanted."""

    def __init__(self, rows: _Rows, x: Tensor, wanted: Any) -> None:
        self.rows = rows
        kind, (of_x, of_weight, of_bias) = rows.kind, wanted
        self.of_x = _C.empty_like(x) if of_x else None
        self.of_weight = _C.zeros_like(rows.weight) if of_weight else None
        of_bias = of_bias and rows.bias is not None
        self.of_bias = rows.weight.new_zeros(len(rows.weight)) if of_bias else None
        self.kind = kind

    def add(self, part: slice, x: Tensor, of_logits: Tensor) -> None:
        """Adds the gradients from some rows."""
        if self.of_x is not None:
            self.of_x[part].copy_(of_logits @ self.rows.weight)
        if self.of_weight is not None:
            self.of_weight.addmm_(of_logits.T, x)
        if self.of_bias is not None:
            self.of_bias.add_(of_logits.sum(0))

    def all(self) -> tuple[Any, Any, Any]:
        return self.of_x, self.of_weight, self.of_bias


def _parts(count: int, size: int) -> list[slice]:
    return [slice(at, min(at + size, count)) for at in range(0, count, size)]


class _Chunked(Function):
    """The loss of all rows. For a sum or a mean forward() computes the gradients too,
    from the same logits; else backward() computes the logits again."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Any,
        target: Tensor,
        classes: Any,
        reduction: str,
        ignored: int,
        size: int,
        kind: Any,
        wanted: Any,
    ) -> Tensor:
        rows = _Rows(weight, bias, classes, ignored, kind)
        ctx.kinds = [None if t is None else t.dtype for t in (x, weight, bias)]
        if reduction == "none":
            ctx.again = rows, size
            ctx.save_for_backward(x, target)
            found = [
                rows.losses(x[part].to(kind), target[part], None)[0]
                for part in _parts(len(x), size)
            ]
            return _C.cat(found).to(x.dtype)
        factor = weight.new_ones((), dtype=kind)
        if reduction == "mean":
            factor = 1 / rows.divisor(target)
        ctx.again, gradients = None, _Gradients(rows, x, wanted)
        total = x.new_zeros((), dtype=kind)
        for part in _parts(len(x), size):
            own = x[part].detach().to(kind)
            losses, of_logits = rows.losses(
                own, target[part], factor if any(wanted) else None
            )
            total += losses.sum()
            if of_logits is not None:
                gradients.add(part, own, of_logits)
        ctx.gradients = gradients.all()
        return (total * factor).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        if ctx.again is None:
            found = [g if g is None else g * gradient for g in ctx.gradients]
        else:
            rows, size = ctx.again
            x, target = ctx.saved_tensors
            sums = _Gradients(rows, x, ctx.needs_input_grad[:3])
            for part in _parts(len(x), size):
                own = x[part].detach().to(rows.kind)
                _, of_logits = rows.losses(own, target[part], gradient[part])
                sums.add(part, own, of_logits)
            found = [*sums.all()]
        cast = [
            None if g is None else g.to(kind)
            for g, kind in zip(found, ctx.kinds, strict=True)
        ]
        return (*cast, *[None] * 7)


def chunked(layer: Any, target: Tensor, how: Any, options: Any) -> Any:
    """linear_cross_entropy() of an input of shape (N, in) or (in), by the options.

    layer: the input, the weight and the bias. how: the weights of the classes, the
    reduction, and ignore_index.
    """
    x, weight, bias = layer
    alone = x.dim() == 1
    if alone:
        x, target = x.unsqueeze(0), target.unsqueeze(0)
    size, kind = options._sizes(len(x), x.shape[1], len(weight), x.dtype)
    if kind == x.dtype != weight.dtype:
        raise RuntimeError(
            f"the input is of {x.dtype} and linear_weight of {weight.dtype}; convert "
            "one of them with .to(), or compute halves in float32 by acc_dtype"
        )
    wanted = [
        t is not None and t.requires_grad and _C.is_grad_enabled()
        for t in (x, weight, bias)
    ]
    if target.shape != x.shape[:1]:
        raise RuntimeError(
            f"target has shape {[*target.shape]}, and the input {len(x)} rows; give an "
            "index of a class for each row"
        )
    try:
        found = _Chunked.apply(x, weight, bias, target, *how, size, kind, wanted)
    except IndexError as error:  # whose type is another one without options
        raise RuntimeError(str(error)) from error
    return found.squeeze(0) if alone and found.dim() else found
