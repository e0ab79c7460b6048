"""utils.data (data sets and loaders), benchmark, checkpoint, dlpack, flop_counter."""

from typing import TYPE_CHECKING

_MODULES = ["benchmark", "checkpoint", "data", "dlpack", "flop_counter", "model_zoo"]

if TYPE_CHECKING:
    from pydevtensor.utils import benchmark as benchmark
    from pydevtensor.utils import checkpoint as checkpoint
    from pydevtensor.utils import data as data
    from pydevtensor.utils import dlpack as dlpack
    from pydevtensor.utils import flop_counter as flop_counter
    from pydevtensor.utils import model_zoo as model_zoo
else:  # imported when they are first named

    def __getattr__(name):
        if name in _MODULES:
            from importlib import import_module

            return import_module("pydevtensor.utils." + name)
        from pydevtensor import _find_absent

        return _find_absent(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES} - {"TYPE_CHECKING"})
