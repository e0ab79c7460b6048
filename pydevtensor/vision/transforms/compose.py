"""Transforms made of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pydevtensor as torch
from pydevtensor.vision.transforms._transform import Transform

__all__ = ["Compose", "Lambda", "RandomApply", "RandomChoice", "RandomOrder"]


def _listed(name: str, transforms: Any, first: str = "") -> str:
    lines = [name + "(", *([first] if first else [])]
    return "\n".join([*lines, *(f"    {t}" for t in transforms), ")"])


class Compose:
    """Transforms that run one after another.

    See also RandomApply and RandomOrder.

    transforms  functions of an image, in their order, a list

    >>> transforms = torch.vision.transforms
    >>> half = transforms.Lambda(lambda x: x / 2)
    >>> transforms.Compose([half, half])(torch.ones(2))
    tensor([0.2500, 0.2500])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms)


class Lambda:
    """A function as a transform.

    lambd  a function of an image; TypeError for what cannot be called

    >>> torch.vision.transforms.Lambda(lambda x: x + 1)(torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, lambd: Callable[..., Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Lambda(): a {type(lambd).__name__} is not a function")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomApply(Transform):
    """Runs all transforms, or none.

    transforms  functions of an image, a list or nn.ModuleList
    p           probability of running them

    >>> torch.vision.transforms.RandomApply([torch.neg], p=1.0)(torch.ones(2))
    tensor([-1., -1.])
    """

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        if self.p < torch.rand(1):
            return img
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms, f"    p={self.p}")


class RandomChoice:
    """Runs one of the transforms, drawn by Python's random.

    transforms  functions of an image, a list
    p           a weight for each; None: all alike

    >>> torch.vision.transforms.RandomChoice([torch.neg])(torch.ones(2))
    tensor([-1., -1.])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: Any = None) -> None:
        self.transforms = transforms
        self.p = p

    def __call__(self, *args: Any) -> Any:
        (chosen,) = random.choices(self.transforms, weights=self.p)
        return chosen(*args)

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms) + f"(p={self.p})"


class RandomOrder:
    """Runs all transforms in an order drawn by Python's random.

    transforms  functions of an image, a list

    >>> torch.vision.transforms.RandomOrder([torch.neg])(torch.ones(2))
    tensor([-1., -1.])
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, self.transforms)
