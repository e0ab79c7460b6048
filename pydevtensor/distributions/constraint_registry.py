"""Which function reaches each set: transform_to any, biject_to one to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Finds a transform onto a set.

    Called with constraint, a set, it gives a Transform whose values are in it;
    NotImplementedError where none is registered. biject_to gives one that is bijective,
    transform_to any.

    >>> from pydevtensor.distributions import constraints, transform_to
    >>> transform_to(constraints.positive)(torch.tensor(0.0))
    tensor(1.)
    """

    def __init__(self) -> None:
        self._made: dict[Any, Callable[..., Any]] = {}

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Let a function make the transform for this set, or this class of sets.

        constraint  the set, or its class
        factory     takes the set and gives a Transform; without it: a decorator
        """
        if factory is None:
            return lambda given: self.register(constraint, given)
        self._made[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        for key in (constraint, type(constraint)):
            if key in self._made:
                return self._made[key](constraint)
        raise NotImplementedError(
            f"there is no transform onto {constraint!r}; register one"
        )


biject_to: ConstraintRegistry = ConstraintRegistry()
transform_to: ConstraintRegistry = ConstraintRegistry()


def _range(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if low is not None and high is not None:
        sigmoid = transforms.SigmoidTransform()
        if isinstance(low, float) and (low, high) == (0.0, 1.0):
            return sigmoid
        return transforms.ComposeTransform(
            [sigmoid, transforms.AffineTransform(low, high - low)]
        )
    exponential = transforms.ExpTransform()
    if isinstance(low, float) and low == 0:
        return exponential
    shift = (high, -1) if low is None else (low, 1)
    return transforms.ComposeTransform(
        [exponential, transforms.AffineTransform(*shift)]
    )


for _registry in (biject_to, transform_to):
    _registry.register(constraints.real, lambda c: transforms.identity_transform)
    for _kind in (
        constraints.greater_than,
        constraints.greater_than_eq,
        constraints.less_than,
        constraints.interval,
        constraints.half_open_interval,
    ):
        _registry.register(_kind, _range)

    @_registry.register(constraints.independent)
    def _independent(c: Any, registry: ConstraintRegistry = _registry) -> Any:
        return transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        )


biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(
    constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform()
)

transform_to.register(
    constraints.positive_definite, lambda c: transforms.PositiveDefiniteTransform()
)
transform_to.register(
    constraints.positive_semidefinite, lambda c: transforms.PositiveDefiniteTransform()
)
for _registry in (biject_to, transform_to):
    _registry.register(
        constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform()
    )

    @_registry.register(constraints.cat)
    def _cat(c: Any, registry: ConstraintRegistry = _registry) -> Any:
        parts = [registry(each) for each in c.cseq]
        return transforms.CatTransform(parts, c.dim, c.lengths)

    @_registry.register(constraints.stack)
    def _stack(c: Any, registry: ConstraintRegistry = _registry) -> Any:
        return transforms.StackTransform([registry(each) for each in c.cseq], c.dim)


_publish(__name__)
