"""Matrices: norms, products, factorizations, equations, under torch.linalg's names.

Factorizations use the LAPACK that comes with an OpenBLAS: pip install scipy-openblas64,
or NumPy's own. They take float32 and float64, on the CPU and on simulated GPUs.
"""

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.linalg import factors, indefinite, norms, spectra, systems
from pydevtensor.linalg.lapack import LinAlgError as LinAlgError

globals().update(_C._namespace("linalg"))
_publish(__name__)
