"""Pillow and NumPy, which are asked for when they are first needed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def pillow(part: str = "Image") -> Any:
    """A module of Pillow; ImportError with what to do where it is not installed."""
    return _needed(f"PIL.{part}", "images need Pillow")


def numpy(user: str) -> Any:
    """NumPy; ImportError with what to do where it is not installed.

    user: the function that needs it, for the message.
    """
    return _needed("numpy", f"{user} needs NumPy")


def is_image(value: Any) -> bool:
    """Whether it is an image of Pillow's."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)


def _needed(module: str, need: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        package = need.rpartition(" ")[2].lower()
        raise ImportError(
            f"{need}, which cannot be imported ({error}); install it with "
            f"`pip install {package}`"
        ) from None
