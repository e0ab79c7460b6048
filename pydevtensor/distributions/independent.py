"""Batches taken as one value."""

from __future__ import annotations

from typing import Any

from pydevtensor import Size, Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import Distribution, parameter

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dimensions become dimensions of one value.

    log_prob() and entropy() sum over them.

    base_distribution          the distribution
    reinterpreted_batch_ndims  how many of its batch dimensions, else ValueError

    >>> from pydevtensor.distributions import Independent, Normal
    >>> Independent(Normal(torch.zeros(2, 3), 1.0), 1).log_prob(torch.zeros(2, 3)).shape
    torch.Size([2])
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        count = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > count:
            raise ValueError(
                f"Independent: reinterpreted_batch_ndims is {reinterpreted_batch_ndims}"
                f" and there are {count} batch dimensions; give no more"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        at = len(shape) - event
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:at], shape[at:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        at = len(self.event_shape) - len(self.base_dist.event_shape)
        base = self.base_dist.expand(Size(batch_shape) + self.event_shape[:at])
        return type(self)(base, self.reinterpreted_batch_ndims, self._validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples pass gradients on."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether all values can be listed."""
        return not self.reinterpreted_batch_ndims and (
            self.base_dist.has_enumerate_support
        )

    @constraints.dependent_property
    def support(self) -> Any:
        """The base's set."""
        return constraints.independent(
            self.base_dist.support, self.reinterpreted_batch_ndims
        )

    mean: Any = parameter("mean", "The base's mean.")
    mode: Any = parameter("mode", "The base's most likely value.")
    variance: Any = parameter("variance", "The base's variance.")

    def _summed(self, x: Tensor) -> Tensor:
        count = self.reinterpreted_batch_ndims
        return x.sum(tuple(range(-count, 0))) if count else x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of the base, along a new first dimension.

        NotImplementedError unless reinterpreted_batch_ndims is 0.

        expand  repeat them for each of the batch, else give its sizes as 1
        """
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: values of several are not listed")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


_publish(__name__, described=True)
