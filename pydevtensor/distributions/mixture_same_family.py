"""Mixtures."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from pydevtensor import Size, Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions.categorical import Categorical
from pydevtensor.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: a Categorical chooses one of the last batch dimension of another.

    ValueError for shapes that do not fit.

    mixture_distribution    what chooses, a Categorical of k categories, else ValueError
    component_distribution  the k components, the last batch dimension

    >>> from pydevtensor.distributions import Categorical, MixtureSameFamily, Normal
    >>> normal = Normal(torch.tensor([-1.0, 1.0]), 1.0)
    >>> MixtureSameFamily(Categorical(torch.ones(2)), normal).mean
    tensor(0.)
    """

    def __init__(
        self,
        mixture_distribution: Distribution,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(
                f"MixtureSameFamily: the mixture is a {type(mixture).__name__}; give a "
                "Categorical"
            )
        if not isinstance(component, Distribution):
            raise ValueError(
                f"MixtureSameFamily: the component is a {type(component).__name__}; "
                "give a Distribution"
            )
        batch = component.batch_shape[:-1]
        for i, j in zip(reversed(mixture.batch_shape), reversed(batch), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"MixtureSameFamily: the batches {mixture.batch_shape} do "
                    f"not fit the component's {component.batch_shape}"
                )
        if mixture.logits.shape[-1] != component.batch_shape[-1]:
            raise ValueError(
                f"MixtureSameFamily: the mixture has {mixture.param_shape[-1]} "
                f"categories and there are {component.batch_shape[-1]} components"
            )
        self._mixture_distribution = mixture
        self._component_distribution = component
        self._event_ndims = len(component.event_shape)
        super().__init__(batch, component.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        count = self._component_distribution.batch_shape[-1:]
        return type(self)(
            self._mixture_distribution.expand(batch_shape),
            self._component_distribution.expand(Size(batch_shape) + count),
            self._validate_args,
        )

    mixture_distribution = property(
        attrgetter("_mixture_distribution"),
        doc="The Categorical that chooses a component.",
    )
    component_distribution = property(
        attrgetter("_component_distribution"),
        doc="The distribution of the components.",
    )

    @constraints.dependent_property
    def support(self) -> Any:
        """The component's set."""
        return self._component_distribution.support

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        component = self._component_distribution
        return (self._weights() * component.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        at, component = -1 - self._event_ndims, self._component_distribution
        weights = self._weights()
        within = (weights * component.variance).sum(at)
        far = (component.mean - self.mean.unsqueeze(at)).square()
        return within + (weights * far).sum(at)

    def cdf(self, value: Tensor) -> Tensor:
        parts = self._component_distribution.cdf(self._padded(self._checked(value)))
        return (parts * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._padded(self._checked(value))
        found = self._component_distribution.log_prob(value)
        weights = self._mixture_distribution.logits
        return (found + weights.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with no_grad():
            at = len(Size(sample_shape)) + len(self._batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            shape = chosen.shape + Size([1] * (self._event_ndims + 1))
            index = chosen.reshape(shape).expand(
                chosen.shape + Size([1]) + self._event_shape
            )
            return drawn.gather(at, index).squeeze(at)

    def _padded(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution},\n  "
            f"{self._component_distribution})"
        )


_publish(__name__, described=True)
