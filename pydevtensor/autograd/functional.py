"""Jacobians, Hessians, and their products with vectors, of functions of Tensors.

inputs and results are a Tensor or a tuple of them; what is returned has the structure
of both. With create_graph the results are differentiable. strict=True raises
RuntimeError for a result that does not depend on an input, and with create_graph for a
derivative that does not; without it both are zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import enable_grad, grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple_of(value: Any, name: str, what: str) -> tuple[bool, tuple[Any, ...]]:
    """Whether it is a tuple, and the value as one."""
    whole = value if isinstance(value, tuple) else (value,)
    for each in whole:
        if not isinstance(each, _C.Tensor):
            raise TypeError(
                f"{name}(): {what} is or has a {type(each).__name__}; give a Tensor or "
                "a tuple of Tensors"
            )
    return isinstance(value, tuple), whole


def _fresh(inputs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """The inputs to differentiate for: part of their graph if that is to be created."""
    return tuple(
        x.view_as(x)
        if create_graph and x.requires_grad
        else x.detach().requires_grad_()
        for x in inputs
    )


def _call(
    name: str, func: Callable[..., Any], inputs: tuple[Any, ...]
) -> tuple[bool, tuple[Any, ...]]:
    return _tuple_of(func(*inputs), name, "the function's result")


def _gradients(
    name: str,
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    given: Any,
    create: bool,
    strict: bool,
) -> tuple[Any, ...]:
    """The gradients of those outputs that have any; zeros where there are none."""
    pairs = [(o, g) for o, g in zip(outputs, given, strict=True) if o.requires_grad]
    found: tuple[Any, ...] = (None,) * len(inputs)
    if pairs:
        of, seeds = zip(*pairs, strict=True)
        found = grad(of, inputs, seeds, True, create, allow_unused=True)
    for i, g in enumerate(found):
        if strict and g is None:
            raise RuntimeError(
                f"{name}(): the result does not depend on input {i}; use it, or give "
                "strict=False for zeros"
            )
        if strict and create and not g.requires_grad:
            raise RuntimeError(
                f"{name}(): the derivative for input {i} does not depend on it; give "
                "strict=False for a second derivative of zeros"
            )
    return tuple(
        _C.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)
    )


def _vectors(name: str, v: Any, like: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """v as a tuple of Tensors like those; None means 1 for a single element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"{name}(): v can only be None for {what} of a single element; give a "
                "Tensor of its shape"
            )
        return (_C.ones_like(like[0]),)
    _, whole = _tuple_of(v, name, "v")
    _tree.need_alike(name, "v", whole, what, like)
    return whole


def _out(values: tuple[Any, ...], is_tuple: bool, create_graph: bool) -> Any:
    values = values if create_graph else tuple(v.detach() for v in values)
    return values if is_tuple else values[0]


@enable_grad()
def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, ...]:
    """func's result, and the product of v and its Jacobian.

    v has the result's shape, and may be left out for one element.

    inputs        its arguments: a Tensor, or a tuple of them
    create_graph  the results can be differentiated again
    strict        RuntimeError in place of zeros for an input that was not used

    See also func.vjp().

    >>> torch.autograd.functional.vjp(lambda x: x ** 2, torch.tensor([1.0, 2.0]),
    ...                               torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    is_tuple, given = _tuple_of(inputs, "vjp", "inputs")
    xs = _fresh(given, create_graph)
    many, outputs = _call("vjp", func, xs)
    vectors = _vectors("vjp", v, outputs, "the result")
    found = _gradients("vjp", outputs, xs, vectors, create_graph, strict)
    return _out(outputs, many, create_graph), _out(found, is_tuple, create_graph)


def _pushed(
    name: str,
    outputs: tuple[Any, ...],
    xs: tuple[Any, ...],
    vectors: tuple[Any, ...],
    create: bool,
    strict: bool,
) -> tuple[Any, ...]:
    """The products of the Jacobian and vectors: the derivative of a vjp for its v."""
    seeds = tuple(_C.zeros_like(o).requires_grad_() for o in outputs)
    back = _gradients(name, outputs, xs, seeds, True, strict)
    return _gradients(name, back, seeds, vectors, create, strict)


@enable_grad()
def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, ...]:
    """func's result, and the product of its Jacobian and v, which has inputs' shape.

    It takes two backward passes.

    inputs        its arguments: a Tensor, or a tuple of them
    create_graph  the results can be differentiated again
    strict        RuntimeError in place of zeros for an input that was not used

    See also func.jvp().

    >>> torch.autograd.functional.jvp(lambda x: x ** 2, torch.tensor([1.0, 2.0]),
    ...                               torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    _, given = _tuple_of(inputs, "jvp", "inputs")
    xs = _fresh(given, create_graph)
    vectors = _vectors("jvp", v, xs, "inputs")
    many, outputs = _call("jvp", func, xs)
    found = _pushed("jvp", outputs, xs, vectors, create_graph, strict)
    return _out(outputs, many, create_graph), _out(found, many, create_graph)


@enable_grad()
def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of func at inputs: for each result and input, of both their shapes.

    A backward pass for each element of the results; vectorize and strategy have no
    effect (RuntimeError for vectorize with strict).

    inputs        its arguments: a Tensor, or a tuple of them
    create_graph  the results can be differentiated again
    strict        RuntimeError in place of zeros for an input that was not used

    See also func.jacrev().

    >>> torch.autograd.functional.jacobian(torch.exp, torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            f"jacobian(): strategy is {strategy!r}; give 'reverse-mode' or "
            "'forward-mode'"
        )
    if strict and vectorize:
        raise RuntimeError("jacobian(): strict and vectorize; leave vectorize out")
    is_tuple, given = _tuple_of(inputs, "jacobian", "inputs")
    xs = _fresh(given, create_graph)
    many, outputs = _call("jacobian", func, xs)
    rows = []
    for k, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"jacobian(): result {k} does not depend on inputs; give strict=False "
                "for zeros"
            )
        rows.append(
            tuple(
                _out((j,), False, create_graph)
                for j in _rows(output, xs, create_graph, strict)
            )
        )
    whole = tuple(row if is_tuple else row[0] for row in rows)
    return whole if many else whole[0]


def _rows(
    output: Any, xs: tuple[Any, ...], create_graph: bool, strict: bool
) -> list[Any]:
    """The Jacobians of one result for each input."""
    found = []
    seed = _C.zeros(output.numel(), dtype=output.dtype, device=output.device)
    for i in range(output.numel()):
        seed = _C.zeros_like(seed)
        seed[i] = 1
        given = (seed.reshape(output.shape),)
        found.append(_gradients("jacobian", (output,), xs, given, create_graph, strict))
    return [
        _C.stack(column).reshape(output.shape + x.shape)
        if found
        else _C.zeros(output.shape + x.shape, dtype=x.dtype, device=x.device)
        for column, x in zip(
            zip(*found, strict=True) if found else [()] * len(xs), xs, strict=True
        )
    ]


def _single(name: str, func: Callable[..., Any]) -> Callable[..., Any]:
    """func, whose result has to be one element, without dimensions."""

    def checked(*inputs: Any) -> Any:
        many, outputs = _call(name, func, inputs)
        if many or outputs[0].numel() != 1:
            raise RuntimeError(
                f"{name}(): the function has to return a Tensor of a single element"
            )
        return outputs[0].reshape(())

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of func, which returns one element.

    They are the Jacobian of its gradient, in the structure of jacobian()'s. vectorize
    and outer_jacobian_strategy are as for that: they have no effect.

    inputs        its arguments: a Tensor, or a tuple of them
    create_graph  the results can be differentiated again
    strict        RuntimeError in place of zeros for an input that was not used

    See also func.hessian().

    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.ones(2))
    tensor([[6., 0.],
            [0., 6.]])
    """
    is_tuple, _ = _tuple_of(inputs, "hessian", "inputs")
    single = _single("hessian", func)

    def gradient(*xs: Any) -> Any:
        found = _gradients(
            "hessian",
            (single(*xs),),
            xs,
            (_C.ones((), dtype=xs[0].dtype, device=xs[0].device),),
            True,
            strict,
        )
        return found if is_tuple else found[0]

    return jacobian(
        gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy
    )


@enable_grad()
def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, ...]:
    """func's result, one element, and the product of v and its Hessian.

    inputs        its arguments: a Tensor, or a tuple of them
    v             of the shape of inputs
    create_graph  the results can be differentiated again
    strict        RuntimeError in place of zeros for an input that was not used

    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.ones(2),
    ...                               torch.tensor([1.0, 2.0]))
    (tensor(2.), tensor([ 6., 12.]))
    """
    is_tuple, given = _tuple_of(inputs, "vhp", "inputs")
    xs = _fresh(given, create_graph)
    vectors = _vectors("vhp", v, xs, "inputs")
    output = _single("vhp", func)(*xs)
    one = (_C.ones_like(output),)
    first = _gradients("vhp", (output,), xs, one, True, strict)
    found = _gradients("vhp", first, xs, vectors, create_graph, strict)
    return _out((output,), False, create_graph), _out(found, is_tuple, create_graph)


@enable_grad()
def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, ...]:
    """func's result, one element, and the product of its Hessian and v; vhp is faster.

    inputs        its arguments: a Tensor, or a tuple of them
    v             of the shape of inputs
    create_graph  the results can be differentiated again
    strict        RuntimeError in place of zeros for an input that was not used

    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.ones(2),
    ...                               torch.tensor([1.0, 2.0]))
    (tensor(2.), tensor([ 6., 12.]))
    """
    is_tuple, given = _tuple_of(inputs, "hvp", "inputs")
    xs = _fresh(given, create_graph)
    vectors = _vectors("hvp", v, xs, "inputs")
    output = _single("hvp", func)(*xs)
    first = _gradients("hvp", (output,), xs, (_C.ones_like(output),), True, strict)
    found = _pushed("hvp", first, xs, vectors, create_graph, strict)
    return _out((output,), False, create_graph), _out(found, is_tuple, create_graph)


_publish(__name__)
