"""Functions that torch.functional has too."""

from pydevtensor._C import meshgrid, typename

__all__ = ["meshgrid", "typename"]
