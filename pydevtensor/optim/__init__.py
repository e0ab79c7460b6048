"""Optimizers and their schedules."""

from typing import TYPE_CHECKING

from pydevtensor._names import publish as _publish
from pydevtensor.optim import lr_scheduler
from pydevtensor.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from pydevtensor.optim.algorithms import ASGD, SGD, Adadelta, Adagrad, RMSprop, Rprop
from pydevtensor.optim.lbfgs import LBFGS
from pydevtensor.optim.muon import Muon
from pydevtensor.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from pydevtensor.optim import swa_utils

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax"]
__all__ += ["Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop"]
__all__ += ["lr_scheduler", "swa_utils"]

_publish(__name__, later=("swa_utils",))  # it needs all of nn
