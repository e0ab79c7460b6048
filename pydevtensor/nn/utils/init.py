"""Modules without initial values."""

from __future__ import annotations

from typing import Any

from pydevtensor.nn import init
from pydevtensor.nn.modules.module import Module
from pydevtensor.random import fork_rng

__all__ = ["skip_init"]


def skip_init(module_cls: type[Any], *args: Any, **kwargs: Any) -> Any:
    """module_cls(*args, **kwargs), whose nn.init functions do nothing.

    It saves their time where a state is loaded afterwards: the parameters have
    undefined values, and no random numbers are drawn. RuntimeError for a class that is
    no Module or takes no argument `device`.

    module_cls  the class, which takes a device

    >>> nn.utils.skip_init(nn.Linear, 2, 1).weight.shape
    torch.Size([1, 2])
    """
    import inspect  # which takes longer than all of nn.utils

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init(): {module_cls!r} is no Module")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            f"skip_init(): {module_cls.__name__} takes no argument 'device'; make it "
            "by calling it"
        )
    kwargs.setdefault("device", "cpu")
    with fork_rng(), init._skipped():
        return module_cls(*args, **kwargs)
