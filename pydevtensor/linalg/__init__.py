"""Matrices: norms, products, factorizations, equations, under torch.linalg's names.

Factorizations use the LAPACK that comes with an OpenBLAS: pip install scipy-openblas64,
or NumPy's own. They take float32 and float64, on the CPU and on simulated GPUs.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.linalg.factors import *
from pydevtensor.linalg.lapack import (
    LinAlgError as LinAlgError,
)
from pydevtensor.linalg.norms import *
from pydevtensor.linalg.spectra import *
from pydevtensor.linalg.systems import *

_publish(__name__)
