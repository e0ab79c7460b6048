"""Discrete Fourier transforms, under torch.fft's names.

On the CPU they are those of SciPy, or of NumPy where SciPy is not installed; on a GPU
those of cuFFT, where it is found. Without these they are composed of matrix products.
"""

from pydevtensor import _C
from pydevtensor._names import publish as _publish

globals().update(_C._namespace("fft"))
_publish(__name__)
