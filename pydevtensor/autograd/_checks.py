"""gradcheck() and gradgradcheck(): derivatives beside finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pydevtensor import _C
from pydevtensor.autograd import _as_tuple, enable_grad, grad, no_grad

Tensor: TypeAlias = _C.Tensor
_is_tensor: Callable[[Any], bool] = _C.is_tensor


class GradcheckError(RuntimeError):
    """A derivative differs from finite differences."""


def _leaves(inputs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(inputs) if _is_tensor(x) and x.requires_grad]


def _numerical(
    function: Callable[..., Any], inputs: Sequence[Any], at: int, eps: float
) -> list[Any]:
    """The columns of function's Jacobian for inputs[at], by central differences."""
    columns = []
    x = inputs[at]
    with no_grad():
        flat = x.detach().clone().reshape(-1)
        for k in range(x.numel()):
            values = []
            for step in (eps, -eps):
                moved = flat.clone()
                moved[k] += step
                changed = list(inputs)
                changed[at] = moved.reshape(x.shape)
                values.append(
                    [o.detach().cpu().double() for o in _outputs(function(*changed))]
                )
            columns.append([(a - b) / (2 * eps) for a, b in zip(*values, strict=True)])
    return columns


def _outputs(results: Any) -> tuple[Any, ...]:
    results = _as_tuple(results)
    found = [r for r in results if _is_tensor(r)]
    return tuple(
        _C.view_as_real(r) if r.is_complex() else r
        for r in found
        if r.is_complex() or r.is_floating_point()
    )


def _of_pairs(
    function: Callable[..., Any], inputs: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """function and inputs with each complex leaf as real and imaginary parts."""
    places = {i for i in _leaves(inputs) if inputs[i].is_complex()}

    def of_pairs(*changed: Any) -> Any:
        given = list(changed)
        for i in places:
            made = _C.view_as_complex(given[i].contiguous())
            given[i] = made if _C.is_grad_enabled() else made.detach()
        return function(*given)

    pairs = tuple(
        _C.view_as_real(x.detach()).clone().requires_grad_() if i in places else x
        for i, x in enumerate(inputs)
    )
    return (of_pairs, pairs) if places else (function, inputs)


def _only_backward(function: str, name: str, wanted: bool, **others: bool) -> None:
    """Raise for the checks that there are not, or for none at all."""
    for other, value in others.items():
        if value:
            raise NotImplementedError(
                f"{function}(): {other}; there is the backward pass to check alone"
            )
    if not wanted:
        raise AssertionError(f"{function}(): {name} is false, so nothing is checked")


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare func's derivatives with central differences of width eps.

    inputs: float64 or complex128 Tensors, of which those with requires_grad are varied,
    complex ones part by part. If an entry
    of a Jacobian differs by more than atol + rtol * its size, raises GradcheckError, or
    returns False without raise_exception.

    nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode and masked have no
    effect: every element is compared, once. NotImplementedError for checks of batches
    and of PyTorch's forward mode, check_batched_grad, check_forward_ad and
    check_batched_forward_grad; AssertionError without check_backward_ad.

    >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, x)
    True
    """
    _only_backward(
        "gradcheck",
        "check_backward_ad",
        check_backward_ad,
        check_forward_ad=check_forward_ad,
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
    )
    func, inputs = _of_pairs(func, _as_tuple(inputs))
    leaves = _leaves(inputs)
    if not leaves:
        raise ValueError("gradcheck(): none of inputs has requires_grad=True")

    def fail(text: str) -> bool:
        if raise_exception:
            raise GradcheckError(text)
        return False

    outputs = _outputs(func(*inputs))
    for at in leaves:
        columns = _numerical(func, inputs, at, eps)
        for number, output in enumerate(outputs):
            if not output.requires_grad:
                if any((c[number].abs() > atol).any() for c in columns):
                    return fail(
                        f"output {number} has no gradient but depends on input {at}"
                    )
                continue
            for j in range(output.numel()):
                seed = _C.zeros_like(output).reshape(-1)
                seed[j] = 1
                seed = seed.reshape(output.shape)
                (found,) = grad(output, inputs[at], seed, True, allow_unused=True)
                row = _C.zeros_like(inputs[at]) if found is None else found
                row = row.detach().cpu().double().reshape(-1).tolist()
                for k, analytical in enumerate(row):
                    numerical = columns[k][number].reshape(-1)[j].item()
                    if not abs(analytical - numerical) <= atol + rtol * abs(numerical):
                        return fail(
                            f"the derivative of element {j} of output {number} for "
                            f"element {k} of input {at} is {analytical}, and finite "
                            f"differences give {numerical}"
                        )
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck() of func's gradients, with the inputs and options of gradcheck().

    grad_outputs: the gradients of func's results, by default random ones, with
    gen_non_contig_grad_outputs not contiguous. eps, atol, rtol, raise_exception,
    nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, fast_mode
    and masked are those of gradcheck(); NotImplementedError for check_fwd_over_rev,
    AssertionError without check_rev_over_rev.

    >>> x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.sin, x)
    True
    """
    _only_backward(
        "gradgradcheck",
        "check_rev_over_rev",
        check_rev_over_rev,
        check_fwd_over_rev=check_fwd_over_rev,
        check_batched_grad=check_batched_grad,
    )
    inputs = _as_tuple(inputs)
    leaves = _leaves(inputs)
    outputs = _outputs(func(*inputs))
    if grad_outputs is None:
        drawn = [_C.randn_like(o) for o in outputs]
        if gen_non_contig_grad_outputs:
            drawn = [_C.stack([x, x], -1)[..., 0] for x in drawn]
        seeds = tuple(x.requires_grad_() for x in drawn)
    else:
        seeds = _as_tuple(grad_outputs)

    def gradients(*both: Any) -> tuple[Any, ...]:
        changed, given = both[: len(inputs)], both[len(inputs) :]
        changed = tuple(
            x.detach().requires_grad_() if i in leaves and not x.requires_grad else x
            for i, x in enumerate(changed)
        )
        with enable_grad():
            results = _outputs(func(*changed))
            wanted = [changed[i] for i in leaves]
            found = grad(results, wanted, given, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        (*inputs, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
    )
