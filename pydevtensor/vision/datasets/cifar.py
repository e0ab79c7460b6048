"""CIFAR10 and CIFAR100."""

from __future__ import annotations

import os
from typing import Any

from pydevtensor.vision._libraries import numpy, pillow
from pydevtensor.vision.datasets._batches import read_batch
from pydevtensor.vision.datasets.vision import Divided, missing

__all__ = ["CIFAR10", "CIFAR100"]


class CIFAR10(Divided):
    """60,000 photos of 32 by 32 pixels in 10 classes: (image, class).

    The files are data_batch_1 to data_batch_5 or, for train=False, test_batch, and
    batches.meta, in the folder cifar-10-batches-py below root. They are pickles, which
    are read without executing anything. data has them as an array (N, 32, 32, 3),
    targets as a list. Raises RuntimeError with their names if one is missing,
    ValueError if one is damaged.

    root              the folder above cifar-10-batches-py, a path
    train             the 50,000 photos to train with, else the 10,000 to test with
    transform         a function of an image of Pillow, such as transforms.ToTensor()
    target_transform  a function of a class, an int
    download          has no effect: nothing comes from the network

    >>> try:
    ...     torch.vision.datasets.CIFAR10('no_such_folder', train=False)
    ... except RuntimeError as error:
    ...     print(str(error).splitlines()[1])
        no_such_folder/cifar-10-batches-py/test_batch
    """

    base_folder = "cifar-10-batches-py"
    source = (
        "https://www.cs.toronto.edu/~kriz/cifar.html (the Python version, unpacked)"
    )
    _train = tuple(f"data_batch_{i}" for i in range(1, 6))
    _test: tuple[str, ...] = ("test_batch",)
    _meta = "batches.meta"
    _names = "label_names"
    _labels = "labels"

    def _read(self) -> None:
        np = numpy("a data set")
        folder = os.path.join(self.root, self.base_folder)
        names = [*(self._train if self.train else self._test), self._meta]
        paths = [os.path.join(folder, name) for name in names]
        lost = [path for path in paths if not os.path.isfile(path)]
        if lost:
            raise missing(type(self).__name__, lost, self.source)
        parts: list[Any] = []
        self.targets: list[int] = []
        for path in paths[:-1]:
            batch: Any = read_batch(path)
            data, labels = batch.get("data"), batch.get(self._labels)
            shape = getattr(data, "shape", ())
            if not isinstance(labels, list) or shape != (len(labels), 3072):
                raise ValueError(
                    f"{path} is not a batch of {type(self).__name__}: it has to hold "
                    f"data of (N, 3072) bytes and N {self._labels}"
                )
            parts.append(data)
            self.targets += labels
        stacked = np.concatenate(parts).reshape(-1, 3, 32, 32)
        self.data = np.ascontiguousarray(stacked.transpose(0, 2, 3, 1))
        titles: Any = read_batch(paths[-1]).get(self._names)
        if not isinstance(titles, list):
            raise ValueError(f"{paths[-1]} has no {self._names}")
        self.classes: list[str] = titles
        self.class_to_idx: dict[str, int] = {
            name: i for i, name in enumerate(self.classes)
        }

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self._transformed(
            pillow().fromarray(self.data[index]), self.targets[index]
        )


class CIFAR100(CIFAR10):
    """As CIFAR10, with 100 classes.

    The files are train or test, and meta, in the folder cifar-100-python below root.

    >>> torch.vision.datasets.CIFAR100.base_folder
    'cifar-100-python'
    """

    base_folder = "cifar-100-python"
    _train = ("train",)
    _test = ("test",)
    _meta = "meta"
    _names = "fine_label_names"
    _labels = "fine_labels"
