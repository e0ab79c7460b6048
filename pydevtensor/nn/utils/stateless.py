"""Calls of modules with other parameters, by their former name."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor._names import publish as _publish

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: dict[Any, Any],
    args: Any = None,
    kwargs: dict[Any, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """torch.func.functional_call(), with a FutureWarning: use that.

    module                  the module to call
    parameters_and_buffers  Tensors by path, which it has during the call
    args                    an argument, or a tuple of them
    kwargs                  arguments by name, a dict
    tie_weights             give a Tensor that has several paths the same value in all
                            of them
    strict                  raise RuntimeError for paths that are missing or unexpected

    >>> import warnings
    >>> call = nn.utils.stateless.functional_call
    >>> with warnings.catch_warnings(action='ignore'):
    ...     call(nn.PReLU(), {'weight': torch.tensor([2.0])}, torch.tensor([-1.0]))
    tensor([-2.])
    """
    from pydevtensor.func import functional_call as call

    warnings.warn(
        "nn.utils.stateless.functional_call() is deprecated; use "
        "torch.func.functional_call()",
        FutureWarning,
        stacklevel=2,
    )
    return call(
        module,
        parameters_and_buffers,
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )


_publish(__name__)
