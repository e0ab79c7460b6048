"""Derivatives of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor.autograd import enable_grad
from pydevtensor.autograd import grad as _grad

Tensor = _C.Tensor


class _Level:
    """One transformation at work: the Tensors that it differentiates for."""

    depth = 0

    def __init__(self, name: str, values: list[Any]) -> None:
        self.name = name
        self.outer = _Level.depth > 0 or any(
            isinstance(v, Tensor) and v.requires_grad for v in values
        )
        self.inputs: list[Any] = []

    def __enter__(self) -> _Level:
        _Level.depth += 1
        self._mode = enable_grad()
        self._mode.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)
        _Level.depth -= 1

    def enter(self, value: Any) -> Any:
        """The argument with its Tensors watched."""

        def watched(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            if not x.is_floating_point():
                raise RuntimeError(
                    f"{self.name}(): an argument to differentiate for is of {x.dtype}; "
                    "give floating Tensors"
                )
            fresh = x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
            self.inputs.append(fresh)
            return fresh

        return _tree.map_leaves(watched, value)

    def leave(self, value: Any, outputs: list[Any]) -> Any:
        """A result: recorded for who is outside, and there alone."""
        if self.outer or self._uses_others(outputs):
            return value
        return _tree.map_leaves(
            lambda x: x.detach() if isinstance(x, Tensor) else x, value
        )

    def _uses_others(self, outputs: list[Any]) -> bool:
        """Whether results depend on leaves that the function captured."""
        own = {x.view_as(x).grad_fn.next_functions[0][0] for x in self.inputs}
        waiting, seen = [o.grad_fn for o in outputs if o.requires_grad], set()
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if node.name() == "AccumulateGrad" and node not in own:
                return True
            waiting += [following for following, _ in node.next_functions]
        return False

    def reaches(self, output: Any) -> bool:
        """Whether a result depends on an input."""
        if not output.requires_grad:
            return False
        seed = _C.zeros_like(output)
        found = _grad(output, self.inputs, seed, True, True, allow_unused=True)
        return any(gradient is not None for gradient in found)

    def gradients(
        self, outputs: list[Any], seeds: list[Any], inputs: list[Any] | None = None
    ) -> list[Any]:
        """Zeros where a result does not depend on an input."""
        inputs = self.inputs if inputs is None else inputs
        pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
        if not pairs or not inputs:
            return [_C.zeros_like(x) for x in inputs]
        of, given = zip(*pairs, strict=True)
        found = _grad(of, inputs, given, True, True, allow_unused=True)
        return [
            _C.zeros_like(x) if g is None else g
            for x, g in zip(inputs, found, strict=True)
        ]


def _tensors(name: str, value: Any) -> tuple[list[Any], Callable[..., Any]]:
    leaves, unflatten = _tree.flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}(): the function returned a {type(leaf).__name__}; return "
                "Tensors"
            )
    return leaves, unflatten


def _split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}(): with has_aux=True the function has to return (result, aux)"
        )
    return result


def _watched(
    level: _Level, args: tuple[Any, ...], argnums: Any
) -> tuple[list[Any], Any]:
    """args with those of argnums watched, and these alone."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    given = [*args]
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"{level.name}(): argnums has {n}, and there are {len(args)} "
                "positional arguments"
            )
        given[n] = level.enter(args[n])
    chosen = tuple(given[n] for n in numbers)
    return given, chosen[0] if isinstance(argnums, int) else chosen


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives func's gradient and its value, a Tensor of one element.

    argnums: the positional arguments to differentiate for. With has_aux, func returns
    (value, aux) and the result is (gradient, (value, aux)).

    >>> torch.func.grad_and_value(lambda x: (x ** 2).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def both(*args: Any, **kwargs: Any) -> Any:
        values = _tree.flatten((args, kwargs))[0]
        with _Level("grad", values) as level:
            given, chosen = _watched(level, args, argnums)
            result, aux = _split("grad", func(*given, **kwargs), has_aux)
            if not isinstance(result, Tensor):
                raise RuntimeError(
                    f"grad(): the function returned a {type(result).__name__}; return "
                    "a Tensor of one element"
                )
            if result.ndim:
                raise RuntimeError(
                    f"grad(): the function returned a Tensor of shape "
                    f"{[*result.shape]}; return one without dimensions, e.g. .sum()"
                )
            found = level.gradients([result], [_C.ones_like(result)])
            places = iter(found)
            gradient = _tree.map_leaves(
                lambda x: next(places) if isinstance(x, Tensor) else None, chosen
            )
            outputs = [*found, result]
            gradient = level.leave(gradient, outputs)
            result = level.leave(result, outputs)
            return gradient, (result, level.leave(aux, outputs)) if has_aux else result

    return both


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of func, which returns a single number.

    argnums: the positional arguments to differentiate for: one, or a tuple for a tuple
    of gradients. With has_aux, func returns (value, aux) and the result is
    (gradient, aux).

    >>> torch.func.grad(torch.func.grad(lambda x: x ** 3))(torch.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(
    func: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """func's result, and a function from gradients of it to gradients of primals.

    has_aux: func returns (result, aux), and vjp (result, function, aux).

    >>> value, back = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> back(torch.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    level = _Level("vjp", _tree.flatten(primals)[0])
    with level:
        given = level.enter(primals)
        result, aux = _split("vjp", func(*given), has_aux)
    outputs, _ = _tensors("vjp", result)

    def back(cotangents: Any) -> Any:
        seeds, _ = _tree.flatten(cotangents)
        if len(seeds) != len(outputs):
            raise RuntimeError(
                f"vjp(): {len(seeds)} gradients were given for {len(outputs)} results; "
                "give them in the structure of the result"
            )
        for seed, output in zip(seeds, outputs, strict=True):
            if seed.shape != output.shape:
                raise RuntimeError(
                    f"vjp(): a gradient has shape {[*seed.shape]} and its result "
                    f"{[*output.shape]}; give the same shape"
                )
        with level:
            found = level.gradients(outputs, seeds)
        places = iter(found)
        made = _tree.map_leaves(
            lambda x: next(places) if isinstance(x, Tensor) else x, given
        )
        kept = any(s.requires_grad for s in seeds)
        return made if kept else level.leave(made, outputs)

    result = level.leave(result, outputs)
    return (result, back, level.leave(aux, outputs)) if has_aux else (result, back)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """func's result at primals, and its derivative in the direction of tangents.

    Two backward passes: the derivative of vjp with respect to its argument.

    strict: RuntimeError for a result that does not depend on primals, whose derivative
    is zeros otherwise. has_aux: func returns (result, aux), and jvp (result,
    derivative, aux).

    >>> torch.func.jvp(torch.sin, (torch.zeros(2),), (torch.tensor([1.0, 2.0]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, tuple):
            raise RuntimeError(
                f"jvp(): {name} is a {type(value).__name__}; give a tuple of the "
                "function's arguments"
            )
    directions = _tree.flatten(tangents)[0]
    with _Level("jvp", [*_tree.flatten(primals)[0], *directions]) as level:
        given = level.enter(primals)
        if [d.shape for d in directions] != [x.shape for x in level.inputs]:
            raise RuntimeError(
                "jvp(): tangents have other shapes than primals; give one of the same "
                "shape for each"
            )
        result, aux = _split("jvp", func(*given), has_aux)
        outputs, unflatten = _tensors("jvp", result)
        if strict and not all(level.reaches(o) for o in outputs):
            raise RuntimeError(
                "jvp(): a result does not depend on primals; use them, or give "
                "strict=False for zeros"
            )
        seeds = [_C.zeros_like(o).requires_grad_() for o in outputs]
        back = level.gradients(outputs, seeds)
        pushed = level.gradients(back, directions, seeds)
        tangent = level.leave(unflatten(pushed), [*pushed, *outputs])
        result = level.leave(result, outputs)
    return (
        (result, tangent, level.leave(aux, outputs)) if has_aux else (result, tangent)
    )


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that gives func's Jacobian, a backward pass for each element.

    Its shape is the result's, then the argument's; for structures, one in each place of
    the result and, inside, of the argument. chunk_size has no effect.

    argnums: the positional argument to differentiate for, or a tuple of them. has_aux:
    func returns (result, aux), and the function (Jacobian, aux).

    >>> torch.func.jacrev(torch.exp)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        values = _tree.flatten((args, kwargs))[0]
        with _Level("jacrev", values) as level:
            given, chosen = _watched(level, args, argnums)
            result, aux = _split("jacrev", func(*given, **kwargs), has_aux)
            outputs, unflatten = _tensors("jacrev", result)
            blocks = [_block(level, output) for output in outputs]
            flat = [each for block in blocks for each in block]

            def placed(block: list[Any]) -> Any:
                places = iter(block)
                return _tree.map_leaves(lambda _: next(places), chosen)

            made = level.leave(
                unflatten([placed(block) for block in blocks]), [*flat, *outputs]
            )
            return (made, level.leave(aux, outputs)) if has_aux else made

    return jacobian


def _block(level: _Level, output: Any) -> list[Any]:
    """The Jacobians of one result for each input."""
    rows = []
    for i in range(output.numel()):
        seed = _C.zeros(output.numel(), dtype=output.dtype, device=output.device)
        seed[i] = 1
        rows.append(level.gradients([output], [seed.reshape(output.shape)]))
    if not rows:
        return [
            _C.zeros_like(x).new_zeros(output.shape + x.shape) for x in level.inputs
        ]
    return [
        _C.stack(column).reshape(output.shape + x.shape)
        for column, x in zip(zip(*rows, strict=True), level.inputs, strict=True)
    ]


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The same as jacrev: there is no forward mode, so it takes as many passes.

    >>> torch.func.jacfwd(torch.exp)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0
) -> Callable[..., Any]:
    """A function that gives func's second derivatives: jacrev of jacrev.

    argnums: the positional argument to differentiate for, or a tuple of them.

    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.ones(2))
    tensor([[6., 0.],
            [0., 6.]])
    """
    return jacrev(jacrev(func, argnums), argnums)
