"""Modules, losses, and the functions that they call."""

from pydevtensor._names import publish as _publish
from pydevtensor.nn import functional, init, utils
from pydevtensor.nn.activations import (
    ELU,
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
)
from pydevtensor.nn.containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from pydevtensor.nn.embedding import Embedding
from pydevtensor.nn.layers import (
    BatchNorm1d,
    BatchNorm2d,
    Bilinear,
    Dropout,
    Flatten,
    Identity,
    LayerNorm,
    LazyLinear,
    Linear,
    Unflatten,
)
from pydevtensor.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from pydevtensor.nn.module import Module
from pydevtensor.nn.parameter import Buffer, Parameter, UninitializedParameter

__all__ = ["ELU", "GELU", "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d", "BatchNorm2d"]
__all__ += ["Bilinear", "Buffer", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten"]
__all__ += ["HuberLoss", "Identity", "KLDivLoss", "L1Loss", "LayerNorm", "LazyLinear"]
__all__ += ["LeakyReLU", "Linear", "LogSoftmax", "MSELoss", "Module", "ModuleDict"]
__all__ += ["ModuleList", "NLLLoss", "Parameter", "ParameterDict", "ParameterList"]
__all__ += ["ReLU", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax"]
__all__ += ["Softplus", "Tanh", "Unflatten", "UninitializedParameter", "functional"]
__all__ += ["init", "utils"]

_publish(__name__)
