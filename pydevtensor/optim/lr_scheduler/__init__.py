"""Learning rate schedules.

Most compute an epoch's rate from the last one, so that several can be chained on one
optimizer.
"""

from pydevtensor._names import publish as _publish
from pydevtensor.optim.lr_scheduler.base import LRScheduler, _LRScheduler  # noqa: F401
from pydevtensor.optim.lr_scheduler.cosine import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
)
from pydevtensor.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from pydevtensor.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from pydevtensor.optim.lr_scheduler.functions import LambdaLR, MultiplicativeLR
from pydevtensor.optim.lr_scheduler.many import ChainedScheduler, SequentialLR
from pydevtensor.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR"]
__all__ += ["CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler"]
__all__ += ["LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR"]
__all__ += ["PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]

_publish(__name__, home_of=__all__)
