"""Probability distributions, under torch.distributions' names.

Arguments and values are checked (ValueError) unless validate_args=False. Samples are
PyTorch's numbers for a seed, on the CPU.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.distributions import _divergences as _divergences
from pydevtensor.distributions import constraints as constraints
from pydevtensor.distributions import transforms as transforms
from pydevtensor.distributions.bernoulli import *
from pydevtensor.distributions.beta import *
from pydevtensor.distributions.binomial import *
from pydevtensor.distributions.categorical import *
from pydevtensor.distributions.cauchy import *
from pydevtensor.distributions.chi2 import *
from pydevtensor.distributions.constraint_registry import biject_to as biject_to
from pydevtensor.distributions.constraint_registry import transform_to as transform_to
from pydevtensor.distributions.continuous_bernoulli import *
from pydevtensor.distributions.dirichlet import *
from pydevtensor.distributions.distribution import *
from pydevtensor.distributions.exp_family import *
from pydevtensor.distributions.exponential import *
from pydevtensor.distributions.fishersnedecor import *
from pydevtensor.distributions.gamma import *
from pydevtensor.distributions.generalized_pareto import *
from pydevtensor.distributions.geometric import *
from pydevtensor.distributions.gumbel import *
from pydevtensor.distributions.half_cauchy import *
from pydevtensor.distributions.half_normal import *
from pydevtensor.distributions.independent import *
from pydevtensor.distributions.inverse_gamma import *
from pydevtensor.distributions.kl import *
from pydevtensor.distributions.kumaraswamy import *
from pydevtensor.distributions.laplace import *
from pydevtensor.distributions.lkj_cholesky import *
from pydevtensor.distributions.log_normal import *
from pydevtensor.distributions.logistic_normal import *
from pydevtensor.distributions.lowrank_multivariate_normal import *
from pydevtensor.distributions.mixture_same_family import *
from pydevtensor.distributions.multinomial import *
from pydevtensor.distributions.multivariate_normal import *
from pydevtensor.distributions.negative_binomial import *
from pydevtensor.distributions.normal import *
from pydevtensor.distributions.one_hot_categorical import *
from pydevtensor.distributions.pareto import *
from pydevtensor.distributions.poisson import *
from pydevtensor.distributions.relaxed_bernoulli import (
    RelaxedBernoulli as RelaxedBernoulli,
)
from pydevtensor.distributions.relaxed_categorical import (
    RelaxedOneHotCategorical as RelaxedOneHotCategorical,
)
from pydevtensor.distributions.studentT import *
from pydevtensor.distributions.transformed_distribution import *
from pydevtensor.distributions.transforms import *
from pydevtensor.distributions.uniform import *
from pydevtensor.distributions.von_mises import *
from pydevtensor.distributions.weibull import *
from pydevtensor.distributions.wishart import *

_publish(__name__)
