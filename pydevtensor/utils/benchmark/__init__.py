"""How long statements take: measured, summed up, and compared in tables."""

from pydevtensor._names import publish as _publish
from pydevtensor.utils.benchmark._compare import Colorize as Colorize
from pydevtensor.utils.benchmark._compare import Compare as Compare
from pydevtensor.utils.benchmark._measurement import Measurement as Measurement
from pydevtensor.utils.benchmark._measurement import TaskSpec as TaskSpec
from pydevtensor.utils.benchmark._measurement import ordered_unique as ordered_unique
from pydevtensor.utils.benchmark._measurement import select_unit as select_unit
from pydevtensor.utils.benchmark._measurement import trim_sigfig as trim_sigfig
from pydevtensor.utils.benchmark._measurement import unit_to_english as unit_to_english
from pydevtensor.utils.benchmark._timer import Language as Language
from pydevtensor.utils.benchmark._timer import Timer as Timer
from pydevtensor.utils.benchmark._timer import set_torch_threads as set_torch_threads
from pydevtensor.utils.benchmark._timer import timer as timer

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

_publish(
    __name__,
    home_of=("Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer"),
)
