"""Optimizers and their schedules."""

from pydevtensor._names import publish as _publish
from pydevtensor.optim import lr_scheduler
from pydevtensor.optim.algorithms import SGD, Adadelta, Adagrad, Adam, AdamW, RMSprop
from pydevtensor.optim.optimizer import Optimizer

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop"]
__all__ += ["lr_scheduler"]

_publish(__name__)
