"""Divergences of distributions of different families of numbers.

The divergence of p and q is the mean of log p - log q over values of p: without p's
entropy, the mean of -log q. For these families log q is a sum of a few functions of a
value x: x itself, its square, log x, log(1 - x) and exp(-x / scale), whose means over p
are in the tables here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor import Tensor
from pydevtensor.distributions.bernoulli import Bernoulli
from pydevtensor.distributions.beta import Beta
from pydevtensor.distributions.binomial import Binomial
from pydevtensor.distributions.continuous_bernoulli import ContinuousBernoulli
from pydevtensor.distributions.distribution import Distribution
from pydevtensor.distributions.exp_family import ExponentialFamily
from pydevtensor.distributions.exponential import Exponential
from pydevtensor.distributions.gamma import Gamma
from pydevtensor.distributions.gumbel import EULER, Gumbel
from pydevtensor.distributions.kl import kl_divergence, register_kl
from pydevtensor.distributions.laplace import Laplace
from pydevtensor.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
)
from pydevtensor.distributions.multivariate_normal import MultivariateNormal
from pydevtensor.distributions.normal import Normal
from pydevtensor.distributions.pareto import Pareto
from pydevtensor.distributions.poisson import Poisson
from pydevtensor.distributions.uniform import Uniform

_Mean = Callable[..., Tensor]


def _log_of_uniform(low: Tensor, high: Tensor) -> Tensor:
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


# The mean of log x over values of p.
_MEAN_LOG: dict[type[Any], _Mean] = {
    Beta: lambda p: (
        p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    ),
    Exponential: lambda p: -p.rate.log() - EULER,
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + 1 / p.alpha,
    Uniform: lambda p: _log_of_uniform(p.low, p.high),
}
# The mean of log(1 - x).
_MEAN_LOG_REST: dict[type[Any], _Mean] = {
    Uniform: lambda p: _log_of_uniform(1 - p.high, 1 - p.low)
}
# The mean of exp(-x / scale).
_MEAN_EXP: dict[type[Any], _Mean] = {
    Exponential: lambda p, scale: p.rate / (p.rate + 1 / scale),
    Gamma: lambda p, scale: (1 + 1 / (p.rate * scale)).pow(-p.concentration),
    Normal: lambda p, scale: ((p.variance / (2 * scale) - p.loc) / scale).exp(),
    Uniform: lambda p, scale: (
        ((-p.low / scale).exp() - (-p.high / scale).exp()) * scale / (p.high - p.low)
    ),
}


def _gamma_mean(q: Any, p: Any) -> Tensor:
    a, rate = q.concentration, q.rate
    known = a * rate.log() - a.lgamma() - rate * p.mean
    return known + (a - 1) * _of(_MEAN_LOG, p)


def _beta_mean(q: Any, p: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    constant = a.lgamma() + b.lgamma() - (a + b).lgamma()
    logs = (a - 1) * _of(_MEAN_LOG, p) + (b - 1) * _of(_MEAN_LOG_REST, p)
    return logs - constant


def _normal_mean(q: Any, p: Any) -> Tensor:
    spread = p.variance + (p.mean - q.loc).square()
    return -spread / (2 * q.scale.square()) - (math.sqrt(2 * math.pi) * q.scale).log()


def _gumbel_mean(q: Any, p: Any) -> Tensor:
    moved = (q.loc / q.scale).exp() * _of(_MEAN_EXP, p, q.scale)
    return -(p.mean - q.loc) / q.scale - moved - q.scale.log()


def _laplace_mean(q: Any, p: Any) -> Tensor:
    if not isinstance(p, Normal):
        raise _lacking(p, q)
    z = (p.loc - q.loc) / p.scale
    density = (-z.square() / 2).exp() * math.sqrt(2 / math.pi)
    far = p.scale * (density + z * (z / math.sqrt(2)).erf())
    return -far / q.scale - (2 * q.scale).log()


# The mean of log q over values of p.
_MEAN_LOG_Q: dict[type[Any], _Mean] = {
    Beta: _beta_mean,
    ContinuousBernoulli: lambda q, p: (
        p.mean * q.logits + (-q.probs).log1p() + q._log_norm()
    ),
    Exponential: lambda q, p: q.rate.log() - q.rate * p.mean,
    Gamma: _gamma_mean,
    Gumbel: _gumbel_mean,
    Laplace: _laplace_mean,
    Normal: _normal_mean,
    Pareto: lambda q, p: (
        q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _of(_MEAN_LOG, p)
    ),
    Uniform: lambda q, p: -(q.high - q.low).log(),
}
_UNIT = (Beta, ContinuousBernoulli)
_POSITIVE = (Exponential, Gamma)


def _bounds(p: Any) -> tuple[Any, Any]:
    """Between which numbers values of p are."""
    if isinstance(p, Uniform):
        return p.low, p.high
    if isinstance(p, Pareto):
        return p.scale, math.inf
    low = 0.0 if isinstance(p, _UNIT + _POSITIVE) else -math.inf
    return low, 1.0 if isinstance(p, _UNIT) else math.inf


def _lacking(p: Distribution, q: Distribution) -> NotImplementedError:
    return NotImplementedError(
        f"there is no divergence of {type(p).__name__} and {type(q).__name__}; "
        "register one with register_kl"
    )


def _of(table: dict[type[Any], _Mean], p: Distribution, *args: Any) -> Tensor:
    for kind in type(p).__mro__:
        if kind in table:
            return table[kind](p, *args)
    raise _lacking(p, p)


def _mixed(p: Any, q: Any) -> Tensor:
    (low, high), (least, most) = _bounds(p), _bounds(q)
    entropy = p.entropy()
    like = torch.zeros(
        torch.broadcast_shapes(p.batch_shape, q.batch_shape),
        dtype=entropy.dtype,
        device=entropy.device,
    )
    outside = (like + low < like + least) | (like + high > like + most)
    if outside.all():
        return like + math.inf
    kind = next(kind for kind in type(q).__mro__ if kind in _MEAN_LOG_Q)
    try:
        found = -entropy - _MEAN_LOG_Q[kind](q, p)
    except NotImplementedError:
        raise _lacking(p, q) from None
    return torch.where(outside, math.inf, found)


for _p in _MEAN_LOG_Q:
    for _q in _MEAN_LOG_Q:
        if _p is not _q:
            register_kl(_p, _q)(_mixed)
register_kl(Pareto, Pareto)(_mixed)
register_kl(ContinuousBernoulli, ContinuousBernoulli)(_mixed)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _poisson_of_less(p: Any, q: Any) -> Tensor:
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    return p.rate.new_full(shape, math.inf)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank(p: Any, q: Any) -> Tensor:
    first, second = (MultivariateNormal(d.loc, d.covariance_matrix) for d in (p, q))
    return kl_divergence(first, second)


@register_kl(ExponentialFamily, ExponentialFamily)
def _of_family(p: Any, q: Any) -> Tensor:
    if type(p) is not type(q):
        raise _lacking(p, q)
    value, params, slopes = p._normalizer()
    others = q._natural_params
    found = q._log_normalizer(*others) - value
    for n, other, slope in zip(params, others, slopes, strict=True):
        found = found - p._over_event((other - n) * slope)
    return found
