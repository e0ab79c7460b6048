"""Data sets of images, read from local files in their usual layout."""

from pydevtensor._names import publish as _publish
from pydevtensor.vision.datasets.cifar import CIFAR10, CIFAR100
from pydevtensor.vision.datasets.fake import FakeData
from pydevtensor.vision.datasets.folder import DatasetFolder, ImageFolder
from pydevtensor.vision.datasets.mnist import KMNIST, MNIST, FashionMNIST
from pydevtensor.vision.datasets.vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100", "DatasetFolder", "FakeData", "FashionMNIST"]
__all__ += ["KMNIST", "MNIST", "ImageFolder", "VisionDataset"]

_publish(__name__)
