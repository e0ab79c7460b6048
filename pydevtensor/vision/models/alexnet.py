"""AlexNet.

Krizhevsky: One weird trick for parallelizing convolutional neural networks, 2014.
"""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.vision.models._weights import Weights, model

__all__ = ["AlexNet", "AlexNet_Weights", "alexnet"]

AlexNet_Weights = Weights


class AlexNet(nn.Module):
    """Five convolutions and three layers that classify.

    num_classes  how many scores come out
    dropout      probability of dropout before the first two of the three layers

    >>> net = torch.vision.models.AlexNet(num_classes=10)
    >>> net.features[0].weight.shape
    torch.Size([64, 3, 11, 11])
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features: nn.Sequential = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2),
        )
        self.avgpool: nn.AdaptiveAvgPool2d = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier: nn.Sequential = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )

    def forward(self, x: Any) -> Any:
        """The scores of the classes, (N, num_classes).

        x  images, float of shape (N, 3, height, width), at least 63 by 63 pixels
        """
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


@model()
def alexnet(**options: Any) -> AlexNet:
    """An AlexNet.

    Weights come from a local file: RuntimeError, which names it, where it is missing.

    weights     load the weights of ImageNet, whatever of AlexNet_Weights is given;
                None: draw them
    pretrained  the older way to ask for weights, True or False
    progress    has no effect: nothing is downloaded
    options     arguments of AlexNet by name, such as num_classes

    >>> type(torch.vision.models.alexnet).__name__
    'function'
    """
    return AlexNet(**options)
