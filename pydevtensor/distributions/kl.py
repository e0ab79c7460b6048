"""Kullback and Leibler's divergences: a table of formulas for pairs of classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor, linalg
from pydevtensor._names import publish as _publish
from pydevtensor.distributions.bernoulli import Bernoulli
from pydevtensor.distributions.beta import Beta
from pydevtensor.distributions.binomial import Binomial
from pydevtensor.distributions.categorical import Categorical
from pydevtensor.distributions.cauchy import Cauchy
from pydevtensor.distributions.dirichlet import Dirichlet
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.exponential import Exponential
from pydevtensor.distributions.gamma import Gamma
from pydevtensor.distributions.geometric import Geometric
from pydevtensor.distributions.gumbel import EULER, Gumbel
from pydevtensor.distributions.half_normal import HalfNormal
from pydevtensor.distributions.independent import Independent
from pydevtensor.distributions.laplace import Laplace
from pydevtensor.distributions.multivariate_normal import MultivariateNormal
from pydevtensor.distributions.normal import Normal
from pydevtensor.distributions.one_hot_categorical import OneHotCategorical
from pydevtensor.distributions.poisson import Poisson
from pydevtensor.distributions.transformed_distribution import TransformedDistribution
from pydevtensor.distributions.uniform import Uniform

__all__ = ["kl_divergence", "register_kl"]

_formulas: dict[tuple[type[Any], type[Any]], Callable[..., Any]] = {}


def register_kl(type_p: type[Any], type_q: type[Any]) -> Callable[..., Any]:
    """Decorate the function of p and q that is the divergence for these classes.

    It serves subclasses too, unless a nearer pair is registered.

    type_p  the class of p, of distributions, else TypeError
    type_q  the class of q

    >>> from pydevtensor import distributions
    >>> class Mine(distributions.Normal):
    ...     pass
    >>> @distributions.register_kl(Mine, Mine)
    ... def divergence(p, q):
    ...     return torch.tensor(7.0)
    >>> distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))
    tensor(7.)
    """
    for each in (type_p, type_q):
        if not isinstance(each, type) or not issubclass(each, Distribution):
            raise TypeError(f"{each!r} is not a class of distributions; give one")

    def register(formula: Callable[..., Any]) -> Callable[..., Any]:
        _formulas[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """How far q is from p: the mean of log p - log q over values of p.

    p  the distribution of the values
    q  the other one, of the same kind; NotImplementedError for pairs without a formula

    >>> from pydevtensor.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    # The nearest classes: the fewest steps up from the instances' own.
    best = min(
        (
            (type(p).__mro__.index(a) + type(q).__mro__.index(b), i, formula)
            for i, ((a, b), formula) in enumerate(_formulas.items())
            if isinstance(p, a) and isinstance(q, b)
        ),
        default=None,
    )
    if best is None:
        raise NotImplementedError(
            f"there is no divergence of {type(p).__name__} and {type(q).__name__}; "
            "register one with register_kl"
        )
    return best[2](p, q)


def _gap(p: Tensor, q: Tensor) -> Tensor:
    """p log(p / q), 0 where p is."""
    return p.xlogy(p) - p.xlogy(q)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    return _gap(p.probs, q.probs) + _gap(1 - p.probs, 1 - q.probs)


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("Binomial: p has fewer trials than q; give no fewer")
    rest = (-p.probs).log1p() - (-q.probs).log1p()
    found = p.total_count * (p.probs * (p.logits - q.logits) + rest)
    return torch.where(p.total_count > q.total_count, math.inf, found)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    found = p.probs * (p.logits - q.logits)
    found = torch.where((q.probs == 0).expand(found.shape), math.inf, found)
    return torch.where((p.probs == 0).expand(found.shape), 0.0, found).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    constant = a.sum(-1).lgamma() - b.sum(-1).lgamma()
    constant = constant - (a.lgamma() - b.lgamma()).sum(-1)
    return constant + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log()
        + b.lgamma()
        - a.lgamma()
        + (a - b) * a.digamma()
        + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, far = p.scale / q.scale, (q.loc - p.loc) / q.scale
    moved = (far + (1 + ratio).lgamma()).exp()
    return -ratio.log() - far + ratio * EULER + moved - (1 + EULER)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    far, ratio = (p.loc - q.loc).abs(), p.scale / q.scale
    return -ratio.log() + far / q.scale + ratio * (-far / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    far = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + far - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"the events have the shapes {tuple(p.event_shape)} and "
            f"{tuple(q.event_shape)}; give distributions of one size"
        )
    first, second = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    spread = linalg.solve_triangular(second, first, upper=False)
    z = (q.loc - p.loc).unsqueeze(-1)
    far = linalg.solve_triangular(second, z, upper=False).square().sum((-2, -1))
    total = spread.square().sum((-2, -1)) + far - p.event_shape[0]
    return q._logdet() - p._logdet() + 0.5 * total


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), math.inf, found)


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Tensor:
    wide = p.high - p.low
    first = (math.sqrt(2 * math.pi) * q.scale / wide).log()
    spread = wide.square() / 12
    far = ((p.high + p.low - 2 * q.loc) / 2).square()
    return first + 0.5 * (spread + far) / q.scale.square()


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    near = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return near.log() - (4 * p.scale * q.scale).log()


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("Independent: give as many dimensions in both")
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("the transforms differ; give the same to both")
    return kl_divergence(p.base_dist, q.base_dist)


_publish(__name__)
