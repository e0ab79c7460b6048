"""torch.utils.model_zoo: the older name of torch.hub's download of weights."""

from pydevtensor._names import publish as _publish
from pydevtensor.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]

_publish(__name__)
