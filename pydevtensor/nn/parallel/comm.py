"""The functions of cuda.comm, under the name that PyTorch has for them here."""

from pydevtensor._names import publish as _publish
from pydevtensor.cuda.comm import *  # noqa: F403

_publish(__name__)
