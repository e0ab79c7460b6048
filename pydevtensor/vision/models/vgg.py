"""Deep networks of small convolutions.

Simonyan, Zisserman: Very Deep Convolutional Networks for Large-Scale Image Recognition,
2014.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.vision.models._weights import Builder, Weights, model

__all__ = ["VGG", "VGG11_Weights", "VGG13_Weights", "VGG16_Weights", "VGG19_Weights"]
__all__ += ["vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19"]
__all__ += ["vgg19_bn"]

VGG11_Weights = VGG13_Weights = VGG16_Weights = VGG19_Weights = Weights
# Convolutions before each of the five poolings.
_COUNTS = {
    "vgg11": (1, 1, 2, 2, 2),
    "vgg13": (2, 2, 2, 2, 2),
    "vgg16": (2, 2, 3, 3, 3),
    "vgg19": (2, 2, 4, 4, 4),
}


class VGG(nn.Module):
    """features, then a pooling to 7 by 7 pixels and a classifier of three layers.

    See also vgg11() and the others, which make the features.

    features      what makes 512 channels of an image, mostly convolutions and poolings
    num_classes   how many scores come out
    init_weights  draw weights to train from; False is quicker, for weights that are
                  loaded
    dropout       probability of dropout in the classifier

    >>> net = torch.vision.models.VGG(nn.Sequential(nn.Identity()), init_weights=False)
    >>> net.classifier[6]
    Linear(in_features=4096, out_features=1000, bias=True)
    """

    def __init__(
        self,
        features: nn.Module,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool: nn.AdaptiveAvgPool2d = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier: nn.Sequential = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        for m in self.modules() if init_weights else ():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
            if isinstance(m, nn.Conv2d | nn.Linear) and m.bias is not None:
                nn.init.zeros_(m.bias)

    def forward(self, x: Any) -> Any:
        """The scores of the classes, (N, num_classes).

        x  images, float of shape (N, 3, height, width), at least 32 by 32 pixels
        """
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


def make_layers(cfg: Iterable[Any], batch_norm: bool = False) -> nn.Sequential:
    """The features of a VGG.

    cfg         for each convolution how many channels it makes, for a pooling "M"
    batch_norm  normalize what each convolution makes

    >>> len(make_layers([8, "M", 16, "M"]))
    6
    """
    layers: list[nn.Module] = []
    channels = 3
    for outputs in cfg:
        if outputs == "M":
            layers.append(nn.MaxPool2d(2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, outputs, 3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(outputs))
        layers.append(nn.ReLU(inplace=True))
        channels = outputs
    return nn.Sequential(*layers)


def _made(name: str, normed: bool, options: dict[str, Any]) -> VGG:
    cfg: list[Any] = []
    for i, count in enumerate(_COUNTS[name]):
        cfg += [min(64 << i, 512)] * count + ["M"]
    return VGG(make_layers(cfg, normed), **options)


@model(init_weights=False)
def vgg11(**options: Any) -> VGG:
    """The network of 11 layers, a VGG.

    Weights come from a local file: RuntimeError, which names it, where it is missing.

    weights     load the weights of ImageNet, whatever of VGG11_Weights is given; None:
                draw them
    pretrained  the older way to ask for weights, True or False
    progress    has no effect: nothing is downloaded
    options     arguments of VGG by name, such as num_classes

    >>> net = torch.vision.models.vgg11(init_weights=False)
    >>> net.features[0].weight.shape
    torch.Size([64, 3, 3, 3])
    """
    return _made("vgg11", False, options)


def _variant(name: str, normed: bool) -> Builder[VGG]:
    """A function that makes another VGG than vgg11() does."""

    def build(**options: Any) -> VGG:
        return _made(name, normed, options)

    build.__name__ = build.__qualname__ = f"{name}_bn" if normed else name
    news = [] if name == "vgg11" else [f"{name[3:]} layers"]
    news += ["batch normalization after each convolution"] if normed else []
    build.__doc__ = f"""As vgg11(), with {", and ".join(news)}.

    >>> type(torch.vision.models.{build.__name__}).__name__
    'function'
    """
    return model(init_weights=False)(build)


vgg11_bn = _variant("vgg11", True)
vgg13, vgg13_bn = _variant("vgg13", False), _variant("vgg13", True)
vgg16, vgg16_bn = _variant("vgg16", False), _variant("vgg16", True)
vgg19, vgg19_bn = _variant("vgg19", False), _variant("vgg19", True)
