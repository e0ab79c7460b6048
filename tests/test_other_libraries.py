"""scikit-learn, SciPy and einops compute with Tensors, by the array API standard.

Results are compared with what they compute of NumPy's arrays. Each test needs its
library and is skipped without it.
"""

import importlib.util
import json

import pytest
from isolated import python

DEVICES = ["cpu", "cuda:0"]  # the GPU is simulated, in the test's own process
START = """
import json, sys
import numpy as np
import pydevtensor as torch

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
y = X @ np.arange(5.0) + rng.normal(size=60)
labels = (y > 0).astype(np.int64)
positive = abs(X) + 0.1
failures = []

def compare(name, theirs, ours, tensor=True):
    if isinstance(theirs, tuple):
        theirs, ours = theirs[0], ours[0]
    if tensor and type(ours) is not torch.Tensor:
        failures.append(f"{name} gave a {type(ours).__name__}")
    if isinstance(ours, torch.Tensor):
        if ours.device != torch.device(device):
            failures.append(f"{name} is on {ours.device}")
        ours = ours.cpu().numpy()
    ours = np.asarray(ours)
    if not np.allclose(abs(np.asarray(theirs)), abs(ours), rtol=1e-6, atol=1e-6):
        failures.append(f"{name} differs")
"""


def run(code, *modules, device="cpu"):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    chosen = {"SCIPY_ARRAY_API": "1"}
    if device != "cpu":
        chosen["PYDEVTENSOR_SIM_GPUS"] = "1"
    code = f"device = {device!r}\n{START}{code}\nprint(json.dumps(failures))"
    out = python(code, **chosen)
    assert json.loads(out.splitlines()[-1]) == []


def test_array_api_compat_finds_the_namespace():
    run(
        """
import array_api_compat as compat

x = torch.ones(2, 3)
assert compat.array_namespace(x, torch.zeros(1)) is torch.array_api
assert compat.is_array_api_obj(x) and not compat.is_torch_array(x)
assert compat.size(x) == 6 and compat.device(x) == torch.device("cpu")
assert compat.to_device(x, "cpu") is x
""",
        "array_api_compat",
    )


SKLEARN = """
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV, RidgeClassifier
from sklearn.metrics import *
from sklearn.metrics import pairwise
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import *

def both(name, function, *arrays, tensor=True):
    theirs = function(*arrays)
    with config_context(array_api_dispatch=True):
        ours = function(*(torch.asarray(array, device=device) for array in arrays))
    compare(name, theirs, ours, tensor)
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_estimators_of_scikit_learn(device):
    run(
        SKLEARN
        + """
for solver in ("full", "covariance_eigh", "randomized"):
    pca = PCA(2, svd_solver=solver, random_state=0, power_iteration_normalizer="QR")
    both(f"PCA {solver}", pca.fit_transform, X)
for scaler in (StandardScaler, MinMaxScaler, MaxAbsScaler, Normalizer, Binarizer):
    both(scaler.__name__, scaler().fit_transform, X)
both("PolynomialFeatures", PolynomialFeatures().fit_transform, X)
both("LabelEncoder", LabelEncoder().fit_transform, labels)
both("Ridge", lambda X, y: Ridge(solver="svd").fit(X, y).predict(X), X, y)
both("RidgeCV", lambda X, y: RidgeCV().fit(X, y).predict(X), X, y)
for model in (RidgeClassifier(solver="svd"), LogisticRegression(), GaussianNB(),
              LinearDiscriminantAnalysis()):
    both(str(model), lambda X, y: model.fit(X, y).predict(X), X, labels)
    if hasattr(model, "predict_proba"):
        both(str(model), lambda X, y: model.fit(X, y).predict_proba(X), X, labels)
mixture = GaussianMixture(2, init_params="random_from_data", random_state=0)
both("GaussianMixture", lambda X: mixture.fit(X).means_, X)
both("train_test_split", lambda X: train_test_split(X, random_state=0)[0], X)
both("cross_val_score", lambda X, y: cross_val_score(Ridge(), X, y), X, y, tensor=False)
""",
        "sklearn",
        device=device,
    )


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_metrics_of_scikit_learn(device):
    run(
        SKLEARN
        + """
guess = np.roll(labels, 3)
for metric in (accuracy_score, zero_one_loss, f1_score, precision_score, recall_score,
               balanced_accuracy_score, jaccard_score, hamming_loss, confusion_matrix):
    both(metric.__name__, metric, labels, guess, tensor=metric is confusion_matrix)
for metric in (r2_score, mean_squared_error, mean_absolute_error, max_error,
               explained_variance_score, median_absolute_error, mean_pinball_loss):
    both(metric.__name__, metric, y, y + rng.normal(size=60), tensor=False)
chance = 1 / (1 + np.exp(-y))
both("log_loss", log_loss, labels, chance, tensor=False)
both("brier_score_loss", brier_score_loss, labels, chance, tensor=False)
for name in ("cosine_similarity euclidean_distances manhattan_distances rbf_kernel "
             "linear_kernel polynomial_kernel cosine_distances laplacian_kernel "
             "sigmoid_kernel additive_chi2_kernel chi2_kernel").split():
    both(name, getattr(pairwise, name), positive, positive + 1)
""",
        "sklearn",
        device=device,
    )


@pytest.mark.slow
def test_functions_of_scipy():
    run(
        """
import scipy.cluster.vq as vq
from scipy import fft, integrate, ndimage, optimize, signal, special, stats

def both(name, function, *arrays):
    compare(name, function(*arrays), function(*map(torch.asarray, arrays)))

chance = np.clip(positive / 4, 0.01, 0.9)
for name in "erf erfc gammaln i0 expit logit entr ndtr ndtri digamma".split():
    both(name, getattr(special, name), chance)
for name in "logsumexp softmax log_softmax".split():
    both(name, lambda x: getattr(special, name)(x, axis=1), X)
both("rel_entr", lambda x: special.rel_entr(x, x + 1), positive)
for name in "zscore skew kurtosis variation sem gmean hmean tvar iqr rankdata".split():
    both(name, getattr(stats, name), positive)
one, two = positive[:, 0].copy(), positive[:, 1].copy()
for name in "ttest_ind pearsonr mannwhitneyu wilcoxon bartlett levene f_oneway".split():
    both(name, lambda a, b: tuple(getattr(stats, name)(a, b)), one, two)
both("ttest_1samp", lambda x: tuple(stats.ttest_1samp(x, 0.0)), X)
both("whiten", vq.whiten, X)
both("vq", lambda x: vq.vq(x, x[:3])[1], X)
both("dct", fft.dct, X)
both("trapezoid", lambda x: integrate.trapezoid(x, axis=0), X)
both("tanhsinh", lambda x: integrate.tanhsinh(lambda v: v**2, x * 0, x).integral, one)
both("gaussian_filter", lambda x: ndimage.gaussian_filter(x, 1.0), X)
both("convolve", lambda a, b: signal.convolve(a, b), one, two[:5].copy())
both("detrend", lambda x: signal.detrend(x, axis=0), X)
both("rosen", optimize.rosen, X)
""",
        "scipy",
    )


EINOPS = """
import einops
x = torch.arange(24).reshape(2, 3, 4).float()
a = x.numpy()

def both(name, function, *arguments, **sizes):
    theirs = getattr(einops, name)(a, *arguments, **sizes)
    compare(name, theirs, function(x, *arguments, **sizes))

def all_of(module):
    both("rearrange", module.rearrange, "a b (c d) -> (a c) d b", d=2)
    both("reduce", module.reduce, "a b c -> a c", "mean")
    both("reduce", module.reduce, "a b c -> a", "max")
    both("repeat", module.repeat, "a b c -> a (b n) c", n=2)
    compare("list", einops.rearrange([a, a], "n a b c -> a (n b) c"),
            module.rearrange([x, x], "n a b c -> a (n b) c"))
    packed, shapes = module.pack([x, x[:, 0]], "a * c")
    compare("pack", einops.pack([a, a[:, 0]], "a * c")[0], packed)
    compare("unpack", a, module.unpack(packed, shapes, "a * c")[0])
"""


def test_einops_by_the_standard():
    run(EINOPS + "from einops import array_api\nall_of(array_api)", "einops")


def test_einops_where_torch_is_this_package():
    """Its functions, einsum and its layers, which train."""
    code = """
torch.install_as_torch()
all_of(einops)
compare("einsum", einops.einsum(a, a, "a b c, a d c -> b d"),
        einops.einsum(x, x, "a b c, a d c -> b d"))
from einops.layers.torch import EinMix, Rearrange, Reduce

mix = EinMix("a (c d)-> a e", weight_shape="c d e", c=4, d=3, e=2)
net = torch.nn.Sequential(Rearrange("a b c -> a (c b)"), mix, Reduce("a e -> a", "max"))
net(x).sum().backward()
assert net(x).shape == (2,) and mix.weight.grad.shape == mix.weight.shape
"""
    run(EINOPS + code, "einops")
