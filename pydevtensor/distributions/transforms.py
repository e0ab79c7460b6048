"""Invertible functions with the logarithms of their Jacobians' determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, finfo
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.nn import functional as F

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform"]
__all__ += ["CorrCholeskyTransform", "CumulativeDistributionTransform"]
__all__ += ["ExpTransform", "PositiveDefiniteTransform", "StackTransform"]
__all__ += ["IndependentTransform", "LowerCholeskyTransform", "PowerTransform"]
__all__ += ["ReshapeTransform", "SigmoidTransform", "SoftmaxTransform"]
__all__ += ["SoftplusTransform", "StickBreakingTransform", "TanhTransform", "Transform"]
__all__ += ["identity_transform"]


def _sum_last(x: Tensor, count: int) -> Tensor:
    return x.sum(tuple(range(-count, 0))) if count else x


class Transform:
    """The base of functions y = t(x).

    A subclass defines _call, _inverse and log_abs_det_jacobian; t.inv is the inverse.

    cache_size  1: keep the last x and y, so that inv gives x itself back, without
                rounding; 0: none; ValueError for another

    >>> from pydevtensor.distributions.transforms import ExpTransform
    >>> ExpTransform().inv(torch.tensor(1.0))
    tensor(0.)
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size is {cache_size}; give 0 or 1")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many dimensions one value has; ValueError where x's and y's differ."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError(
            f"a value of x has {self.domain.event_dim} dimensions, and one of y "
            f"{self.codomain.event_dim}; ask domain and codomain"
        )

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _Inverse(self)

    @property
    def sign(self) -> Any:
        """1 for an increasing function, -1 for a decreasing one."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same function, which keeps its last value or not.

        cache_size  1: keep x and y; 0: do not
        """
        if self._cache_size == cache_size:
            return self
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__, _cache_size=cache_size, _cached=(None, None))
        return new

    def __call__(self, x: Tensor) -> Tensor:
        known, y = self._cached
        return y if self._cache_size and x is known else self._kept(x, self._call(x))[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        x, known = self._cached
        if self._cache_size and y is known:
            return x
        return self._kept(self._inverse(y), y)[0]

    def _kept(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._cached = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call()")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of |dy/dx|, of a vector x that of the matrix's determinant.

        x  where
        y  the function's value there
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no log_abs_det_jacobian()"
        )

    def forward_shape(self, shape: Any) -> Any:
        """The shape of y for x's.

        shape  the shape of x, sizes
        """
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of x for y's.

        shape  the shape of y, sizes
        """
        return shape

    def _parameters(self) -> tuple[Any, ...]:
        return tuple(v for k, v in sorted(self.__dict__.items()) if k[0] != "_")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        assert isinstance(other, Transform)
        pairs = zip(self._parameters(), other._parameters(), strict=True)
        return all(
            bool((a == b).all()) if isinstance(a, Tensor) else a == b for a, b in pairs
        )

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self.transform = transform

    @property
    def domain(self) -> Any:
        return self.transform.codomain

    @property
    def codomain(self) -> Any:
        return self.transform.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.transform.bijective

    @property
    def sign(self) -> Any:
        return self.transform.sign

    @property
    def inv(self) -> Transform:
        return self.transform

    def __call__(self, x: Tensor) -> Tensor:
        return self.transform._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.transform.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self.transform!r})"


class ComposeTransform(Transform):
    """Functions one after the other, the first one first.

    Called with x, returns the result of the last part; without parts, x itself.

    parts       the functions, a list of Transforms
    cache_size  1: let each part keep its last x and y; 0: keep their settings

    >>> from pydevtensor.distributions.transforms import *
    >>> ComposeTransform([ExpTransform(), AffineTransform(1, 2)])(torch.tensor(0.0))
    tensor(3.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts: list[Transform] = [
            part.with_cache(cache_size) if cache_size else part for part in parts
        ]

    def _dims(self) -> tuple[int, int]:
        """How many dimensions x and y of one value have."""
        if not self.parts:
            return 0, 0
        first, last = self.parts[0].domain, self.parts[-1].codomain
        into, out = first.event_dim, last.event_dim
        for part in reversed(self.parts):
            out += part.domain.event_dim - part.codomain.event_dim
            out = max(out, part.domain.event_dim)
        down = into
        into = max(out, into)
        for part in self.parts:
            down = max(down, part.domain.event_dim)
            down += part.codomain.event_dim - part.domain.event_dim
        return into, max(down, last.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The set of x."""
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        more = self._dims()[0] - domain.event_dim
        return constraints.independent(domain, more) if more > 0 else domain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The set of y."""
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        more = self._dims()[1] - codomain.event_dim
        return constraints.independent(codomain, more) if more > 0 else codomain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Transform:
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the parts'.

        x  where the first part is
        y  the result of the last part
        """
        if not self.parts:
            return torch.zeros_like(x)
        dims = self._dims()[0]
        total: Any = 0.0
        for place, part in enumerate(self.parts):
            z = y if place == len(self.parts) - 1 else part(x)
            found = part.log_abs_det_jacobian(x, z)
            total = total + _sum_last(found, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = z
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"ComposeTransform(\n    {parts}\n)"


class IndependentTransform(Transform):
    """A function whose last batch dimensions become dimensions of one value.

    log_abs_det_jacobian() sums over them.

    base_transform             the function, a Transform
    reinterpreted_batch_ndims  how many dimensions
    cache_size                 1: keep the last x and y, so that inv gives x itself
                               back; 0: none

    >>> from pydevtensor.distributions.transforms import *
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(
    ...     torch.ones(3), torch.ones(3)
    ... )
    tensor(3.)
    """

    def __init__(
        self,
        base_transform: Transform,
        reinterpreted_batch_ndims: int,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective: bool = base_transform.bijective

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The base's, of values of more dimensions."""
        base, count = self.base_transform, self.reinterpreted_batch_ndims
        return constraints.independent(base.domain, count)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The base's, of values of more dimensions."""
        base, count = self.base_transform, self.reinterpreted_batch_ndims
        return constraints.independent(base.codomain, count)

    @property
    def sign(self) -> Any:
        """The base's."""
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The base's, summed over the dimensions of one value.

        x  where
        y  the function's value there
        """
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_last(found, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        count = self.reinterpreted_batch_ndims
        return f"{type(self).__name__}({self.base_transform!r}, {count})"


class ReshapeTransform(Transform):
    """Another shape for the last dimensions.

    ValueError for shapes of other numbers of elements.

    in_shape   the last sizes of x
    out_shape  the last sizes of y

    >>> from pydevtensor.distributions.transforms import *
    >>> ReshapeTransform((4,), (2, 2))(torch.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    in_shape: torch.Size
    out_shape: torch.Size

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = torch.Size(in_shape), torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape is {tuple(in_shape)} and out_shape {tuple(out_shape)}; give "
                "shapes of as many elements"
            )

    @constraints.dependent_property
    def domain(self) -> Any:
        """Values of in_shape's dimensions."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Values of out_shape's dimensions."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """0, since volumes stay.

        x  where; the result has its batch shape
        y  of no effect
        """
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return torch.Size(shape)[: len(shape) - len(self.in_shape)] + self.out_shape

    def inverse_shape(self, shape: Any) -> Any:
        return torch.Size(shape)[: len(shape) - len(self.out_shape)] + self.in_shape


class SoftmaxTransform(Transform):
    """y = softmax(x), which has no one inverse; inv gives logarithms.

    >>> from pydevtensor.distributions.transforms import *
    >>> SoftmaxTransform()(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        weights = (x - x.amax(-1, keepdim=True)).exp()
        return weights / weights.sum(-1, keepdim=True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """Vectors of n - 1 numbers to vectors of n positive ones that sum to 1.

    Each number takes a part of the remaining length.

    >>> from pydevtensor.distributions.transforms import *
    >>> StickBreakingTransform()(torch.zeros(1))
    tensor([0.5000, 0.5000])
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _offset(self, x: Tensor) -> Tensor:
        left = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        return left.log()

    def _call(self, x: Tensor) -> Tensor:
        z = SigmoidTransform()(x - self._offset(x))
        rest = (1 - z).cumprod(-1)
        one = z.new_ones(*z.shape[:-1], 1)
        return torch.cat([z, one], -1) * torch.cat([one, rest], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        rest = (1 - head.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return head.log() - rest.log() + self._offset(head)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over the parts.

        x  where, (..., n - 1)
        y  the function's value there, (..., n)
        """
        x = x - self._offset(x)
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        """One element more than x has.

        shape  the shape of x, sizes
        """
        return torch.Size(shape)[:-1] + torch.Size([shape[-1] + 1])

    def inverse_shape(self, shape: Any) -> Any:
        """One element less than y has.

        shape  the shape of y, sizes
        """
        return torch.Size(shape)[:-1] + torch.Size([shape[-1] - 1])


class LowerCholeskyTransform(Transform):
    """Matrices to lower triangular ones with a positive diagonal.

    >>> from pydevtensor.distributions.transforms import *
    >>> LowerCholeskyTransform()(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain: Any = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


identity_transform: ComposeTransform = ComposeTransform([])


from pydevtensor.distributions._composed import (  # noqa: E402
    CatTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    PositiveDefiniteTransform,
    StackTransform,
)
from pydevtensor.distributions._elementwise import (  # noqa: E402
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
)

_publish(
    __name__,
    home_of=[name for name in __all__ if name[0].isupper()],
    described=True,
)
