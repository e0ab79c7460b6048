"""The modules of nn, a file for each subject, by the names of torch.nn.modules."""

from pydevtensor.nn.modules import utils

__all__ = ["utils"]
