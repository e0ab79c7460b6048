"""Weight normalization by a hook, for programs that know it."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.nn.modules.module import Module, need_module
from pydevtensor.nn.parameter import Parameter, is_lazy
from pydevtensor.nn.utils._weights import WHOLE, norm_except, normalized

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook, which computes the weight before each call.

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    ['WeightNorm']
    """

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim: int = WHOLE if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The weight, of the parameters of its norms and direction."""
        g, v = (getattr(module, self.name + suffix) for suffix in ("_g", "_v"))
        return normalized(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Add the hook to a module."""
        warnings.warn(
            "nn.utils.weight_norm() is deprecated; use "
            "nn.utils.parametrizations.weight_norm(), which loads its states too",
            FutureWarning,
            stacklevel=3,
        )
        if _find(module, name) is not None:
            raise RuntimeError(
                f"weight_norm(): '{name}' has it already; call remove_weight_norm() "
                "first"
            )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                f"weight_norm(): '{name}' has no shape yet; call the module once first"
            )
        del module._parameters[name]
        g = Parameter(norm_except(weight.detach(), hook.dim))
        module.register_parameter(name + "_g", g)
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for suffix in ("_g", "_v"):
            del module._parameters[self.name + suffix]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _find(module: Module, name: str) -> int | None:
    """The key of a module's hook for the weight of that name."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            return key
    return None


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replace a weight by its norms, <name>_g, and its direction, <name>_v.

    The norms are those of the slices along dim, or that of all with dim=None; the
    weight is computed before each call. Deprecated, with a FutureWarning: use
    nn.utils.parametrizations.weight_norm(). RuntimeError where the weight has it
    already. Returns the module.

    module  the layer
    name    the weight's name
    dim     the dimension of the slices; None: one norm of all

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> layer.weight_g.shape
    torch.Size([2, 1])
    """
    need_module("weight_norm", module)
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo weight_norm(); the weight keeps its value. ValueError where it has none.

    module  the layer
    name    the weight's name

    >>> import warnings
    >>> with warnings.catch_warnings(action='ignore'):
    ...     layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> [*nn.utils.remove_weight_norm(layer).state_dict()]
    ['bias', 'weight']
    """
    need_module("remove_weight_norm", module)
    key = _find(module, name)
    if key is None:
        raise ValueError(
            f"remove_weight_norm(): {module._get_name()} has no weight_norm of '{name}'"
        )
    module._forward_pre_hooks.pop(key).remove(module)
    return module


_publish(__name__)
