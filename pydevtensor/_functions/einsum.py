"""einsum: sums of products of tensors, one letter for each dimension."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_REST = "..."  # stands for the dimensions of an ellipsis


def _read(term, what):
    """One operand's letters, and "..." for an ellipsis."""
    letters = re.findall(r"\.\.\.|.", term)
    for letter in letters:
        if letter not in _LETTERS and letter != _REST:
            raise RuntimeError(
                f"{letter!r} stands in {what}; name dimensions by letters, a-z or A-Z, "
                "and write an ellipsis as '...'"
            )
    if letters.count(_REST) > 1:
        raise RuntimeError(f"two ellipses stand in {what}; write one")
    return letters


def _read_equation(equation, count):
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = [_read(term, f"operand {i}") for i, term in enumerate(left.split(","))]
    if len(terms) != count:
        raise RuntimeError(
            f"the equation {equation!r} names {len(terms)} operands, and {count} were "
            "given; give as many"
        )
    return terms, _read(right, "the output") if arrow else None


def _letters(numbers):
    """The letters for a list of numbers."""
    found = []
    for number in numbers:
        if number is Ellipsis:
            found.append(_REST)
        elif isinstance(number, int) and 0 <= number < len(_LETTERS):
            found.append(_LETTERS[number])
        else:
            raise ValueError(
                f"{number!r} stands in a list of dimensions; give ints from 0 to "
                f"{len(_LETTERS) - 1} or an Ellipsis"
            )
    return found


def _spread(terms, output, operands):
    """Every term with a name for each dimension; an ellipsis becomes numbers, which
    count from its end."""
    widest, spread = 0, []
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        named = len(term) - (_REST in term)
        extra = x.dim() - named
        if extra < 0 or (extra and _REST not in term):
            raise RuntimeError(
                f"operand {i} has {x.dim()} dimensions, and the equation names "
                f"{named}; name each, or write '...' for the rest"
            )
        widest = max(widest, extra)
        spread.append(_with_numbers(term, extra))
    if output is None:
        seen = [letter for term in terms for letter in term if letter != _REST]
        once = sorted(letter for letter in set(seen) if seen.count(letter) == 1)
        return spread, _with_numbers([_REST, *once], widest)
    names = _with_numbers(output, widest)
    for name in names:
        if names.count(name) > 1:
            raise RuntimeError(
                f"{name!r} appears twice in the output; name each dimension once"
            )
        if not any(name in term for term in spread):
            raise RuntimeError(
                f"{name!r} appears in the output and in no operand; leave it out"
            )
    return spread, names


def _with_numbers(term, count):
    names: list[Any] = []
    for letter in term:
        names += range(count, 0, -1) if letter == _REST else [letter]
    return names


def _take_diagonals(x, names):
    """A letter that appears twice in an operand means its diagonal."""
    names = list(names)
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"{name!r} appears twice in an operand, with sizes "
                    f"{x.shape[first]} and {x.shape[second]}; give the same size"
                )
            x = x.diagonal(0, first, second)
            del names[second], names[first]
            names.append(name)
    return x, names


def _arrange(x, names, wanted):
    """x with the dimensions of wanted, in that order; size 1 where it lacks one."""
    x = x.permute([names.index(name) for name in wanted if name in names])
    for place, name in enumerate(wanted):
        if name not in names:
            x = x.unsqueeze(place)
    return x


def _sum(x, names, kept):
    """x summed over the dimensions that are not kept."""
    gone = [i for i, name in enumerate(names) if name not in kept]
    if gone:
        x = x.sum(gone, dtype=x.dtype)
    return x, [name for name in names if name in kept]


def multiply(a, a_names, b, b_names, kept):
    """The product of two operands; what nobody keeps is summed."""
    a, a_names = _sum(a, a_names, {*b_names, *kept})
    b, b_names = _sum(b, b_names, {*a_names, *kept})
    sizes = dict(zip(a_names, a.shape, strict=True))
    others = dict(zip(b_names, b.shape, strict=True))
    shared = [name for name in a_names if name in others]
    for name in shared:
        n, m = sizes[name], others[name]
        if n != m and 1 not in (n, m):
            raise RuntimeError(
                f"a dimension has sizes {n} and {m} in two operands; give sizes that "
                "are the same or 1"
            )
    batch = [name for name in shared if name in kept]
    rest = [name for name in shared if name not in kept]
    summed = [name for name in rest if sizes[name] == others[name]]
    uneven = [name for name in rest if sizes[name] != others[name]]
    if uneven:  # a size of 1 broadcasts, so that each operand can be summed alone
        a, a_names = _sum(a, a_names, sizes.keys() - uneven)
        b, b_names = _sum(b, b_names, others.keys() - uneven)
    rows = [name for name in a_names if name not in others]
    columns = [name for name in b_names if name not in sizes]
    names = batch + rows + columns
    if not summed:
        return _arrange(a, a_names, names) * _arrange(b, b_names, names), names
    a = _arrange(a, a_names, batch + rows + summed)
    b = _arrange(b, b_names, batch + summed + columns)
    shape = [others[name] if sizes[name] == 1 else sizes[name] for name in batch]
    n, k = [sizes[name] for name in rows], [sizes[name] for name in summed]
    m = [others[name] for name in columns]
    a = a.expand(shape + n + k).reshape(prod(shape), prod(n), prod(k))
    b = b.expand(shape + k + m).reshape(prod(shape), prod(k), prod(m))
    product = a.bmm(b) if batch else a[0] @ b[0]
    return product.reshape(shape + n + m), names


@function()
def einsum(*args: Any) -> Tensor:
    """Sum of products of operands, by the Einstein summation convention.

    einsum("ij,jk->ik", a, b) is a matrix product: letters missing from the output are
    summed over, shared letters are multiplied along. A letter repeated in an operand
    takes its diagonal; "..." stands for further dimensions, which broadcast. Without
    "->", the output has the letters that appear once, in alphabetical order (capitals
    first), after those of an ellipsis. Operands may also be given as one list, or each
    followed by a list of numbers instead of letters.

    Raises RuntimeError if the equation is malformed or does not fit the operands.

    >>> import pydevtensor as torch
    >>> a = torch.arange(6.0).reshape(2, 3)
    >>> torch.einsum("ij->ji", a)
    tensor([[0., 3.],
            [1., 4.],
            [2., 5.]])
    >>> torch.einsum("ij,kj->ik", a, a)
    tensor([[ 5., 14.],
            [14., 50.]])
    """
    if len(args) < 2:
        raise ValueError("give an equation and Tensors, or Tensors each with a list")
    if by_lists := isinstance(args[0], _C.Tensor):
        operands, lists = list(args[0::2]), list(args[1::2])
        output = operands.pop() if len(operands) > len(lists) else None
    else:
        equation, operands = args[0], list(args[1:])
        if not isinstance(equation, str):
            raise TypeError(f"the equation is {equation!r}; give a str")
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    for i, x in enumerate(operands):
        if not isinstance(x, _C.Tensor):
            raise TypeError(f"operand {i} is a {type(x).__name__}; give Tensors")
    if not operands:
        raise ValueError("no operands were given; give at least one")
    if by_lists:
        terms = [_letters(numbers) for numbers in lists]
        output = output and _letters(output)
    else:
        terms, output = _read_equation(equation, len(operands))
    terms, output = _spread(terms, output, operands)

    pairs = [_take_diagonals(x, t) for x, t in zip(operands, terms, strict=True)]
    result, names = pairs[0]
    for i, (x, others) in enumerate(pairs[1:], 1):
        kept = {*output}.union(*(later for _, later in pairs[i + 1 :]))
        result, names = multiply(result, names, x, others, kept)
    result, names = _sum(result, names, output)
    return _arrange(result, names, output)
