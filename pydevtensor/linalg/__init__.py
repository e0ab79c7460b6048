"""Matrices: norms, products, factorizations, equations, under torch.linalg's names.

Factorizations use the LAPACK that comes with an OpenBLAS: pip install scipy-openblas64,
or NumPy's own. They take float32 and float64, on the CPU and on simulated GPUs.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.linalg._factor import *
from pydevtensor.linalg._lapack import LinAlgError
from pydevtensor.linalg._norms import *
from pydevtensor.linalg._solve import *
from pydevtensor.linalg._spectral import *

_publish(__name__)
