"""SqueezeNet.

Iandola et al.: SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB
model size, 2016.
"""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.vision.models._weights import Weights, model

__all__ = ["SqueezeNet", "SqueezeNet1_0_Weights", "SqueezeNet1_1_Weights"]
__all__ += ["squeezenet1_0", "squeezenet1_1"]

SqueezeNet1_0_Weights = SqueezeNet1_1_Weights = Weights
# For each version: the first convolution, and then the channels that a block squeezes
# to and expands to, with None for a pooling.
_VERSIONS: dict[str, tuple[Any, ...]] = {
    "1_0": (
        (96, 7),
        *(None, (16, 64), (16, 64), (32, 128), None, (32, 128), (48, 192), (48, 192)),
        *((64, 256), None, (64, 256)),
    ),
    "1_1": (
        (64, 3),
        *(None, (16, 64), (16, 64), None, (32, 128), (32, 128), None, (48, 192)),
        *((48, 192), (64, 256), (64, 256)),
    ),
}


class _Fire(nn.Module):
    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        x = self.squeeze_activation(self.squeeze(x))
        narrow = self.expand1x1_activation(self.expand1x1(x))
        wide = self.expand3x3_activation(self.expand3x3(x))
        return torch.cat([narrow, wide], 1)


class SqueezeNet(nn.Module):
    """Convolutions that squeeze the channels and expand them.

    version      '1_0' or '1_1', which is quicker; ValueError for another
    num_classes  how many scores come out
    dropout      probability of dropout before the last convolution

    >>> net = torch.vision.models.SqueezeNet('1_1', num_classes=10)
    >>> net(torch.rand(1, 3, 64, 64)).shape
    torch.Size([1, 10])
    """

    def __init__(
        self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5
    ) -> None:
        super().__init__()
        if version not in _VERSIONS:
            raise ValueError(f"SqueezeNet: version is {version!r}; give '1_0' or '1_1'")
        (channels, size), *blocks = _VERSIONS[version]
        layers: list[nn.Module] = [nn.Conv2d(3, channels, size, stride=2)]
        layers.append(nn.ReLU(inplace=True))
        for block in blocks:
            if block is None:
                layers.append(nn.MaxPool2d(3, stride=2, ceil_mode=True))
            else:
                layers.append(_Fire(channels, *block))
                channels = 2 * block[1]
        self.num_classes = num_classes
        self.features: nn.Sequential = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, 1)
        self.classifier: nn.Sequential = nn.Sequential(
            nn.Dropout(p=dropout),
            last,
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d((1, 1)),
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                if m is last:
                    nn.init.normal_(m.weight, mean=0.0, std=0.01)
                else:
                    nn.init.kaiming_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x: Any) -> Any:
        """The scores of the classes, (N, num_classes).

        x  images, float of shape (N, 3, height, width)
        """
        return torch.flatten(self.classifier(self.features(x)), 1)


@model()
def squeezenet1_0(**options: Any) -> SqueezeNet:
    """The first version of SqueezeNet.

    Weights come from a local file: RuntimeError, which names it, where it is missing.

    weights     load the weights of ImageNet, whatever of SqueezeNet1_0_Weights is
                given; None: draw them
    pretrained  the older way to ask for weights, True or False
    progress    has no effect: nothing is downloaded
    options     arguments of SqueezeNet by name, such as num_classes

    >>> type(torch.vision.models.squeezenet1_0).__name__
    'function'
    """
    return SqueezeNet("1_0", **options)


@model()
def squeezenet1_1(**options: Any) -> SqueezeNet:
    """As squeezenet1_0(), of the second version, which is quicker.

    >>> type(torch.vision.models.squeezenet1_1).__name__
    'function'
    """
    return SqueezeNet("1_1", **options)
