"""Window functions, under torch.signal.windows' names.

Each takes the number of samples, M, and as keywords
    sym            whether the window is symmetric; else it is one of M + 1 samples
                   without the last, whose repetition is periodic
    dtype          float32 or float64; None: the default type
    layout         strided
    device         None: the default one
    requires_grad  whether the window is to have a gradient
A ValueError for M below 0, and for another dtype. One sample is 1.
"""

from pydevtensor.signal.windows.windows import *
from pydevtensor.signal.windows.windows import __all__ as __all__
