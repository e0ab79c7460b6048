"""torch.fx.passes: shapes of a graph's values, and a graph in parts."""

from pydevtensor._names import publish as _publish
from pydevtensor.fx.passes import shape_prop, split_module

__all__ = ["shape_prop", "split_module"]

_publish(__name__)
