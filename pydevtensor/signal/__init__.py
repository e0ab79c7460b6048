"""Windows for the analysis of signals, under torch.signal's names."""

from pydevtensor.signal import windows

__all__ = ["windows"]
