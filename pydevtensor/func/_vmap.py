"""Maps over a batch: once for the whole, by batching rules, or element by element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydevtensor import _C, _tree
from pydevtensor.func._batched import (
    Draws,
    check_memory,
    is_batched,
    state,
    warn,
    wrap,
)

Tensor = _C.Tensor


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
        _need_tensor(name, each)
    return column[0] if dim is None else _C.stack(column, dim)


def _batch(
    name: str,
    func: Callable[..., Any],
    unflatten: Callable[..., Any],
    out_dims: Any,
    randomness: str,
    leaves: list[Any],
    dims: list[Any],
    size: int,
) -> tuple[Any, Callable[..., Any], list[Any]]:
    """The results, and what rebuilds them and where the batch is in each."""
    draws = Draws(name, randomness)
    state.sizes.append(size)
    level = len(state.sizes)
    try:
        with draws:
            given, named = unflatten(
                [
                    x if d is None else wrap(x.movedim(d, 0), level)
                    for x, d in zip(leaves, dims, strict=True)
                ]
            )
            result = func(*given, **named)
            check_memory(result)
            draws.check()
    except Exception as error:  # of the function, which will raise it again, or ours
        if any(each.refused for each in (*state.draws, draws)):
            raise
        draws.restore()
        reason = f"{name} calls the function for each element: {error}"
    else:
        found, rebuild = _tree.flatten(result)
        where = _out_dims(name, out_dims, rebuild([*range(len(found))]))
        made = [
            _unwrapped(name, x, d, level) for x, d in zip(found, where, strict=True)
        ]
        return rebuild(made), rebuild, where
    finally:
        state.sizes.pop()
    rows = []
    for i in range(size):
        draws.begin(i)
        given, named = unflatten(
            [
                x if d is None else x.select(d, i)
                for x, d in zip(leaves, dims, strict=True)
            ]
        )
        rows.append(_tree.flatten(func(*given, **named)))
    draws.end()
    warn(name, reason)
    rebuild = rows[0][1]
    where = _out_dims(name, out_dims, rebuild([*range(len(rows[0][0]))]))
    columns = zip(*(few for few, _ in rows), strict=True)
    made = [_joined(name, c, d) for c, d in zip(columns, where, strict=True)]
    return rebuild(made), rebuild, where


def _unwrapped(name: str, x: Any, dim: Any, level: int) -> Any:
    """A result, whose batch is in dimension dim."""
    _need_tensor(name, x)
    if not is_batched(x, level):
        if dim is None:
            return x
        return _C.stack([x] * state.sizes[level - 1], dim)
    if dim is None:
        raise ValueError(
            f"{name}: out_dims is None for a result that depends on the batch; give an "
            "int"
        )
    return x.value.movedim(0, dim)


def _need_tensor(name: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{name}: the function returned a {type(x).__name__}, not a Tensor"
        )


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps func over a dimension of its arguments.

    func runs once, on Tensors that stand for one element, by a batching rule of each
    function that it calls: derivatives too. A function without a rule runs for each
    element, and all of func does if it needs an element's value (`if x > 0`, item()),
    writes one into a Tensor that all share, or gets results of several shapes. A
    warning says so, once for each function. func may be begun twice then.

    in_dims     the dimension of each argument, None for one that all calls share
    out_dims    where the dimension is in the results
    randomness  'error' refuses random numbers in func, 'different' draws for each
                element, 'same' draws the same for all
    chunk_size  how many elements at once; None for all

    ValueError for sizes that differ, no mapped argument, results other than Tensors,
    and out_dims of None for a result that depends on the batch.

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
        if not size:
            raise ValueError(f"{name}: the mapped dimension is empty")
        call = functools.partial(_batch, name, func, unflatten, out_dims, randomness)
        if chunk_size is None or chunk_size >= size:
            return call(leaves, dims, size)[0]
        parts = []
        for start in range(0, size, chunk_size):
            few = min(chunk_size, size - start)
            part = [
                x if d is None else x.narrow(d, start, few)
                for x, d in zip(leaves, dims, strict=True)
            ]
            parts.append(call(part, dims, few))
        rebuild, where = parts[0][1:]
        columns = zip(*(_tree.flatten(made)[0] for made, *_ in parts), strict=True)
        return rebuild(
            [
                column[0] if d is None else _C.cat([*column], d)
                for column, d in zip(columns, where, strict=True)
            ]
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
