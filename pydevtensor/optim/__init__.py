"""Optimizers and their schedules."""

from typing import TYPE_CHECKING

from pydevtensor._names import give as _give
from pydevtensor._names import make_modules as _make_modules
from pydevtensor._names import publish as _publish
from pydevtensor.optim import lr_scheduler
from pydevtensor.optim.adafactor import Adafactor
from pydevtensor.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from pydevtensor.optim.algorithms import ASGD, SGD, Adadelta, Adagrad, RMSprop, Rprop
from pydevtensor.optim.lbfgs import LBFGS
from pydevtensor.optim.muon import Muon
from pydevtensor.optim.optimizer import Optimizer
from pydevtensor.optim.sparse_adam import SparseAdam

if TYPE_CHECKING:
    from pydevtensor.optim import swa_utils

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam"]
__all__ += [
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
]
__all__ += ["lr_scheduler", "swa_utils"]

_make_modules(__name__, asgd=ASGD, sgd=SGD, adadelta=Adadelta, adagrad=Adagrad)
_make_modules(__name__, adamw=AdamW, adamax=Adamax, nadam=NAdam, radam=RAdam)
_make_modules(__name__, rmsprop=RMSprop, rprop=Rprop)
_give(__name__, Adafactor, Muon, SparseAdam)
_publish(__name__, later=("swa_utils",))  # it needs all of nn
