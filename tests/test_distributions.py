"""Distributions: samples against their densities, gradients of samples, devices.

Values, seeded samples and exceptions are compared with PyTorch's in
golden/distributions.json.
"""

import math
from typing import ClassVar

import pytest

import pydevtensor as torch
from pydevtensor import distributions as D
from pydevtensor.autograd import gradcheck
from pydevtensor.distributions import dirichlet, gamma

F64 = torch.float64


def t(*values):
    return torch.tensor(values, dtype=F64)


def made(device):
    """A few of each kind, on the device."""
    with torch.device(device):
        return [
            D.Normal(t(0.5), t(2.0)),
            D.LogNormal(t(0.0), t(0.25)),
            D.HalfNormal(t(2.0)),
            D.Uniform(t(-1.0), t(3.0)),
            D.Exponential(t(2.0)),
            D.Laplace(t(1.0), t(2.0)),
            D.Gumbel(t(1.0), t(2.0)),
            D.Gamma(t(0.75), t(2.0)),
            D.Gamma(t(5.0), t(0.5)),
            D.Chi2(t(3.0)),
            D.Beta(t(0.5), t(2.0)),
            D.StudentT(t(9.0), t(1.0)),
            D.Dirichlet(t(0.5, 2.0, 3.0)),
            D.Bernoulli(t(0.25)),
            D.Geometric(t(0.25)),
            D.Poisson(t(4.0)),
            D.Poisson(t(40.0)),
            D.Binomial(10, t(0.25)),
            D.Binomial(100, t(0.7)),
            D.OneHotCategorical(t(1.0, 2.0, 5.0)),
            D.Multinomial(6, t(1.0, 2.0, 1.0)),
            D.MultivariateNormal(t(0.0, 1.0), torch.eye(2, dtype=F64) + 0.5),
            D.Weibull(t(2.0), t(1.5)),
            D.Pareto(t(2.0), t(9.0)),
            D.InverseGamma(t(9.0), t(3.0)),
            D.Kumaraswamy(t(2.0), t(0.5)),
            D.FisherSnedecor(t(4.0), t(19.0)),
            D.GeneralizedPareto(t(1.0, 0.0), t(2.0, 1.0), t(0.1, -0.5)),
            D.NegativeBinomial(t(4.0), t(0.25)),
            D.ContinuousBernoulli(t(0.25, 0.5)),
            D.LowRankMultivariateNormal(
                t(0.0, 1.0), t(1.0, -2.0).unsqueeze(-1), t(0.5, 2.0)
            ),
            D.Wishart(t(5.0), torch.eye(2, dtype=F64) + 0.5),
            D.MixtureSameFamily(
                D.Categorical(t(1.0, 3.0)), D.Normal(t(-1.0, 1.0), t(1.0, 0.5))
            ),
        ]


def test_moments_of_samples(device):
    """Means and variances of 4000 samples lie within 6 standard errors."""
    torch.manual_seed(7)
    n = 4000
    for d in made(device):
        x = d.sample((n,))
        assert x.shape == (n, *d.batch_shape, *d.event_shape)
        assert str(x.device) == device
        assert x.dtype == F64
        error = (x.mean(0) - d.mean).abs() / (d.variance / n).sqrt()
        assert (error < 6).all(), d
        spread = (x - d.mean).square()
        error = (spread.mean(0) - d.variance).abs() / (spread.var(0) / n).sqrt()
        assert (error < 6).all(), d


def test_angles_and_correlations(device):
    """Those without a mean of samples that is the distribution's."""
    torch.manual_seed(7)
    with torch.device(device):
        d = D.VonMises(t(1.0, -3.0), t(4.0, 0.5))
        x = d.sample((4000,))
        assert x.device == d.loc.device and (x.abs() <= math.pi).all()
        means = (x - d.loc).cos().mean(0), (x - d.loc).sin().mean(0)
        assert (means[0] - (1 - d.variance)).abs().max() < 0.05
        assert means[1].abs().max() < 0.05
        factors = D.LKJCholesky(3, t(2.0)).sample((2000,))
        assert D.constraints.corr_cholesky.check(factors).all()
        # An element is of a beta distribution on (-1, 1) of concentration + 1/2.
        r = (factors @ factors.mT)[:, 0, 1, 0]
        assert r.mean().abs() < 0.05 and (r.var() - 1 / 6).abs() < 0.02


def test_a_seed_gives_the_same_samples_again(device):
    for d in made(device):
        torch.manual_seed(3)
        first = d.sample((5,))
        torch.manual_seed(3)
        assert torch.equal(d.sample((5,)), first)


def test_densities_integrate_to_one():
    for d, low, high in (
        (D.Normal(t(0.5), t(2.0)), -20, 20),
        (D.LogNormal(t(0.0), t(0.5)), 1e-6, 60),
        (D.Gamma(t(3.0), t(2.0)), 1e-6, 40),
        (D.StudentT(t(9.0)), -200, 200),
        (D.Gumbel(t(1.0), t(2.0)), -20, 80),
        (D.Beta(t(2.0), t(3.0)), 1e-9, 1 - 1e-9),
        (D.Laplace(t(0.0), t(1.0)), -40, 40),
    ):
        x = torch.linspace(low, high, 40001, dtype=F64).unsqueeze(-1)
        total = torch.trapezoid(d.log_prob(x).exp(), x, dim=0)
        assert abs(total.item() - 1) < 1e-4, d


def test_probabilities_sum_to_one():
    for d in (
        D.Bernoulli(t(0.25)),
        D.Binomial(7, t(0.3)),
        D.Categorical(t(1.0, 2.0, 5.0)),
        D.OneHotCategorical(t(1.0, 2.0, 5.0)),
    ):
        values = d.enumerate_support()
        assert abs(d.log_prob(values).exp().sum(0) - 1).max() < 1e-12, d
        entropy = -(d.log_prob(values).exp() * d.log_prob(values)).sum(0)
        assert (entropy - d.entropy()).abs().max() < 1e-12, d


def test_quantiles_turn_the_distribution_round():
    p = t(0.01, 0.3, 0.5, 0.99)
    for d in (
        D.Normal(0.5, 2.0),
        D.LogNormal(0.0, 1.0),
        D.HalfNormal(2.0),
        D.HalfCauchy(2.0),
        D.Uniform(-1.0, 3.0),
        D.Exponential(2.0),
        D.Laplace(0.0, 1.0),
        D.Cauchy(1.0, 2.0),
        D.Gumbel(1.0, 2.0),
    ):
        assert (d.cdf(d.icdf(p)) - p).abs().max() < 1e-5, d


@pytest.mark.parametrize("shape", [0.05, 0.5, 1.0, 3.0, 50.0, 1e4])
def test_implicit_gradient_of_gamma(shape):
    """Where the cumulative distribution stays the same, by finite differences."""
    for part in (0.05, 0.5, 0.95):
        a = t(shape)
        low, high = t(1e-300), a + 20 * a.sqrt() + 20

        def quantile(a, low=low, high=high, part=part):
            for _ in range(1100):
                middle = (low + high) / 2
                below = torch.igamma(a, middle) < part
                low, high = (
                    torch.where(below, middle, low),
                    torch.where(below, high, middle),
                )
            return low

        h = 1e-4 * min(shape, 1)
        expected = (quantile(a + h) - quantile(a - h)) / (2 * h)
        found = gamma._shape_gradient(a, quantile(a))
        assert abs(found / expected - 1).item() < 1e-4


# x, a, b, and how x moves with a, divided by 1 - x: by differences of SciPy's betainc().
SHARES = [
    (0.3, 0.5, 2.0, 0.7553986),
    (0.9, 0.5, 2.0, 1.275425),
    (1e-6, 0.05, 3.0, 0.0002475072),
    (0.02, 2.0, 90.0, 0.01135854),
    (0.7, 8.0, 3.0, 0.09386061),
    (0.31, 300.0, 700.0, 0.001017391),
    (0.999, 5.0, 0.1, 0.2188055),
    (0.5, 0.9, 1.1, 0.7458821),
]


@pytest.mark.parametrize(("x", "a", "b", "expected"), SHARES)
def test_implicit_gradient_of_beta(x, a, b, expected, device):
    found = dirichlet._share_gradient(*(t(v).to(device) for v in (x, a, b)))
    assert abs(found.item() / expected - 1) < 1e-6


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 7.0, 1e4])
def test_implicit_gradient_of_powers(a):
    """The distribution of Beta(a, 1) is x^a, so x is u^(1 / a)."""
    x = t(1e-3, 0.4, 0.9) ** (1 / a)
    found = dirichlet._share_gradient(x, t(a), t(1.0)) * (1 - x)
    assert (found / (-x * x.log() / a) - 1).abs().max() < 1e-5


def test_gradients_through_samples():
    torch.manual_seed(0)
    a = t(0.5, 2.0, 5.0).requires_grad_()
    d = D.Gamma(a.expand(4000, 3), 2.0)
    d.rsample().mean(0).sum().backward()
    assert (a.grad - 0.5).abs().max() < 0.1  # of the mean, a / 2
    b = t(0.5, 2.0, 5.0).requires_grad_()
    D.Dirichlet(b).rsample((4000,)).mean(0)[1].backward()
    total = b.detach().sum()
    expected = -2 / total.square() * torch.ones(3, dtype=F64)
    expected[1] += 1 / total
    assert (b.grad - expected).abs().max() < 0.02
    loc, tril = t(1.0, 2.0).requires_grad_(), (2 * torch.eye(2)).requires_grad_()
    D.MultivariateNormal(loc.float(), scale_tril=tril).rsample((3,)).sum().backward()
    assert loc.grad.tolist() == [3.0, 3.0]
    with pytest.raises(NotImplementedError):
        D.Poisson(a).rsample()


def test_gradients_of_densities():
    for function, inputs in (
        (lambda a, b: D.Gamma(a, b).log_prob(t(0.5)), (t(2.0), t(3.0))),
        (lambda a, b: D.Beta(a, b).log_prob(t(0.5)), (t(2.0), t(3.0))),
        (lambda a: D.Dirichlet(a).entropy(), (t(2.0, 3.0),)),
        (lambda d, m: D.StudentT(d, m).log_prob(t(0.5)), (t(2.0), t(3.0))),
        (lambda p: D.Binomial(5, p).log_prob(t(2.0)), (t(0.3),)),
        (
            lambda m, s: D.kl_divergence(D.Normal(m, s), D.Normal(t(1.0), t(2.0))),
            (t(0.5), t(3.0)),
        ),
    ):
        inputs = [x.requires_grad_() for x in inputs]
        assert gradcheck(function, inputs)


def test_submodules_are_where_programs_look():
    from pydevtensor.distributions.kl import kl_divergence
    from pydevtensor.distributions.multinomial import Multinomial
    from pydevtensor.distributions.studentT import StudentT

    assert D.Multinomial is Multinomial
    assert D.StudentT is StudentT
    assert D.kl_divergence is kl_divergence


def test_expanded_distributions_keep_what_they_are():
    for d in made("cpu"):
        wide = d.expand((4, *d.batch_shape))
        assert type(wide) is type(d)
        assert wide.batch_shape == (4, *d.batch_shape)
        x = d.sample()
        assert torch.allclose(wide.log_prob(x), d.log_prob(x).expand(wide.batch_shape))


def test_a_distribution_of_ones_own():
    class Coin(D.Distribution):
        arg_constraints: ClassVar[dict] = {"p": D.constraints.unit_interval}
        support = D.constraints.boolean

        def __init__(self, p, validate_args=None):
            (self.p,) = D.utils.broadcast_all(p)
            super().__init__(self.p.shape, validate_args=validate_args)

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return torch.where(value == 1, self.p, 1 - self.p).log()

    coin = Coin(torch.tensor([0.25, 0.5]))
    assert coin.log_prob(torch.tensor(1.0)).exp().tolist() == [0.25, 0.5]
    assert repr(coin) == "Coin(p: torch.Size([2]))"
    with pytest.raises(ValueError, match="p is"):
        Coin(2.0)
    with pytest.raises(ValueError, match="support"):
        coin.log_prob(torch.tensor(0.5))
    with pytest.raises(NotImplementedError, match="entropy"):
        coin.entropy()
    with pytest.raises(NotImplementedError, match="register"):
        D.kl_divergence(coin, coin)


def test_an_exponential_family_of_ones_own():
    class Rate(D.ExponentialFamily):
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, n):
            return -(-n).log()

    a, b = t(0.5, 2.0), t(3.0, 1.0)
    assert torch.allclose(Rate(a).entropy(), D.Exponential(a).entropy())
    found = D.kl_divergence(Rate(a), Rate(b))
    expected = D.kl_divergence(D.Exponential(a), D.Exponential(b))
    assert torch.allclose(found, expected)
    assert issubclass(D.Gamma, D.ExponentialFamily)
    assert not issubclass(D.Laplace, D.ExponentialFamily)
    with pytest.raises(NotImplementedError, match="divergence of Rate and Gamma"):
        D.kl_divergence(Rate(a), D.Gamma(a, b))
    with pytest.raises(NotImplementedError, match="natural parameters"):
        D.ExponentialFamily((2,)).entropy()


def test_divergences_that_need_a_mean_that_is_not_known():
    with pytest.raises(NotImplementedError, match="divergence of Beta and Gumbel"):
        D.kl_divergence(D.Beta(t(1.0), t(1.0)), D.Gumbel(t(0.0), t(1.0)))


def test_checks_can_be_turned_off():
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Normal(0.0, -1.0).scale.item() == -1
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="scale"):
        D.Normal(0.0, -1.0)


def test_draws_of_strange_parameters(device):
    """Nothing runs for ever."""
    with torch.device(device):
        nan, inf = math.nan, math.inf
        shape = torch._C._standard_gamma(t(0.0, -1.0, nan, inf, 1e-320, 1e300))
        assert shape.isnan().tolist() == [False, True, True, False, False, False]
        count = t(nan, inf, 1e300, 5.0, -1.0, 5.0)
        drawn = torch.binomial(count, t(0.5, 0.5, 0.5, nan, 0.5, 2.0))
        assert drawn.isnan().tolist() == [True, True, False, True, False, False]
        assert drawn[5].item() == 5
        for rate in (-1.0, nan, inf):
            with pytest.raises(RuntimeError, match="rate"):
                torch.poisson(t(rate))
        assert torch.poisson(torch.zeros(0, 2)).shape == (0, 2)
        rates = torch.tensor([[1.0, 100.0]]).expand(3, 2).half()
        assert torch.poisson(rates.t()).shape == (2, 3)
        assert torch.poisson(rates).dtype == torch.float16


def test_the_sets_of_transforms_are_attributes_of_their_classes():
    """As in PyTorch, which registries of transforms by their sets rely on."""
    T, C = D.transforms, D.constraints
    assert not hasattr(T.Transform, "domain") and not hasattr(T.Transform, "codomain")
    assert (T.ExpTransform.domain, T.ExpTransform.sign) == (C.real, 1)
    assert T.AbsTransform.domain is T.SigmoidTransform.domain is C.real
    dependent = ["Affine", "Cat", "Compose", "Independent", "Reshape", "Stack"]
    for name in dependent:
        kind = getattr(T, name + "Transform")
        for each in (kind.domain, kind.codomain):
            assert C.is_dependent(each)
            with pytest.raises(NotImplementedError):
                each.event_dim  # noqa: B018
    assert T.AffineTransform.domain.is_discrete is False
    affine = T.AffineTransform(1.0, 2.0, event_dim=2)
    assert affine.event_dim == affine.domain.event_dim == 2
    assert T.AffineTransform(1.0, 2.0).codomain is C.real
    assert T.IndependentTransform(T.ExpTransform(), 1).event_dim == 1
    assert T.ReshapeTransform((4,), (2, 2)).codomain.event_dim == 2
    with pytest.raises(ValueError, match="ask domain and codomain"):
        T.ReshapeTransform((4,), (2, 2)).event_dim  # noqa: B018
    with pytest.raises(AttributeError):
        T.Transform().event_dim  # noqa: B018


def test_kinds_of_sets_are_classes():
    C = D.constraints
    assert isinstance(C.unit_interval, C.interval) and isinstance(
        C.positive, C.greater_than
    )
    assert not isinstance(C.positive_integer, C.integer_interval)
    assert (
        repr(C.integer_interval(0, 3))
        == "IntegerInterval(lower_bound=0, upper_bound=3)"
    )
    registry = D.constraint_registry.ConstraintRegistry()
    registry.register(C.interval)(lambda c: c.upper_bound)
    assert registry(C.interval(0.0, 3.0)) == 3.0
    with pytest.raises(NotImplementedError, match="no transform onto"):
        D.biject_to(C.positive_integer)


def test_parameters_at_which_pytorch_does_not_stop():
    assert D.GeneralizedPareto(0.0, 1.0, 1.5).mean.isnan()
    assert D.GeneralizedPareto(0.0, 1.0, 0.6).stddev.isnan()
    assert D.ContinuousBernoulli(1.5).probs < 1  # clamped before it is checked
    with pytest.raises(ValueError, match="probs is"):
        D.ContinuousBernoulli(1.5, validate_args=True)
