"""Maps over a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor.random import default_generators

Tensor = _C.Tensor


def _restore(generators: list[Any], states: list[Any]) -> None:
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)


def _dims_of(name: str, dims: Any, value: Any) -> list[Any]:
    """The dimension to map of each leaf, None for one that is not mapped."""
    if dims is None or isinstance(dims, int):
        return [
            dims if isinstance(leaf, Tensor) else None
            for leaf in _tree.flatten(value)[0]
        ]
    if isinstance(dims, (tuple, list)) and isinstance(value, (tuple, list)):
        if len(dims) == len(value):
            pairs = zip(dims, value, strict=True)
            return [each for d, v in pairs for each in _dims_of(name, d, v)]
    elif isinstance(dims, dict) and isinstance(value, dict) and [*dims] == [*value]:
        return [each for k in value for each in _dims_of(name, dims[k], value[k])]
    raise ValueError(
        f"{name}: in_dims {dims!r} does not fit the arguments; give an int, None, or "
        "the structure of the arguments"
    )


def _joined(name: str, column: tuple[Any, ...], dim: Any) -> Any:
    for each in column:
        if not isinstance(each, Tensor):
            raise ValueError(
                f"{name}: the function returned a {type(each).__name__}, not a Tensor"
            )
    return column[0] if dim is None else _C.stack(column, dim)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps func over a dimension of its arguments.

    It calls func for each element and stacks the results, so it is right, and slow: it
    takes as long as the loop that it stands for. Any code may be in func.

    in_dims     the dimension of each argument, None for one that all calls share
    out_dims    where the dimension is in the results
    randomness  'error' refuses random numbers in func, 'different' draws in each call,
                'same' draws the same in all
    chunk_size  has no effect

    ValueError for sizes that differ, no mapped argument, or results other than Tensors.

    >>> torch.func.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
    tensor([3., 3.])
    """
    name = f"vmap({getattr(func, '__name__', func)})"
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"{name}: randomness is {randomness!r}; give 'error', 'different' or 'same'"
        )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if not isinstance(in_dims, (int, tuple)):
            raise ValueError(
                f"{name}: in_dims is {in_dims!r}; give an int or a tuple with one for "
                "each argument"
            )
        leaves, unflatten = _tree.flatten((args, kwargs))
        dims = _dims_of(name, in_dims, args)
        dims += _dims_of(name, None, kwargs)
        sizes = set()
        for leaf, dim in zip(leaves, dims, strict=True):
            if dim is None:
                continue
            if not isinstance(leaf, Tensor) or not -leaf.ndim <= dim < leaf.ndim:
                shape = [*leaf.shape] if isinstance(leaf, Tensor) else leaf
                raise ValueError(
                    f"{name}: in_dims has {dim} for an argument of shape {shape}; give "
                    "a dimension that it has, or None"
                )
            sizes.add(leaf.shape[dim])
        if len(sizes) != 1:
            raise ValueError(
                f"{name}: the mapped dimensions have sizes {sorted(sizes)}; give "
                "arguments with one size"
                if sizes
                else f"{name}: no argument is mapped; give a Tensor with a dimension"
            )
        (size,) = sizes
        generators = default_generators()
        states = [each.get_state() for each in generators]
        results = []
        for i in range(size):
            if randomness == "same" and i:
                _restore(generators, states)
            given, named = unflatten(
                [
                    x if d is None else x.select(d, i)
                    for x, d in zip(leaves, dims, strict=True)
                ]
            )
            results.append(func(*given, **named))
        after = [each.get_state() for each in generators]
        if randomness == "error" and not all(map(_C.equal, states, after)):
            _restore(generators, states)
            raise RuntimeError(
                f"{name}: the function draws random numbers; give randomness="
                "'different' or 'same'"
            )
        if not results:
            raise ValueError(f"{name}: the mapped dimension is empty")
        parts = [_tree.flatten(result) for result in results]
        rebuild = parts[0][1]
        whole = rebuild([*range(len(parts[0][0]))])
        where = _out_dims(name, out_dims, whole)
        columns = zip(*(few for few, _ in parts), strict=True)
        return rebuild(
            [_joined(name, c, d) for c, d in zip(columns, where, strict=True)]
        )

    return mapped


def _out_dims(name: str, dims: Any, result: Any) -> list[Any]:
    if dims is None or isinstance(dims, int):
        return [dims] * len(_tree.flatten(result)[0])
    if isinstance(result, (tuple, list)) and len(dims) == len(result):
        pairs = zip(dims, result, strict=True)
        return [each for d, r in pairs for each in _out_dims(name, d, r)]
    raise ValueError(
        f"{name}: out_dims {dims!r} does not fit the results; give an int or one for "
        "each"
    )
