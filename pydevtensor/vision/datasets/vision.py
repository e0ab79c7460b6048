"""The base of data sets of images."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from pydevtensor.utils.data import Dataset

__all__ = ["VisionDataset"]


class VisionDataset(Dataset[Any]):
    """A data set below a folder, with transforms of images and of targets.

    A subclass defines __getitem__() and __len__().

    root              the folder, a path
    transforms        a function of image and target that returns both, instead of the
                      two others, else ValueError
    transform         a function of an image, such as transforms.ToTensor()
    target_transform  a function of a target

    >>> torch.vision.datasets.FakeData(size=3)
    Dataset FakeData
        Number of datapoints: 3
        Root location: None
    """

    def __init__(
        self,
        root: Any = None,
        transforms: Callable[..., Any] | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        if transforms is not None and (transform or target_transform) is not None:
            raise ValueError(
                "transforms was given, and transform or target_transform too; give one "
                "or the others"
            )
        self.root: Any = os.path.expanduser(root) if isinstance(root, str) else root
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = transforms

    def _transformed(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transforms is not None:
            return self.transforms(image, target)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has to define __getitem__()")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has to define __len__()")

    def extra_repr(self) -> str:
        """The lines of repr() beside the size and the folder."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Number of datapoints: {len(self)}", f"Root location: {self.root}"]
        lines += self.extra_repr().splitlines()
        if self.transforms is not None:
            lines += repr(self.transforms).splitlines()
        elif self.transform is not None or self.target_transform is not None:
            lines.append("StandardTransform")
            for name in ("transform", "target_transform"):
                if getattr(self, name) is not None:
                    title = name.replace("_", " ").capitalize() + ": "
                    if name == "target_transform":
                        title = "Target transform: "
                    first, *rest = repr(getattr(self, name)).splitlines()
                    lines.append(title + first)
                    lines += [" " * len(title) + line for line in rest]
        return "\n".join(
            [f"Dataset {type(self).__name__}", *("    " + x for x in lines)]
        )


def missing(name: str, files: list[str], source: str) -> RuntimeError:
    """The error for files that are not there."""
    listed = "\n".join(f"    {file}" for file in files)
    return RuntimeError(
        f"{name}: these files are missing:\n{listed}\npydevtensor loads nothing from "
        f"the network, also not with download=True; get them from {source} and put "
        "them there"
    )


class Divided(VisionDataset):
    """A data set with images to train with and others to test with, in `data`."""

    data: Any

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(os.fspath(root), None, transform, target_transform)
        self.train = train
        self._read()

    def _read(self) -> None:
        """Set data, targets and classes from the files."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"
