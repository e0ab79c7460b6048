"""Images of random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor.vision.datasets.vision import VisionDataset

__all__ = ["FakeData"]


class FakeData(VisionDataset):
    """Images of random numbers, the same each time: (image, class).

    IndexError for a number that is not from 0 to size - 1.

    size              how many images there are
    image_size        shape of an image, (channels, height, width)
    num_classes       the classes are from 0 to this, without it
    transform         a function of an image of Pillow, such as transforms.ToTensor()
    target_transform  a function of a class, an int
    random_offset     added to an image's number, which is the seed of its random
                      numbers

    >>> datasets = torch.vision.datasets
    >>> to_tensor = torch.vision.transforms.ToTensor()
    >>> fake = datasets.FakeData(4, (3, 8, 8), transform=to_tensor)
    >>> fake[0][0].shape
    torch.Size([3, 8, 8])
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, ...] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(None, None, transform, target_transform)
        self.size = size
        self.image_size = image_size
        self.num_classes = num_classes
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        from pydevtensor.random import fork_rng
        from pydevtensor.vision.transforms.functional import to_pil_image

        if not 0 <= index < len(self):
            raise IndexError(
                f"FakeData: {index} is out of range for {len(self)} images"
            )
        with fork_rng(devices=[]):
            torch.manual_seed(index + self.random_offset)
            image = torch.randn(*self.image_size)
            target = torch.randint(0, self.num_classes, size=(1,))[0]
        return self._transformed(to_pil_image(image), int(target))

    def __len__(self) -> int:
        return self.size
