"""Pillow, which is asked for when an image is first needed."""

from __future__ import annotations

import sys
from typing import Any


def pillow(part: str = "Image") -> Any:
    """A module of Pillow; ImportError with what to do where it is not installed."""
    from importlib import import_module

    try:
        return import_module(f"PIL.{part}")
    except ImportError as error:
        raise ImportError(
            f"images need Pillow, which cannot be imported ({error}); install it with "
            "`pip install pillow`"
        ) from None


def is_image(value: Any) -> bool:
    """Whether it is an image of Pillow's."""
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, module.Image)
