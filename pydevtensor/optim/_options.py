"""The options of an optimizer, and the values that they may have."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor import _C

# By option: its name in errors, and the least and the largest value.
_RANGES = {
    "lr": ("learning rate", 0, math.inf),
    "momentum": ("momentum value", 0, math.inf),
    "weight_decay": ("weight_decay value", 0, math.inf),
    "lr_decay": ("lr_decay value", 0, math.inf),
    "initial_accumulator_value": ("initial_accumulator_value value", 0, math.inf),
    "eps": ("epsilon value", 0, math.inf),
    "alpha": ("alpha value", 0, math.inf),
    "rho": ("rho value", 0, 1),
    "momentum_decay": ("momentum_decay value", 0, math.inf),
}


def _number(name: str, value: Any) -> Any:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(
            f"{name} is {value!r} ({type(value).__name__}); give a number or a Tensor"
        )
    if isinstance(value, _C.Tensor) and value.numel() != 1:
        raise ValueError(
            f"{name} is a Tensor of {value.numel()} elements; give a number or a "
            "Tensor of one element"
        )
    return value


def options_of(
    arguments: dict[str, Any], first: str = "", unchecked: str = ""
) -> dict[str, Any]:
    """The options among a constructor's locals(); raises ValueError for a wrong one.

    first: the names that PyTorch stores before the others, which are in their order.
    unchecked: an option that may have any value.
    """
    names = [*first.split(), *arguments]
    others = ("self", "params", "first", "__class__")
    options = {name: arguments[name] for name in names if name not in others}
    for name, (called, least, most) in _RANGES.items():
        if name == unchecked or name not in options:
            continue
        if not least <= _number(name, options[name]) <= most:
            advice = "0 or more" if most == math.inf else f"a number from 0 to {most}"
            raise ValueError(f"Invalid {called}: {options[name]}; give {advice}")
    betas = options.get("betas", (0, 0))
    if not hasattr(betas, "__getitem__"):
        raise TypeError(
            f"betas is {betas!r} ({type(betas).__name__}); give two numbers, such as "
            "(0.9, 0.999)"
        )
    if len(betas) < 2:
        raise IndexError(f"betas is {betas!r}; give two numbers, such as (0.9, 0.999)")
    for i, beta in enumerate(options.get("betas", ())):
        if not 0 <= _number(f"betas[{i}]", beta) < 1:
            raise ValueError(
                f"Invalid beta parameter at index {i}: {beta}; give a number of 0 or "
                "more, below 1"
            )
    return options
