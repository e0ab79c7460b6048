"""Optimizers and their schedules."""

from pydevtensor._names import publish as _publish
from pydevtensor.optim import lr_scheduler
from pydevtensor.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from pydevtensor.optim.algorithms import ASGD, SGD, Adadelta, Adagrad, RMSprop, Rprop
from pydevtensor.optim.optimizer import Optimizer

__all__ = ["ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam"]
__all__ += ["Optimizer", "RAdam", "RMSprop", "Rprop", "lr_scheduler"]

_publish(__name__)
