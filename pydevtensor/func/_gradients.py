"""Derivatives of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor.autograd._levels import Level

Tensor = _C.Tensor


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
    level: Level, args: tuple[Any, ...], argnums: Any
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
        with Level("grad", values) as level:
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
    level = Level("vjp", _tree.flatten(primals)[0])
    with level:
        given = level.enter(primals)
        result, aux = _split("vjp", func(*given), has_aux)
    outputs, _ = _tensors("vjp", result)

    def back(cotangents: Any) -> Any:
        seeds, _ = _tree.flatten(cotangents)
        _tree.need_alike("vjp", "the argument", seeds, "the result", outputs)
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
    with Level("jvp", [*_tree.flatten(primals)[0], *directions]) as level:
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
        pushed = level.push(outputs)(directions)
        tangent = level.leave(unflatten(pushed), [*pushed, *outputs])
        result = level.leave(result, outputs)
    return (
        (result, tangent, level.leave(aux, outputs)) if has_aux else (result, tangent)
    )


def linearize(
    func: Callable[..., Any], *primals: Any
) -> tuple[Any, Callable[..., Any]]:
    """func's result, and a function from tangents to its derivatives at primals.

    The function takes a Tensor of the shape and type of each of primals; it runs func
    no more. RuntimeError for others.

    >>> value, push = torch.func.linearize(torch.sin, torch.zeros(2))
    >>> push(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    level = Level("linearize", _tree.flatten(primals)[0])
    with level:
        given = level.enter(primals)
        result = func(*given)
        outputs, unflatten = _tensors("linearize", result)
        push = level.push(outputs)

    def pushed(*tangents: Any) -> Any:
        directions = _tree.flatten(tangents)[0]
        if [(d.shape, d.dtype) for d in directions] != [
            (x.shape, x.dtype) for x in level.inputs
        ]:
            raise RuntimeError(
                "linearize(): tangents have other shapes or types than primals; give a "
                "Tensor of the same shape and type for each"
            )
        with level:
            made = push(directions)
        kept = any(d.requires_grad for d in directions)
        return unflatten(made) if kept else level.leave(unflatten(made), outputs)

    return level.leave(result, outputs), pushed


def _jacobian(
    name: str,
    func: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    blocks_of: Callable[[Level, list[Any]], list[list[Any]]],
) -> Callable[..., Any]:
    """blocks_of gives a list for each result of its Jacobians for each input."""

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        values = _tree.flatten((args, kwargs))[0]
        with Level(name, values) as level:
            given, chosen = _watched(level, args, argnums)
            result, aux = _split(name, func(*given, **kwargs), has_aux)
            outputs, unflatten = _tensors(name, result)
            blocks = blocks_of(level, outputs)
            flat = [each for block in blocks for each in block]

            def placed(block: list[Any]) -> Any:
                places = iter(block)
                return _tree.map_leaves(lambda _: next(places), chosen)

            made = level.leave(
                unflatten([placed(block) for block in blocks]), [*flat, *outputs]
            )
            return (made, level.leave(aux, outputs)) if has_aux else made

    return jacobian


def _units(like: Any) -> list[Any]:
    """For each element, zeros of the shape with a one there."""
    made = []
    for i in range(like.numel()):
        unit = _C.zeros(like.numel(), dtype=like.dtype, device=like.device)
        unit[i] = 1
        made.append(unit.reshape(like.shape))
    return made


def _joined(parts: list[Any], output: Any, x: Any, dim: int) -> Any:
    """The Jacobian of its rows (dim 0) or columns (-1)."""
    shape = output.shape + x.shape
    return _C.stack(parts, dim).reshape(shape) if parts else x.new_zeros(shape)


def _by_rows(level: Level, outputs: list[Any]) -> list[list[Any]]:
    blocks = []
    for output in outputs:
        rows = [level.gradients([output], [unit]) for unit in _units(output)]
        columns = zip(*rows, strict=True) if rows else [()] * len(level.inputs)
        blocks.append(
            [
                _joined([*column], output, x, 0)
                for column, x in zip(columns, level.inputs, strict=True)
            ]
        )
    return blocks


def _by_columns(level: Level, outputs: list[Any]) -> list[list[Any]]:
    push = level.push(outputs)
    blocks: list[list[Any]] = [[] for _ in outputs]
    for i, x in enumerate(level.inputs):
        directions = [_C.zeros_like(each) for each in level.inputs]
        found = []
        for unit in _units(x):
            directions[i] = unit
            found.append(push(directions))
        for k, output in enumerate(outputs):
            columns = [column[k] for column in found]
            blocks[k].append(_joined(columns, output, x, -1))
    return blocks


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that gives func's Jacobian, by a backward pass for each element.

    Its shape is the result's, then the argument's; for structures, one for each part of
    the result and, inside, of the argument. chunk_size has no effect.

    argnums: the positional argument to differentiate for, or a tuple of them. has_aux:
    func returns (result, aux), and the function (Jacobian, aux).

    >>> torch.func.jacrev(torch.exp)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _jacobian("jacrev", func, argnums, has_aux, _by_rows)


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The same as jacrev, by a pass for each element of the argument, as of jvp().

    Which is less work where the result is larger than the argument. argnums, has_aux:
    those of jacrev(). randomness has no effect.

    >>> torch.func.jacfwd(torch.exp)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _jacobian("jacfwd", func, argnums, has_aux, _by_columns)


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
