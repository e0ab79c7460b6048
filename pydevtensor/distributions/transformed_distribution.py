"""Distributions of functions of random values."""

from __future__ import annotations

from typing import Any

from pydevtensor import Size, Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.independent import Independent
from pydevtensor.distributions.transforms import ComposeTransform, Transform

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of a base distribution's values after transforms.

    base_distribution  the distribution of the values before
    transforms         a Transform or a list of them, the first one first, else
                       ValueError

    >>> from pydevtensor.distributions import Normal, TransformedDistribution
    >>> from pydevtensor.distributions.transforms import ExpTransform
    >>> normal = Normal(0.0, 1.0)
    >>> TransformedDistribution(normal, ExpTransform()).log_prob(torch.tensor(1.0))
    tensor(-0.9189)
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Any,
        validate_args: bool | None = None,
    ) -> None:
        parts: Any = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(parts, list) or not all(
            isinstance(t, Transform) for t in parts
        ):
            raise ValueError(
                f"TransformedDistribution: transforms is {transforms!r}; give a "
                "Transform or a list of them"
            )
        self.transforms: list[Transform] = parts
        base = base_distribution
        shape = base.batch_shape + base.event_shape
        whole = ComposeTransform(parts)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"TransformedDistribution: the base has {len(shape)} dimensions and "
                f"the transforms take {whole.domain.event_dim}; give a larger base"
            )
        wanted = whole.forward_shape(shape)
        base_shape = whole.inverse_shape(wanted)
        if base_shape != shape:
            base = base.expand(base_shape[: len(base_shape) - len(base.event_shape)])
        more = whole.domain.event_dim - len(base.event_shape)
        self.base_dist: Distribution = Independent(base, more) if more > 0 else base
        into, out = whole.domain.event_dim, whole.codomain.event_dim
        event = out + max(len(base.event_shape) - into, 0)
        at = len(wanted) - event
        super().__init__(wanted[:at], wanted[at:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        new = type(self).__new__(type(self)) if _instance is None else _instance
        whole = ComposeTransform(self.transforms)
        shape = whole.inverse_shape(Size(batch_shape) + self.event_shape)
        at = len(shape) - len(self.base_dist.event_shape)
        new.__dict__.update(self.__dict__)
        new.base_dist = self.base_dist.expand(shape[:at])
        new._batch_shape = Size(batch_shape)
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        """The support: the codomain of the last transform."""
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether the base passes gradients on."""
        return self.base_dist.has_rsample

    def _moved(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            return self._moved(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._moved(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at value: the base's, less what volumes gain.

        value  of the shape of a sample; it broadcasts with the batch
        """
        y = self._checked(value)
        gained: Any = 0.0
        dims = len(self.event_shape)
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            found = transform.log_abs_det_jacobian(x, y)
            count = dims - transform.domain.event_dim
            gained = gained - (found.sum(tuple(range(-count, 0))) if count else found)
            y = x
        found = self.base_dist.log_prob(y)
        count = dims - len(self.base_dist.event_shape)
        return gained + (found.sum(tuple(range(-count, 0))) if count else found)

    def _turned(self, part: Tensor) -> Tensor:
        """part, or 1 - part where the transforms decrease."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return part
        return sign * (part - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._moved(self.base_dist.icdf(self._turned(value)))


class Remade(TransformedDistribution):
    """Distributions that expand() makes again, of parameters that it has expanded."""

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        kind: Any = type(self)
        values = {n: getattr(self, n).expand(batch_shape) for n in self.arg_constraints}
        return kind(**values, validate_args=False)


_publish(__name__, described=True)
