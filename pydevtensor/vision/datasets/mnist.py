"""MNIST and data sets with its files (the idx format)."""

from __future__ import annotations

import gzip
import os
from typing import Any, ClassVar

import pydevtensor as torch
from pydevtensor.vision._libraries import numpy, pillow
from pydevtensor.vision.datasets.vision import Divided, missing

__all__ = ["KMNIST", "MNIST", "FashionMNIST"]

# The third byte of a file, and the type of its numbers, which are big-endian.
_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: str) -> Any:
    """The tensor in an idx file, which may be compressed with gzip.

    ValueError for a file that is damaged.
    """
    np = numpy("a data set")

    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        data = file.read()
    kind = _TYPES.get(data[2]) if data[:2] == b"\0\0" and len(data) > 4 else None
    ndim = data[3] if kind else 0
    if kind is None or len(data) < 4 + 4 * ndim:
        raise ValueError(f"{path} is not an idx file: it begins with {data[:4]!r}")
    shape = np.frombuffer(data, ">i4", ndim, 4)
    dtype = np.dtype(kind)
    count = 1
    for size in shape.tolist():
        count *= size
    found = len(data) - 4 - 4 * ndim
    if min(shape, default=0) < 0 or found != count * dtype.itemsize:
        raise ValueError(
            f"{path} has {found} bytes of values, and its shape is {shape.tolist()}; "
            "it is damaged, get it again"
        )
    values = np.frombuffer(data, dtype, count, 4 + 4 * ndim).reshape(shape)
    return torch.from_numpy(values.astype(dtype.newbyteorder("=")))


class MNIST(Divided):
    """70,000 digits of 28 by 28 pixels: (image, digit).

    The files are train-images-idx3-ubyte, train-labels-idx1-ubyte and, for train=False,
    t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, with or without .gz, in the
    folder MNIST/raw below root. data and targets have them as tensors. Raises
    RuntimeError with their names if one is missing, ValueError if one is damaged.

    root              the folder above MNIST, a path
    train             the 60,000 digits to train with, else the 10,000 to test with
    transform         a function of an image of Pillow, such as transforms.ToTensor()
    target_transform  a function of a digit, an int
    download          has no effect: nothing comes from the network

    >>> try:
    ...     torch.vision.datasets.MNIST('no_such_folder')
    ... except RuntimeError as error:
    ...     print(str(error).splitlines()[1])
        no_such_folder/MNIST/raw/train-images-idx3-ubyte
    """

    source = "https://ossci-datasets.s3.amazonaws.com/mnist/"
    classes: ClassVar[list[str]] = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]

    def _read(self) -> None:
        part = "train" if self.train else "t10k"
        names = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
        paths = [os.path.join(self.raw_folder, name) for name in names]
        found = [
            next((p for p in (path, path + ".gz") if os.path.isfile(p)), None)
            for path in paths
        ]
        if None in found:
            lost = [p for p, f in zip(paths, found, strict=True) if f is None]
            raise missing(type(self).__name__, lost, self.source)
        images, targets = (read_idx(path) for path in found if path)
        self.data = images
        self.targets: Any = targets.to(torch.int64)
        if self.data.ndim != 3 or self.targets.shape != self.data.shape[:1]:
            raise ValueError(
                f"{type(self).__name__}: {found[0]} has the shape "
                f"{[*self.data.shape]} and {found[1]} {[*self.targets.shape]}; they "
                "have to be (N, height, width) and (N,)"
            )

    @property
    def raw_folder(self) -> str:
        """The folder of the files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: i for i, name in enumerate(self.classes)}

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = pillow().fromarray(self.data[index].numpy())
        return self._transformed(image, int(self.targets[index]))


class FashionMNIST(MNIST):
    """As MNIST, with 70,000 clothes: (image, class). The folder is FashionMNIST/raw.

    >>> torch.vision.datasets.FashionMNIST.classes[9]
    'Ankle boot'
    """

    source = "https://github.com/zalandoresearch/fashion-mnist"
    classes: ClassVar[list[str]] = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


class KMNIST(MNIST):
    """As MNIST, with 70,000 Japanese characters. The folder is KMNIST/raw.

    >>> len(torch.vision.datasets.KMNIST.classes)
    10
    """

    source = "http://codh.rois.ac.jp/kmnist/"
    classes: ClassVar[list[str]] = [
        *("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
    ]
