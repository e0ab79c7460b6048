"""Sets of values: those that parameters may have, and supports of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor._names import publish as _publish

__all__ = ["Constraint", "boolean", "cat", "corr_cholesky", "dependent"]
__all__ += ["MixtureSameFamilyConstraint", "dependent_property", "stack"]
__all__ += ["greater_than"]
__all__ += ["greater_than_eq", "half_open_interval", "independent", "integer_interval"]
__all__ += ["interval", "is_dependent", "less_than", "lower_cholesky"]
__all__ += ["lower_triangular", "multinomial", "nonnegative", "nonnegative_integer"]
__all__ += ["one_hot", "positive", "positive_definite", "positive_integer", "real"]
__all__ += ["positive_semidefinite"]
__all__ += ["real_vector", "simplex", "square", "symmetric", "unit_interval"]


class Constraint:
    """A set of values. event_dim: how many dimensions one value has.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.positive.check(torch.tensor([-1.0, 2.0]))
    tensor([False,  True])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each value belongs to the set."""
        raise NotImplementedError(f"{type(self).__name__} has no check()")

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_") + "()"


class _Dependent(Constraint):
    """A set that depends on parameters; a call gives one with other properties.

    is_discrete, event_dim: those of all instances' sets; without them reading these
    raises NotImplementedError.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.dependent(is_discrete=False, event_dim=0).event_dim
    0
    """

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name: str) -> Any:
        value = getattr(self, "_" + name)
        if value is NotImplemented:
            raise NotImplementedError(
                f"{name} of a set that depends on parameters is not known; give it to "
                f"constraints.dependent({name}=...), or ask an instance's support"
            )
        return value

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return bool(self._known("is_discrete"))

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return int(self._known("event_dim"))

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> Any:
        return _Dependent(
            is_discrete=self._is_discrete
            if is_discrete is NotImplemented
            else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("the set depends on parameters; ask an instance's support")

    def __repr__(self) -> str:
        return "Dependent()"


class dependent_property(property, _Dependent):
    """A property of an instance that is a set; of the class it is `dependent`.

    fn: the method. is_discrete, event_dim: of the sets of all instances; without them
    the class's raise NotImplementedError.

    >>> from pydevtensor.distributions import constraints
    >>> from pydevtensor.distributions import Uniform
    >>> Uniform(0.0, 2.0).support.check(torch.tensor(1.0))
    tensor(True)
    """

    def __init__(
        self,
        fn: Any = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[..., Any]) -> dependent_property:  # type: ignore[override]
        return dependent_property(
            fn, is_discrete=self._is_discrete, event_dim=self._event_dim
        )

    def __repr__(self) -> str:
        return "DependentProperty()"


def is_dependent(constraint: Constraint) -> bool:
    """Whether the set depends on parameters.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.is_dependent(constraints.real)
    False
    """
    return isinstance(constraint, _Dependent)


class _Test(Constraint):
    """A set of values that meet a condition."""

    event_dim: int
    is_discrete: bool

    def __init__(
        self,
        name: str,
        test: Callable[..., Any],
        event_dim: int = 0,
        discrete: bool = False,
    ) -> None:
        self._name, self._test = name, test
        self.event_dim, self.is_discrete = event_dim, discrete

    def check(self, value: Tensor) -> Tensor:
        return self._test(value)

    def __repr__(self) -> str:
        return self._name


class _Range(Constraint):
    """Values between two bounds, each of which is included or excluded."""

    def __init__(
        self,
        name: str,
        lower_bound: Any = None,
        upper_bound: Any = None,
        closed: tuple[bool, bool] = (True, True),
        whole: bool = False,
    ) -> None:
        self._name = name
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self._closed, self.is_discrete = closed, whole

    def check(self, value: Tensor) -> Tensor:
        low, high = self.lower_bound, self.upper_bound
        inside = value == value
        if low is not None:
            inside = inside & (value >= low if self._closed[0] else value > low)
        if high is not None:
            inside = inside & (value <= high if self._closed[1] else value < high)
        return inside & (value % 1 == 0) if self.is_discrete else inside

    def __repr__(self) -> str:
        bounds = {"lower_bound": self.lower_bound, "upper_bound": self.upper_bound}
        shown = [f"{k}={v}" for k, v in bounds.items() if v is not None]
        return f"{self._name}({', '.join(shown)})"


class greater_than(_Range):
    """Numbers above lower_bound.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.greater_than(1).check(torch.tensor([1.0, 2.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Any) -> None:
        super().__init__("GreaterThan", lower_bound, closed=(False, True))


class greater_than_eq(_Range):
    """Numbers from lower_bound on.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.greater_than_eq(1).check(torch.tensor([0.0, 1.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Any) -> None:
        super().__init__("GreaterThanEq", lower_bound)


class less_than(_Range):
    """Numbers below upper_bound.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.less_than(1).check(torch.tensor([1.0, 0.0]))
    tensor([False,  True])
    """

    def __init__(self, upper_bound: Any) -> None:
        super().__init__("LessThan", None, upper_bound, (True, False))


class interval(_Range):
    """Numbers from lower_bound to upper_bound.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.interval(0, 1)
    Interval(lower_bound=0, upper_bound=1)
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__("Interval", lower_bound, upper_bound)


class half_open_interval(_Range):
    """Numbers from lower_bound up to but without upper_bound.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.half_open_interval(0, 1).check(torch.tensor([1.0, 0.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__("HalfOpenInterval", lower_bound, upper_bound, (True, False))


class integer_interval(_Range):
    """Whole numbers from lower_bound to upper_bound.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.integer_interval(0, 5).check(torch.tensor([0.5, 5.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__("IntegerInterval", lower_bound, upper_bound, whole=True)


class multinomial(Constraint):
    """Vectors of counts, 0 or more, that sum to upper_bound.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.multinomial(3).check(torch.tensor([1.0, 2.0]))
    tensor(True)
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        """Whether each vector belongs to the set."""
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class independent(Constraint):
    """Values of a set, the last dimensions taken as one value.

    >>> from pydevtensor.distributions import constraints
    >>> constraints.independent(constraints.positive, 1).check(torch.ones(2, 3))
    tensor([True, True])
    """

    def __init__(
        self, base_constraint: Constraint, reinterpreted_batch_ndims: int
    ) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if found.dim() < count:
            raise ValueError(
                f"the value has {found.dim()} dimensions; give {self.event_dim} or more"
            )
        return found.reshape(*found.shape[: found.dim() - count], -1).all(-1)

    def __repr__(self) -> str:
        count = self.reinterpreted_batch_ndims
        return f"IndependentConstraint({self.base_constraint!r}, {count})"


class _Several(Constraint):
    """Sets, each for a part of a value along a dimension."""

    cseq: list[Constraint]

    def __init__(self, cseq: Any, dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether one of the sets is."""
        return any(each.is_discrete for each in self.cseq)

    def __repr__(self) -> str:
        return type(self).__name__.capitalize() + "()"


class cat(_Several):
    """Values whose parts along a dimension are each of a set.

    cseq     the sets
    dim      the dimension
    lengths  how many positions each part has, 1 by default

    >>> from pydevtensor.distributions import constraints
    >>> constraints.cat([constraints.real, constraints.positive]).check(
    ...     torch.tensor([-1.0, -1.0])
    ... )
    tensor([ True, False])
    """

    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None) -> None:
        super().__init__(cseq, dim)
        self.lengths: list[int] = list(lengths or [1] * len(self.cseq))

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most dimensions that a value of a set has."""
        return max(each.event_dim for each in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        """Whether each value belongs to the set of its part."""
        parts = value.split(self.lengths, self.dim)
        pairs = zip(self.cseq, parts, strict=True)
        return torch.cat([each.check(part) for each, part in pairs], self.dim)


class stack(_Several):
    """Values whose positions along a dimension are each of a set.

    cseq  the sets, as many as positions
    dim   the dimension

    >>> from pydevtensor.distributions import constraints
    >>> constraints.stack([constraints.real, constraints.positive]).check(
    ...     torch.tensor([-1.0, -1.0])
    ... )
    tensor([ True, False])
    """

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most dimensions of a value, and one more where they come after dim."""
        most = max(each.event_dim for each in self.cseq)
        return most + (self.dim + most < 0)

    def check(self, value: Tensor) -> Tensor:
        """Whether each value belongs to the set of its position."""
        pairs = zip(self.cseq, value.unbind(self.dim), strict=True)
        return torch.stack([each.check(part) for each, part in pairs], self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """The values that each component of a mixture may have.

    base_constraint  the components' set

    >>> from pydevtensor.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive)
    MixtureSameFamilyConstraint(GreaterThan(lower_bound=0.0))
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete: bool = base_constraint.is_discrete
        self.event_dim: int = base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        """Whether each value belongs to the set, for all components."""
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return found.reshape(*found.shape[: value.dim() - self.event_dim], -1).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def _lower(x: Tensor) -> Tensor:
    return (x.tril() == x).reshape(*x.shape[:-2], -1).all(-1)


def _square(x: Tensor) -> Tensor:
    return torch.full(x.shape[:-2], x.shape[-2] == x.shape[-1], device=x.device)


def _symmetric(x: Tensor) -> Tensor:
    if x.shape[-2] != x.shape[-1]:
        return _square(x)
    return (torch.isclose(x, x.mT, atol=1e-6)).all(-1).all(-1)


def _positive_definite(x: Tensor) -> Tensor:
    from pydevtensor import linalg

    symmetric = _symmetric(x)
    if not symmetric.all():
        return symmetric
    return symmetric & (linalg.cholesky_ex(x.detach()).info == 0)


def _positive_semidefinite(x: Tensor) -> Tensor:
    from pydevtensor import linalg

    symmetric = _symmetric(x)
    if not symmetric.all():
        return symmetric
    return (linalg.eigvalsh(x.detach()) >= 0).all(-1)


def _corr_cholesky(x: Tensor) -> Tensor:
    unit = ((x.square().sum(-1) - 1).abs() <= 1e-4).all(-1)
    return unit & lower_cholesky.check(x)


def _simplex(x: Tensor) -> Tensor:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _one_hot(x: Tensor) -> Tensor:
    return ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1)


dependent: _Dependent = _Dependent()
boolean: _Test = _Test("Boolean()", lambda x: (x == 0) | (x == 1), 0, True)
real: _Test = _Test("Real()", lambda x: x == x)
real_vector: independent = independent(real, 1)
one_hot: _Test = _Test("OneHot()", _one_hot, 1, True)
simplex: _Test = _Test("Simplex()", _simplex, 1)
square: _Test = _Test("Square()", _square, 2)
symmetric: _Test = _Test("Symmetric()", _symmetric, 2)
lower_triangular: _Test = _Test("LowerTriangular()", _lower, 2)
lower_cholesky: _Test = _Test(
    "LowerCholesky()",
    lambda x: _lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1),
    2,
)
corr_cholesky: _Test = _Test("CorrCholesky()", _corr_cholesky, 2)
positive_definite: _Test = _Test("PositiveDefinite()", _positive_definite, 2)
positive_semidefinite: _Test = _Test(
    "PositiveSemidefinite()", _positive_semidefinite, 2
)
nonnegative_integer: Constraint = _Range("IntegerGreaterThan", 0, whole=True)
positive_integer: Constraint = _Range("IntegerGreaterThan", 1, whole=True)
positive: Constraint = greater_than(0.0)
nonnegative: Constraint = greater_than_eq(0.0)
unit_interval: Constraint = interval(0.0, 1.0)

_publish(__name__)
