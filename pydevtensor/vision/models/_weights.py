"""Weights of models, from local files alone."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from enum import Enum
from functools import update_wrapper
from inspect import signature
from typing import Any, Protocol, TypeVar

from pydevtensor import hub

_Model = TypeVar("_Model", covariant=True)
_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")


class Builder(Protocol[_Model]):
    """A function that makes a model."""

    def __call__(
        self,
        *,
        weights: Any = None,
        pretrained: bool = False,
        progress: bool = True,
        **options: Any,
    ) -> _Model: ...


class Weights(Enum):
    """Names of the weights of a model, of which only the file matters here.

    value  a member's name, such as 'IMAGENET1K_V1'; ValueError for another

    >>> torch.vision.models.ResNet18_Weights.DEFAULT.name
    'IMAGENET1K_V1'
    """

    IMAGENET1K_V1 = "IMAGENET1K_V1"
    DEFAULT = IMAGENET1K_V1


class NewerWeights(Enum):
    """Names of the weights of a model that was trained twice.

    value  a member's name, such as 'IMAGENET1K_V2'; ValueError for another

    >>> torch.vision.models.ResNet50_Weights.DEFAULT.name
    'IMAGENET1K_V2'
    """

    IMAGENET1K_V1 = "IMAGENET1K_V1"
    IMAGENET1K_V2 = "IMAGENET1K_V2"
    DEFAULT = IMAGENET1K_V2


def _folder() -> str:
    """Where PyTorch's hub keeps the files of weights."""
    return os.path.join(hub.get_dir(), "checkpoints")


def model(**with_weights: Any) -> Callable[[Callable[..., _Model]], Builder[_Model]]:
    """Let a function of a model's options load weights too, from a local file.

    with_weights  what the options are where weights will be loaded
    """

    def decorated(build: Callable[..., _Model]) -> Builder[_Model]:
        def built(
            *,
            weights: Any = None,
            pretrained: bool = False,
            progress: bool = True,
            **options: Any,
        ) -> _Model:
            if weights is None and not pretrained:
                return build(**options)
            return _filled(build(**{**options, **with_weights}), build.__name__)

        built.__annotations__["return"] = build.__annotations__["return"]
        seen: Any = update_wrapper(built, build, _NAMES, ())
        seen.__signature__ = signature(built, follow_wrapped=False)
        return built

    return decorated


def _filled(model: Any, name: str) -> Any:
    """The model with the weights of a local file."""
    pattern = os.path.join(_folder(), f"{name}-*.pth")
    files = sorted(glob.glob(glob.escape(pattern[:-6]) + "-*.pth"))
    if not files:
        raise RuntimeError(
            f"{name}(): weights were asked for, and there is no file {pattern}; "
            "pydevtensor loads nothing from the network: get the file that torchvision "
            "names for this model and put it there, or call load_state_dict("
            "torch.load(path))"
        )
    if len(files) > 1:
        raise RuntimeError(
            f"{name}(): {', '.join(files)} are there; call load_state_dict("
            "torch.load(path)) with one of them"
        )
    from pydevtensor.serialization import load

    model.load_state_dict(load(files[0], map_location="cpu"))
    return model
