"""How long collective calls wait, unless a group says otherwise."""

from datetime import timedelta

from pydevtensor._names import publish as _publish
from pydevtensor.distributed._groups import default_pg_timeout as default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout: timedelta = default_pg_timeout

_publish(__name__)
