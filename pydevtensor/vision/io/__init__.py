"""Reading and writing images as tensors."""

from pydevtensor._names import publish as _publish
from pydevtensor.vision.io import image
from pydevtensor.vision.io.image import (
    ImageReadMode,
    decode_image,
    read_image,
    write_jpeg,
    write_png,
)

__all__ = ["ImageReadMode", "decode_image", "image", "read_image", "write_jpeg"]
__all__ += ["write_png"]

_publish(__name__)
