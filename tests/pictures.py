"""Pictures for tests of vision."""

import math

import pydevtensor as torch
from pydevtensor.vision.transforms import functional as TF


def counted(*shape):
    """An image of uint8 with different values."""
    n = math.prod(shape)
    return (torch.arange(n) * 7 % 256).to(torch.uint8).reshape(shape)


def as_image(x):
    return TF.to_pil_image(x)
