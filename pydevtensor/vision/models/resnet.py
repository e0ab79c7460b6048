"""Residual networks.

He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2015. The stride of a
bottleneck is in its second convolution, as in torchvision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.vision.models._weights import NewerWeights, Weights, model

__all__ = ["BasicBlock", "Bottleneck", "ResNet", "ResNet18_Weights"]
__all__ += ["ResNet34_Weights", "ResNet50_Weights", "ResNet101_Weights"]
__all__ += ["ResNet152_Weights", "resnet18", "resnet34", "resnet50", "resnet101"]
__all__ += ["resnet152"]

ResNet18_Weights = ResNet34_Weights = Weights
ResNet50_Weights = ResNet101_Weights = ResNet152_Weights = NewerWeights


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Module:
    return nn.Conv2d(
        inputs, outputs, size, stride=stride, padding=size // 2, bias=False
    )


class _Block(nn.Module):
    """Base of blocks whose result is added to their input."""

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        norm_layer: Callable[..., Any] = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        self._add_layers(inplanes, planes, stride, norm_layer)
        self.downsample = downsample
        self.stride = stride

    def _add_layers(self, inplanes: int, planes: int, stride: int, norm: Any) -> None:
        raise NotImplementedError


class BasicBlock(_Block):
    """Two convolutions of 3 by 3 pixels, whose result is added to the input.

    inplanes    channels of the input
    planes      channels of the result
    stride      step of the first convolution
    downsample  what brings the input to the result's shape; None: it has it
    norm_layer  makes a normalization of a number of channels

    >>> block = torch.vision.models.resnet.BasicBlock(4, 4)
    >>> block(torch.rand(2, 4, 5, 5)).shape
    torch.Size([2, 4, 5, 5])
    """

    expansion = 1

    def _add_layers(self, inplanes: int, planes: int, stride: int, norm: Any) -> None:
        self.conv1: nn.Module = _conv(inplanes, planes, 3, stride)
        self.bn1: Any = norm(planes)
        self.relu: nn.ReLU = nn.ReLU(inplace=True)
        self.conv2: nn.Module = _conv(planes, planes, 3)
        self.bn2: Any = norm(planes)

    def forward(self, x: Any) -> Any:
        """The result, (N, planes, height / stride, width / stride).

        x  (N, inplanes, height, width)
        """
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class Bottleneck(_Block):
    """A convolution of 3 by 3 pixels between two of 1 by 1, added to the input.

    inplanes    channels of the input
    planes      channels inside; the result has 4 times as many
    stride      step of the second convolution
    downsample  what brings the input to the result's shape; None: it has it
    norm_layer  makes a normalization of a number of channels

    >>> block = torch.vision.models.resnet.Bottleneck(16, 4)
    >>> block(torch.rand(2, 16, 5, 5)).shape
    torch.Size([2, 16, 5, 5])
    """

    expansion = 4

    def _add_layers(self, inplanes: int, planes: int, stride: int, norm: Any) -> None:
        outputs = planes * self.expansion
        self.conv1: nn.Module = _conv(inplanes, planes, 1)
        self.bn1: Any = norm(planes)
        self.conv2: nn.Module = _conv(planes, planes, 3, stride)
        self.bn2: Any = norm(planes)
        self.conv3: nn.Module = _conv(planes, outputs, 1)
        self.bn3: Any = norm(outputs)
        self.relu: nn.ReLU = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        """The result, (N, 4 * planes, height / stride, width / stride).

        x  (N, inplanes, height, width)
        """
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    """A residual network of four stages.

    See also resnet18() and the others.

    block               BasicBlock or Bottleneck, the class
    layers              how many blocks each of the stages has, four ints
    num_classes         how many scores come out
    zero_init_residual  start the last normalization of each block with zeros, so that
                        it passes its input on
    norm_layer          makes a normalization of a number of channels

    >>> block = torch.vision.models.resnet.BasicBlock
    >>> net = torch.vision.models.ResNet(block, [1, 1, 1, 1], num_classes=3)
    >>> net(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        block: Any,
        layers: list[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        norm_layer: Callable[..., Any] = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        self.inplanes: int = 64
        self.conv1: nn.Conv2d = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1: Any = norm_layer(64)
        self.relu: nn.ReLU = nn.ReLU(inplace=True)
        self.maxpool: nn.MaxPool2d = nn.MaxPool2d(3, stride=2, padding=1)
        for i, count in enumerate(layers):
            stage = self._stage(block, 64 << i, count, 2 if i else 1, norm_layer)
            setattr(self, f"layer{i + 1}", stage)
        self.avgpool: nn.AdaptiveAvgPool2d = nn.AdaptiveAvgPool2d((1, 1))
        self.fc: nn.Linear = nn.Linear(512 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif zero_init_residual and isinstance(m, BasicBlock | Bottleneck):
                last: Any = m.bn3 if isinstance(m, Bottleneck) else m.bn2
                nn.init.zeros_(last.weight)

    def _stage(
        self,
        block: Any,
        planes: int,
        count: int,
        stride: int,
        norm_layer: Callable[..., Any],
    ) -> nn.Module:
        outputs: int = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != outputs:
            shortcut = _conv(self.inplanes, outputs, 1, stride)
            downsample = nn.Sequential(shortcut, norm_layer(outputs))
        blocks = [block(self.inplanes, planes, stride, downsample, norm_layer)]
        self.inplanes = outputs
        for _ in range(count - 1):
            blocks.append(block(outputs, planes, norm_layer=norm_layer))
        return nn.Sequential(*blocks)

    def forward(self, x: Any) -> Any:
        """The scores of the classes, (N, num_classes).

        x  images, float of shape (N, 3, height, width)
        """
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


@model()
def resnet18(**options: Any) -> ResNet:
    """The network of 18 layers, a ResNet.

    Weights come from a local file: RuntimeError, which names it, where it is missing.

    weights     load the weights of ImageNet, whatever of ResNet18_Weights is given;
                None: draw them
    pretrained  the older way to ask for weights, True or False
    progress    has no effect: nothing is downloaded
    options     arguments of ResNet by name, such as num_classes

    >>> net = torch.vision.models.resnet18(num_classes=10)
    >>> net.layer1[0].conv1.weight.shape
    torch.Size([64, 64, 3, 3])
    """
    return ResNet(BasicBlock, [2, 2, 2, 2], **options)


@model()
def resnet34(**options: Any) -> ResNet:
    """As resnet18(), with 34 layers.

    >>> net = torch.vision.models.resnet34()
    """
    return ResNet(BasicBlock, [3, 4, 6, 3], **options)


@model()
def resnet50(**options: Any) -> ResNet:
    """As resnet18(), with 50 layers in blocks of three.

    >>> net = torch.vision.models.resnet50()
    """
    return ResNet(Bottleneck, [3, 4, 6, 3], **options)


@model()
def resnet101(**options: Any) -> ResNet:
    """As resnet18(), with 101 layers in blocks of three.

    >>> type(torch.vision.models.resnet101).__name__
    'function'
    """
    return ResNet(Bottleneck, [3, 4, 23, 3], **options)


@model()
def resnet152(**options: Any) -> ResNet:
    """As resnet18(), with 152 layers in blocks of three.

    >>> type(torch.vision.models.resnet152).__name__
    'function'
    """
    return ResNet(Bottleneck, [3, 8, 36, 3], **options)
