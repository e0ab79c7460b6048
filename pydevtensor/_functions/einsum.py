"""einsum: sums of products of tensors, one letter for each dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_REST = "."  # stands for the dimensions of an ellipsis


def _fail(reason):
    raise RuntimeError(f"einsum(): {reason}")


def _read(term, what):
    """One operand's letters, with "." for an ellipsis."""
    letters, place = [], 0
    while place < len(term):
        letter = term[place]
        if letter == ".":
            if term[place : place + 3] != "...":
                _fail(f"a lone '.' stands in {what}; write an ellipsis as '...'")
            if _REST in letters:
                _fail(f"two ellipses stand in {what}; write one")
            letters.append(_REST)
            place += 3
            continue
        if letter not in _LETTERS:
            _fail(
                f"{letter!r} stands in {what}; name dimensions by letters, a-z or A-Z"
            )
        letters.append(letter)
        place += 1
    return letters


def _read_equation(equation, count):
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = [_read(term, f"operand {i}") for i, term in enumerate(left.split(","))]
    if len(terms) != count:
        _fail(
            f"the equation {equation!r} names {len(terms)} operands, and {count} were "
            "given; give as many"
        )
    return terms, _read(right, "the output") if arrow else None


def _read_lists(arguments):
    """The other way to say it: operand, list, operand, list, ..., [list]."""
    operands, terms, output = list(arguments[0::2]), list(arguments[1::2]), None
    if len(operands) > len(terms):
        output = operands.pop()

    def letters(numbers):
        found = []
        for number in numbers:
            if number is Ellipsis:
                found.append(_REST)
            elif isinstance(number, int) and 0 <= number < len(_LETTERS):
                found.append(_LETTERS[number])
            else:
                raise ValueError(
                    f"einsum(): {number!r} stands in a list of dimensions; give ints "
                    f"from 0 to {len(_LETTERS) - 1} or an Ellipsis"
                )
        return found

    return operands, [letters(t) for t in terms], output and letters(output)


def _spread(terms, output, operands):
    """Every term with a name for each dimension; an ellipsis becomes numbers, which
    count from its end."""
    widest, spread = 0, []
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        named = len(term) - (_REST in term)
        extra = x.dim() - named
        if extra < 0 or (extra and _REST not in term):
            _fail(
                f"operand {i} has {x.dim()} dimensions, and the equation names "
                f"{named}; name each, or write '...' for the rest"
            )
        widest = max(widest, extra)
        names: list = []
        for letter in term:
            names += range(extra, 0, -1) if letter == _REST else [letter]
        spread.append(names)
    rest = list(range(widest, 0, -1))
    if output is None:
        seen = [letter for term in terms for letter in term if letter != _REST]
        once = sorted(letter for letter in set(seen) if seen.count(letter) == 1)
        return spread, rest + once
    names = []
    for letter in output:
        names += rest if letter == _REST else [letter]
    for name in names:
        if names.count(name) > 1:
            _fail(f"{name!r} appears twice in the output; name each dimension once")
        if not any(name in term for term in spread):
            _fail(f"{name!r} appears in the output and in no operand; leave it out")
    return spread, names


def _take_diagonals(x, names):
    """A letter that appears twice in an operand means its diagonal."""
    names = list(names)
    for name in [n for n in names if names.count(n) > 1]:
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if x.shape[first] != x.shape[second]:
                _fail(
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


def _sum(x, names, gone):
    dims = [i for i, name in enumerate(names) if name in gone]
    if dims:
        x = x.sum(dims, dtype=x.dtype)
    return x, [name for name in names if name not in gone]


def _size(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def multiply(a, a_names, b, b_names, kept):
    """The product of two operands; what only they have and nobody keeps is summed."""
    a, a_names = _sum(
        a, a_names, [n for n in a_names if n not in b_names and n not in kept]
    )
    b, b_names = _sum(
        b, b_names, [n for n in b_names if n not in a_names and n not in kept]
    )
    sizes = dict(zip(a_names, a.shape, strict=True))
    others = dict(zip(b_names, b.shape, strict=True))
    # A dimension of size 1 broadcasts: its sum goes by the other's.
    shared = [n for n in a_names if n in others]
    summed = [n for n in shared if n not in kept and sizes[n] == others[n]]
    for name in [n for n in shared if n not in kept and sizes[n] != others[n]]:
        if sizes[name] == 1:
            b, b_names = _sum(b, b_names, [name])
            a, a_names = (
                a.squeeze(a_names.index(name)),
                [n for n in a_names if n != name],
            )
        else:
            a, a_names = _sum(a, a_names, [name])
            b, b_names = (
                b.squeeze(b_names.index(name)),
                [n for n in b_names if n != name],
            )
    batch = [n for n in a_names if n in b_names and n not in summed]
    rows = [n for n in a_names if n not in b_names]
    columns = [n for n in b_names if n not in a_names]
    names = batch + rows + columns
    if not summed:
        return _arrange(a, a_names, names) * _arrange(b, b_names, names), names
    a = _arrange(a, a_names, batch + rows + summed)
    b = _arrange(b, b_names, batch + summed + columns)
    at = len(batch)
    shape = [
        max(n, m) if 0 not in (n, m) else 0
        for n, m in zip(a.shape[:at], b.shape, strict=False)
    ]
    a_rest, b_rest = list(a.shape[at:]), list(b.shape[at:])
    a = a.expand(shape + a_rest).reshape(
        [_size(shape), _size(a_rest[: len(rows)]), _size(a_rest[len(rows) :])]
    )
    b = b.expand(shape + b_rest).reshape(
        [_size(shape), _size(b_rest[: len(summed)]), _size(b_rest[len(summed) :])]
    )
    product = a[0] @ b[0] if not batch else a.bmm(b)
    return product.reshape(shape + a_rest[: len(rows)] + b_rest[len(summed) :]), names


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
        raise ValueError(
            "einsum(): give an equation and Tensors, or Tensors each with a list"
        )
    if isinstance(args[0], _C.Tensor):
        operands, terms, output = _read_lists(args)
        equation = None
    else:
        equation, operands = args[0], list(args[1:])
        if not isinstance(equation, str):
            raise TypeError(f"einsum(): the equation is {equation!r}; give a str")
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
    for i, x in enumerate(operands):
        if not isinstance(x, _C.Tensor):
            raise TypeError(
                f"einsum(): operand {i} is a {type(x).__name__}; give Tensors"
            )
    if not operands:
        raise ValueError("einsum(): no operands were given; give at least one")
    if equation is not None:
        terms, output = _read_equation(equation, len(operands))
    terms, output = _spread(terms, output, operands)

    pairs = [_take_diagonals(x, t) for x, t in zip(operands, terms, strict=True)]
    sizes: dict = {}
    for i, (x, names) in enumerate(pairs):
        for name, size in zip(names, x.shape, strict=True):
            known = sizes.setdefault(name, size)
            if known == 1:
                sizes[name] = size
            elif size not in (1, known):
                _fail(
                    f"{name!r} has size {size} in operand {i} and {known} before; "
                    "give sizes that are the same or 1"
                )
    result, names = pairs[0]
    for i, (x, others) in enumerate(pairs[1:], 1):
        kept = {*output}.union(*(later for _, later in pairs[i + 1 :]))
        result, names = multiply(result, names, x, others, kept)
    result, names = _sum(result, names, [n for n in names if n not in output])
    result = _arrange(result, names, output)
    wanted = [sizes[name] for name in output]
    return result if list(result.shape) == wanted else result.expand(wanted)
