"""Second derivatives in float32 are those in float64, for every public function that has some.

The functions are those that the extension binds, with the arguments of tools/signatures.py.
"""

import itertools

import numpy as np
import pytest
from cases import Cases
from conftest import ON_A_GPU_SLOWLY
from signatures import PROCESS_WIDE, bound, function_of, known, parameters, valid

import pydevtensor as torch

pytestmark = pytest.mark.filterwarnings("ignore")

TOLERANCE = 1e-3  # of the largest element


def functions():
    """Each function and method, and for each of its forms what makes arguments for a
    device."""
    listed = torch._C._signatures()
    methods = {name: text.split(" | ") for name, text, found, _ in listed if not found}
    for name, texts in (methods | dict(bound())).items():
        last = name.rpartition(".")[2]
        if last.startswith("_") or last.endswith("_") or name in PROCESS_WIDE:
            continue
        function = function_of(f"Tensor.{name}" if name in methods else name)
        forms = []
        for text in texts:
            found = parameters(text)
            needed = [p for p in found if p.required or p.name in known(name)]
            # By name, but for the first and where one takes the rest.
            first = len(needed) if any(p.rest for p in needed) else 1

            def arguments(device, name=name, needed=needed, first=first):
                values = [valid(name, p, device) for p in needed]
                words = zip(
                    (p.name for p in needed[first:]), values[first:], strict=True
                )
                return values[:first], dict(words)

            forms.append(arguments)
        yield name, function, forms


def leaves_of(value, change, found):
    """value with leaves, which change() makes, in the place of its floating tensors."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        found.append(change(value.detach()).requires_grad_())
        return found[-1]
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return type(value)(leaves_of(each, change, found) for each in value)
    if isinstance(value, dict):
        # Statistics, which are written in place, get no gradient.
        return {
            k: change(v) if k.startswith("running") else leaves_of(v, change, found)
            for k, v in value.items()
        }
    return value


def results_of(value):
    if isinstance(value, list | tuple):
        return [result for each in value for result in results_of(each)]
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return [value] if floating and value.requires_grad else []


def weights(x, step):
    steps = torch.arange(x.numel(), dtype=torch.float64, device=x.device) * step
    return (steps.sin() + 0.1).reshape(x.shape).to(x.dtype)


def random_states(device):
    if torch.device(device).type == "cpu":
        return [torch.get_rng_state()]
    return [torch.get_rng_state(), torch.cuda.get_rng_state(device)]


def derivatives(function, arguments, change, device):
    """First and second derivatives, as arrays; none where there are none."""
    leaves, before = [], random_states(device)
    args, words = (leaves_of(each, change, leaves) for each in arguments)
    results = results_of(function(*args, **words))
    if not all(map(torch.equal, before, random_states(device))):
        pytest.skip("draws random numbers")
    if not leaves or not results:
        pytest.skip("not differentiable")
    leaves += [weights(result, 1.3).requires_grad_() for result in results]
    loss = sum(
        (y * w).sum() for y, w in zip(results, leaves[-len(results) :], strict=True)
    )
    first = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
    first = [g for g in first if g is not None]
    again = sum((g * weights(g, 2.1)).sum() for g in first if g.requires_grad)
    second = torch.autograd.grad(again, leaves, allow_unused=True)
    return [
        None if g is None else g.detach().double().cpu().numpy()
        for g in (*first, *second)
    ]


def alike(found, expected):
    for a, b in zip(found, expected, strict=True):
        if a is None or b is None:
            if a is not b:
                return False
            continue
        largest = np.abs(b[np.isfinite(b)]).max(initial=1e-2)
        if not np.allclose(a, b, rtol=0, atol=TOLERANCE * largest, equal_nan=True):
            return False
    return True


# On a GPU in the whole run alone: the formulas are the CPU's, and
# test_autograd_derivatives.py computes second derivatives there.
@pytest.mark.parametrize("device", ON_A_GPU_SLOWLY)
@pytest.mark.parametrize("part", range(8))
def test_float32_like_float64(part, device):
    with Cases() as case:
        for name, function, forms in itertools.islice(functions(), part, None, 8):
            for number, arguments in enumerate(forms):
                for scale in (1, -0.7):
                    with case(f"{name}, form {number} at {scale}"):
                        compare(function, arguments(device), scale, device)


def compare(function, given, scale, device):

    def single(x):
        return (x * scale).float()

    def double(x):
        return single(x).double()

    def moved(x):
        return double(x) * (1 + 1e-7)  # equal elements stay equal

    why = ""
    try:
        expected = derivatives(function, given, double, device)
        if not alike(derivatives(function, given, moved, device), expected):
            why = "float32 cannot tell where it is"
    except Exception as error:
        why = f"has no derivative there: {error}"
    if why:
        # Not within except: the skip would keep the error, and the error its tensors.
        pytest.skip(why)
    assert alike(derivatives(function, given, single, device), expected)
