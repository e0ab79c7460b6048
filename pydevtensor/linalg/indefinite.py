"""Factors of symmetric matrices that need not be positive definite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.autograd import Function
from pydevtensor.linalg import lapack

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor

_LEAST = (1 + math.sqrt(17)) / 8  # bounds the growth of the elements


def _size(x: Any) -> Any:
    """The magnitudes that pivots are compared by, LAPACK's."""
    return x.real.abs() + x.imag.abs() if x.is_complex() else x.abs()


def _pivot(S: Tensor, k: int) -> tuple[int, int]:
    """The row to exchange, and the order of the block: Bunch and Kaufman (1977)."""
    sizes = _size(S)
    own = float(sizes[k, k])
    if k + 1 == S.shape[0]:
        return k, 1
    row = k + 1 + int(sizes[k + 1 :, k].argmax())
    greatest = float(sizes[row, k])
    if own >= _LEAST * greatest:
        return k, 1
    others = sizes[row, k:].clone()
    others[row - k] = 0
    most = float(others.max())
    if own >= _LEAST * greatest * (greatest / most):
        return k, 1
    return row, 1 if float(sizes[row, row]) >= _LEAST * most else 2


def _factor(A: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, int]:
    """L and D in one matrix, the pivots, and the index of a 0 in D, or 0."""
    n, low = A.shape[-1], A.tril(-1)
    diagonal = A.diagonal().real if hermitian and A.is_complex() else A.diagonal()
    S = low + (low.mH if hermitian else low.mT) + _C.diag(diagonal).to(A.dtype)
    LD, pivots, info, k = _C.zeros_like(S), [0] * n, 0, 0
    while k < n:
        row, order = _pivot(S, k)
        last = k + order - 1
        if row != last:
            both, turned = [last, row], [row, last]
            S[both, k:] = S[turned, k:]
            S[k:, both] = S[k:, turned]
        pivots[k : last + 1] = [row + 1] if order == 1 else [-row - 1] * 2
        block, below = S[k : last + 1, k : last + 1], S[last + 1 :, k : last + 1]
        LD[k : last + 1, k : last + 1] = block.tril()
        if order == 1 and not block.item():
            info = info or k + 1
        else:
            inverse = 1 / block if order == 1 else _inverse(block)
            factors = below @ inverse
            LD[last + 1 :, k : last + 1] = factors
            S[last + 1 :, last + 1 :] -= factors @ (below.mH if hermitian else below.mT)
        k = last + 1
    return LD, _C.tensor(pivots, dtype=_C.int32, device=A.device), info


def _inverse(block: Tensor) -> Tensor:
    (a, b), (c, d) = block.unbind()[0].unbind(), block.unbind()[1].unbind()
    rows = [_C.stack([d, -b]), _C.stack([-c, a])]
    return _C.stack(rows) / (a * d - b * c)


class _Factors(Function):
    @staticmethod
    def forward(ctx: Any, A: Tensor, hermitian: bool) -> Any:
        n, batch = A.shape[-1], A.shape[:-2]
        found = [_factor(each, hermitian) for each in A.reshape(-1, n, n).unbind()]
        infos = _C.tensor([info for *_, info in found], dtype=_C.int32, device=A.device)
        if not found:
            pivots = A.new_zeros(*batch, n, dtype=_C.int32)
            return A.clone(), pivots, infos.reshape(batch)
        pivots = _C.stack([p for _, p, _ in found]).reshape(*batch, n)
        ctx.mark_non_differentiable(pivots, infos)
        LD = _C.stack([LD for LD, *_ in found]).reshape(A.shape)
        return LD, pivots, infos.reshape(batch)

    @staticmethod
    def backward(ctx: Any, *unused: Any) -> Any:
        raise RuntimeError(
            "linalg.ldl_factor has no derivative; use linalg.solve() or eigh()"
        )


def _factored(A: Tensor, hermitian: bool, checks: bool) -> tuple[Tensor, ...]:
    lapack.square(A)
    found: tuple[Tensor, ...] = _Factors.apply(A, hermitian)
    if checks:
        message = "is singular: element {0} of D's diagonal is 0, from 1"
        lapack.succeeded(found[2], message)
    return found


@function(out=True, results=("LD", "pivots"))
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> tuple[Tensor, ...]:
    """L and D of P A P^T = L D L^T in one matrix, for ldl_solve(): (LD, pivots).

    D has blocks of order 1 and 2, the pivots are LAPACK's, and only the lower triangle
    of A is read. It is computed column by column, which takes long for a large A, and
    has no gradient; see solve(). LinAlgError where D is singular.

    hermitian: L^H in place of L^T, for a complex A that is Hermitian.

    >>> import pydevtensor as torch
    >>> torch.linalg.ldl_factor(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).pivots
    tensor([-2, -2], dtype=torch.int32)
    """
    return _factored(A, hermitian, True)[:2]


@function(out=True, results=("LD", "pivots", "info"))
def ldl_factor_ex(
    A: Tensor, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Tensor, ...]:
    """ldl_factor() that does not raise: (LD, pivots, info).

    A and hermitian are those of ldl_factor(). info, int32, is 0, or the index on D's
    diagonal, from 1, of a 0. check_errors: raise LinAlgError where there is one.

    >>> import pydevtensor as torch
    >>> torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info
    tensor(1, dtype=torch.int32)
    """
    return _factored(A, hermitian, check_errors)


@function(out=True)
def ldl_solve(
    LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False
) -> Tensor:
    """X of A X = B, from ldl_factor(A).

    LD, pivots  the results of ldl_factor()
    B           (..., n, k)
    hermitian   the same as in ldl_factor()

    RuntimeError for shapes and types that do not fit.

    >>> import pydevtensor as torch
    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[2.0], [3.0]]))
    tensor([[3.],
            [2.]])
    """
    lapack.check_factors("LD", LD, pivots, B)
    n = LD.shape[-1]
    batch = _C.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    parts = [
        _solved(each, [*map(int, p.tolist())], b, hermitian)
        for each, p, b in zip(
            LD.expand(*batch, n, n).reshape(-1, n, n).unbind(),
            pivots.expand(*batch, n).reshape(-1, n).unbind(),
            B.expand(*batch, *B.shape[-2:]).reshape(-1, *B.shape[-2:]).unbind(),
            strict=True,
        )
    ]
    return _C.stack(parts).reshape(*batch, *B.shape[-2:]) if parts else B.clone()


def _solved(LD: Tensor, pivots: list[int], B: Tensor, hermitian: bool) -> Tensor:
    """One matrix: a block of L after another, those of D, and back."""
    n, k = LD.shape[-1], 0
    blocks = []
    while k < n:
        blocks.append((k, 1 if pivots[k] > 0 else 2))
        k += blocks[-1][1]
    x = B.clone()
    for k, order in blocks:
        last, row = k + order - 1, abs(pivots[k]) - 1
        x = _exchanged(x, last, row)
        own = slice(k, last + 1)
        x[last + 1 :] -= LD[last + 1 :, own] @ x[own]
        block = LD[own, own]
        low = block.tril(-1)
        block = block + (low.mH if hermitian else low.mT)
        x[own] = (1 / block if order == 1 else _inverse(block)) @ x[own]
    for k, order in reversed(blocks):
        last, row = k + order - 1, abs(pivots[k]) - 1
        factors = LD[last + 1 :, k : last + 1]
        x[k : last + 1] -= (factors.mH if hermitian else factors.mT) @ x[last + 1 :]
        x = _exchanged(x, last, row)
    return x


def _exchanged(x: Tensor, i: int, j: int) -> Tensor:
    order = [*range(x.shape[0])]
    order[i], order[j] = j, i
    return x if i == j else x[order]
