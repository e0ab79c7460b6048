"""DTensors of which each rank makes its part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor.distributed.device_mesh import DeviceMesh
from pydevtensor.distributed.tensor._dtensor import DTensor
from pydevtensor.distributed.tensor._dtensor import made as _made
from pydevtensor.distributed.tensor._layout import Layout
from pydevtensor.distributed.tensor._placements import Partial, Placement

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]

_SAYS = """A DTensor of {what}.

    size           of the whole tensor, ints or one sequence of them
    dtype          torch.get_default_dtype() by default
    layout         torch.strided
    requires_grad  whether gradients are computed for it
    device_mesh    the ranks; ValueError for None
    placements     Shard(dim) or Replicate() for each dimension of the mesh; None:
                   Replicate()

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh('cpu', (1,))
    >>> dist.tensor.{name}(4, 2, device_mesh=mesh).to_local().shape
    torch.Size([4, 2])
    >>> dist.destroy_process_group()
    """


def _layout(name: str, size: Any, mesh: Any, placements: Any) -> Layout:
    if len(size) == 1 and not isinstance(size[0], int):
        size = size[0]
    layout = Layout.of(size, mesh, placements)
    if any(isinstance(each, Partial) for each in layout.placements):
        raise ValueError(
            f"{name}(): placements are {layout.placements}; give Shard(dim) or "
            "Replicate()"
        )
    return layout


def _maker(name: str, what: str, whole: bool = False) -> Callable[..., DTensor]:
    make = getattr(_C, name)

    def create(
        *size: Any,
        dtype: Any = None,
        layout: Any = _C.strided,
        requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        found = _layout(name, size, device_mesh, placements)
        device = found.mesh.device_type
        if whole:  # ranks with equal seeds have parts of what one process has
            tensor = make(found.shape, dtype=dtype, layout=layout, device=device)
            part = found.cut(tensor).clone()
        else:
            part = make(found.part_shape(), dtype=dtype, layout=layout, device=device)
        return _made(part.requires_grad_(requires_grad), found)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = _SAYS.format(what=what, name=name)
    return create


empty = _maker("empty", "undefined values")
ones = _maker("ones", "ones")
zeros = _maker("zeros", "zeros")
rand = _maker("rand", "random numbers from 0 to 1", whole=True)
randn = _maker("randn", "random numbers with mean 0 and variance 1", whole=True)


def full(size: Any, fill_value: Any, **named: Any) -> DTensor:
    """A DTensor whose elements are one number.

    size        of the whole tensor, a sequence of ints
    fill_value  the number
    named       dtype, by default that of the number; layout, requires_grad,
                device_mesh and placements as for ones()

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh('cpu', (1,))
    >>> dist.tensor.full((2,), 7.0, device_mesh=mesh).full_tensor()
    tensor([7., 7.])
    >>> dist.destroy_process_group()
    """
    dtype = named.get("dtype") or _C.full((), fill_value).dtype
    made = empty(size, **{**named, "dtype": dtype, "requires_grad": False})
    return made.fill_(fill_value).requires_grad_(named.get("requires_grad", False))
