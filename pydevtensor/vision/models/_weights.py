"""Weights of models, from local files alone."""

from __future__ import annotations

import glob
import os
from enum import Enum
from typing import Any


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
    cache = os.environ.get("XDG_CACHE_HOME", os.path.join("~", ".cache"))
    home = os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))
    return os.path.join(os.path.expanduser(home), "hub", "checkpoints")


def filled(model: Any, name: str, weights: Any, pretrained: bool) -> Any:
    """The model, with the weights of a local file if they were asked for."""
    if weights is None and not pretrained:
        return model
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
