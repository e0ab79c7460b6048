"""The parameters of families of distributions, and their consequences."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor.distributions import constraints
from pydevtensor.distributions.categorical import Categorical
from pydevtensor.distributions.distribution import Distribution, parameter, positive
from pydevtensor.distributions.transformed_distribution import TransformedDistribution
from pydevtensor.distributions.transforms import AbsTransform, Transform
from pydevtensor.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class _AroundLocation(Distribution):
    """Distributions whose most likely value is loc."""

    loc: Tensor

    @property
    def mode(self) -> Tensor:
        return self.loc


class _OfLocation(_AroundLocation):
    """Distributions of real numbers around loc, as wide as scale says."""

    scale: Tensor

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc


class _OfProbabilities(Distribution):
    """Distributions of probabilities, or of logarithms that say them."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        batch, event = self._take(probs, logits)
        super().__init__(batch, event, validate_args=validate_args)

    def _take(self, probs: Any, logits: Any) -> tuple[Any, Any]:
        """Keep what is given; returns the shapes of the batch and of an event."""
        raise NotImplementedError


class _WithTemperature(Distribution):
    """Distributions of probabilities, or of logarithms, and a temperature."""

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._begin(temperature, probs, logits, validate_args)

    def _begin(self, temperature: Any, *others: Any) -> None:
        """Keep what is given."""
        raise NotImplementedError


class _Relaxed(_WithTemperature, _OfProbabilities):
    """Continuous forms of distributions: nearly discrete if the temperature is low."""

    has_rsample = True

    def _begin(self, temperature: Any, *others: Any) -> None:
        self.temperature = temperature
        _OfProbabilities.__init__(self, *others)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        new: Any = super().expand(batch_shape, _instance)
        new.temperature = self.temperature  # which is for the whole batch
        return new


class _AfterRelaxed(_WithTemperature, TransformedDistribution):
    """The values of a relaxed distribution, transformed."""

    _relaxed: type[_Relaxed]
    _transform: type[Transform]

    def _begin(self, temperature: Any, *others: Any) -> None:
        base, step = self._relaxed(temperature, *others), self._transform()
        TransformedDistribution.__init__(self, base, step, validate_args=others[-1])

    temperature: Any = parameter("temperature", "How far values are from discrete.")
    probs: Any = parameter("probs", "Probabilities.")
    logits: Any = parameter("logits", "Logarithms that say them.")


class _OfSuccess(_OfProbabilities):
    """Distributions of the probability of a success, or of its odds.

    logits  in its place, the logarithm of the odds
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def _take(self, probs: Any, logits: Any) -> tuple[Any, Any]:
        (param,) = self._set_given(probs, logits)
        return param.shape, ()

    def _set_given(self, probs: Any, logits: Any, *others: Any) -> tuple[Any, ...]:
        """Keep the one that is given, after broadcasting; others come before it."""
        if (probs is None) == (logits is None):
            raise ValueError(f"{type(self).__name__}: give either probs or logits")
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        values = broadcast_all(*others, given)
        setattr(self, name, values[-1])
        return tuple(values)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of the odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)


class _OfCategories(_OfProbabilities):
    """Distributions of vectors that have an element for each category.

    probs   weights of the categories, a Tensor (..., k) that need not sum to 1
    logits  in their place, their logarithms up to a constant
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def _take(self, probs: Any, logits: Any) -> tuple[Any, Any]:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        return shape[:-1], shape[-1:]

    probs: Tensor = parameter("probs", "Probabilities.", "_categorical")
    logits: Tensor = parameter(
        "logits", "Logarithms of the probabilities.", "_categorical"
    )
    param_shape: Any = parameter(
        "param_shape", "The shape of the parameter.", "_categorical"
    )


class _OfIndicators(Distribution):
    """Distributions of elements that are 1 with a probability, else 0."""

    probs: Any
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)


class _OfPowers(Distribution):
    """Distributions of numbers x from 0 to 1, by powers of x and of 1 - x."""

    arg_constraints: ClassVar[Any] = positive("concentration1", "concentration0")
    support: Any = constraints.unit_interval

    def __init__(
        self,
        concentration1: Any,
        concentration0: Any,
        validate_args: bool | None = None,
    ) -> None:
        a, b = broadcast_all(concentration1, concentration0)
        self._begin(a, b, validate_args)

    def _begin(self, a: Tensor, b: Tensor, validate_args: bool | None) -> None:
        """Keep the two concentrations."""
        raise NotImplementedError


class _OfMagnitudes(TransformedDistribution):
    """Distributions of the magnitudes of numbers, as likely as their negatives."""

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support: Any = constraints.nonnegative
    _signed: type[Distribution]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._signed(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    scale: Any = parameter("scale", "The scale of the numbers.")

    @property
    def mode(self) -> Tensor:
        """0."""
        return torch.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        found = self.base_dist.log_prob(value) + math.log(2)
        return torch.where(value >= 0, found, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
