"""Spectral normalization by a hook, for programs that know it."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.nn.modules.module import Module, need_module
from pydevtensor.nn.parameter import Parameter, is_lazy
from pydevtensor.nn.utils._weights import check_steps, outputs_dim, rows, to_unit

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]

_METADATA = "spectral_norm"


class SpectralNorm:
    """The hook, which computes the weight before each call.

    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    ['SpectralNorm']
    """

    _version = 1

    def __init__(
        self,
        name: str = "weight",
        n_power_iterations: int = 1,
        dim: int = 0,
        eps: float = 1e-12,
    ) -> None:
        check_steps(n_power_iterations)
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """The weight as a matrix, whose rows go along dim."""
        return rows(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        """The weight divided by its greatest singular value, u @ W @ v."""
        weight = getattr(module, self.name + "_orig")
        u, v = (getattr(module, self.name + suffix) for suffix in ("_u", "_v"))
        matrix = rows(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    to_unit(matrix.t().mv(u), self.eps, out=v)
                    to_unit(matrix.mv(v), self.eps, out=u)
                # The graph keeps copies: the next call writes to the buffers.
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Add the hook to a module."""
        if _find(module._forward_pre_hooks, SpectralNorm, name) is not None:
            raise RuntimeError(
                f"spectral_norm(): '{name}' has it already; call "
                "remove_spectral_norm() first"
            )
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        if name not in module._parameters:
            raise KeyError(f"{module._get_name()} has no parameter '{name}'")
        weight = module._parameters[name]
        if weight is None or is_lazy(weight):
            lacks = "is None" if weight is None else "has no shape yet"
            raise ValueError(
                f"spectral_norm(): '{name}' {lacks}; there has to be a weight, which a "
                "first call gives a lazy module"
            )
        with no_grad():
            height, width = rows(weight, dim).shape
            u = to_unit(weight.new_empty(height).normal_(0, 1), eps)
            v = to_unit(weight.new_empty(width).normal_(0, 1), eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(
            SpectralNormLoadStateDictPreHook(hook)
        )
        return hook


class SpectralNormStateDictHook:
    """Writes the version of the state into its metadata.

    >>> nn.utils.spectral_norm(nn.Linear(3, 2)).state_dict()._metadata['']
    {'version': 1, 'spectral_norm': {'weight.version': 1}}
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn
        self.name: str = fn.name

    def __call__(
        self, module: Any, state: Any, prefix: str, metadata: dict[Any, Any]
    ) -> None:
        versions = metadata.setdefault(_METADATA, {})
        key = f"{self.name}.version"
        if key in versions:
            raise RuntimeError(f"state_dict(): the metadata has '{key}' already")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Gives a state that PyTorch 0.4 saved the vector v, which it lacks.

    >>> layer = nn.utils.spectral_norm(nn.Linear(1, 1, bias=False))
    >>> one = torch.ones(1, 1)
    >>> state = {'weight_orig': one * 4, 'weight': one * 2, 'weight_u': one[0]}
    >>> layer.load_state_dict(state)
    <All keys matched successfully>
    >>> layer.weight_v
    tensor([0.5000])
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn
        self.name: str = fn.name

    def __call__(
        self,
        state: Any,
        prefix: str,
        metadata: dict[Any, Any],
        strict: bool,
        missing: list[Any],
        unexpected: list[Any],
        faults: list[Any],
    ) -> None:
        version = metadata.get(_METADATA, {}).get(f"{self.name}.version")
        key = prefix + self.name
        if version is not None and version >= 1:
            return
        new = all(key + suffix in state for suffix in ("_orig", "_u", "_v"))
        if version is None and new and key not in state:
            return
        lacks = [key + s for s in ("_orig", "", "_u") if key + s not in state]
        if lacks:
            missing += lacks if strict else []
            return
        with no_grad():
            original, weight, u = (
                state[key + "_orig"],
                state.pop(key),
                state[key + "_u"],
            )
            state[key + "_v"] = self._right_vector(
                self.fn.reshape_weight_to_matrix(original),
                u,
                (original / weight).mean(),
            )

    @staticmethod
    def _right_vector(matrix: Any, u: Any, sigma: Any) -> Any:
        """v: matrix @ v has the direction of u, and u @ matrix @ v is sigma."""
        from pydevtensor.linalg import pinv

        v = pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
        return v * (sigma / u.dot(matrix.mv(v)))


def _find(hooks: Any, kind: type[Any], name: str) -> int | None:
    """The key of the hook of that class for the weight of that name."""
    for key, hook in hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return key
    return None


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its greatest singular value before each call.

    It is estimated by steps of a power iteration, in training alone (Miyato and others,
    2018). The parameter becomes <name>_orig, the singular vectors the buffers <name>_u
    and <name>_v. RuntimeError where the weight has it already. Returns the module. See
    also nn.utils.parametrizations.spectral_norm(), which does the same without a hook.

    module              the layer
    name                the weight's name; KeyError for one that is not a parameter
    n_power_iterations  steps before each call, 1 or more, else ValueError
    eps                 least norm of a singular vector, against division by 0
    dim                 the one that counts the outputs: 1 of a transposed convolution,
                        else 0

    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> [*layer.state_dict()]
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    need_module("spectral_norm", module)
    dim = outputs_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo spectral_norm(); the weight keeps its value. ValueError where it has none.

    module  the layer
    name    the weight's name

    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> [*nn.utils.remove_spectral_norm(layer).state_dict()]
    ['bias', 'weight']
    """
    need_module("remove_spectral_norm", module)
    key = _find(module._forward_pre_hooks, SpectralNorm, name)
    if key is None:
        raise ValueError(
            f"remove_spectral_norm(): {module._get_name()} has no spectral_norm of "
            f"'{name}'"
        )
    module._forward_pre_hooks.pop(key).remove(module)
    for hooks, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        hooks.pop(_find(hooks, kind, name), None)
    return module


_publish(__name__)
