"""DTensor: a tensor of which each rank has a part or a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor.autograd import Function
from pydevtensor.distributed.device_mesh import DeviceMesh
from pydevtensor.distributed.tensor._layout import Layout
from pydevtensor.distributed.tensor._placements import Partial, Placement, Shard

Tensor = _C.Tensor
# Methods and attributes that only need the shape and the type.
_ANSWERS = {"dim", "element_size", "is_complex", "is_floating_point", "ndimension"}
_ANSWERS |= {"nelement", "numel", "size", "stride"}
_ANSWERS |= {"dtype", "is_sparse", "itemsize", "layout", "nbytes", "ndim", "shape"}


class DTensor(_C.Tensor):
    """A tensor of which each rank of a DeviceMesh has a part or a copy.

    distribute_tensor() and from_local() make one, with the shape of the whole tensor.
    Its only operations are to_local(), full_tensor() and redistribute(), which have
    gradients. Parameters that fully_shard() has divided, and their gradients, are
    DTensors with the shape of this rank's rows.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh('cpu', (1,))
    >>> x = dist.tensor.distribute_tensor(torch.eye(2), mesh, [dist.tensor.Shard(0)])
    >>> x.placements, x.full_tensor().sum()
    ((Shard(dim=0),), tensor(2.))
    >>> dist.destroy_process_group()
    """

    _local: Any  # this rank's part
    _layout: Layout

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
    ) -> DTensor:
        """Make a DTensor from the part of each rank.

        local_tensor: this rank's part, which gets its gradient. device_mesh: the ranks.
        placements: one for each dimension of the mesh; None: Replicate(). shape: that
        of the whole tensor; None: the parts have equal shapes. run_check, stride:
        change nothing. ValueError for placements that do not fit.
        """
        layout = Layout.of(local_tensor.shape, device_mesh, placements)
        whole = [*local_tensor.shape]
        for i, each in enumerate(layout.placements):
            if isinstance(each, Shard):
                whole[each.dim] *= device_mesh.size(i)
        layout = Layout.of(shape or whole, device_mesh, placements)
        return _made(local_tensor.view_as(local_tensor), layout)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part, of the same memory.

        grad_placements: the placements of the gradient of the result; None: the
        DTensor's.
        """
        layout = self._layout
        if grad_placements is not None:
            layout = Layout.of(layout.shape, layout.mesh, grad_placements)
        found: Tensor = _Local.apply(self._local, self._layout, layout)
        return found

    def full_tensor(
        self, *, grad_placements: Sequence[Placement] | None = None
    ) -> Tensor:
        """The whole tensor. All ranks of the mesh have to call it.

        grad_placements: the placements of the gradient of the result; None: each rank
        has the whole gradient.
        """
        return self.redistribute(placements=None).to_local(
            grad_placements=grad_placements
        )

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
    ) -> DTensor:
        """The same tensor with other placements. All ranks of the mesh have to call it.

        device_mesh: None, or the DTensor's. placements: one for each dimension of the
        mesh; None: Replicate(). async_op: changes nothing. RuntimeError for a Partial
        that the DTensor does not have, ValueError for placements that do not fit and
        for another mesh.
        """
        now = self._layout
        if device_mesh not in (None, now.mesh):
            raise ValueError(
                f"redistribute(): device_mesh is {device_mesh!r}; give that of the "
                f"DTensor, {now.mesh!r}, or none"
            )
        then = Layout.of(now.shape, now.mesh, placements)
        for have, want in zip(now.placements, then.placements, strict=True):
            if isinstance(want, Partial) and have != want:
                raise RuntimeError(
                    f"Can not redistribute from {have} to {want}; give Shard(dim) or "
                    "Replicate()"
                )
        return _made(_Move.apply(self._local, now, then), then)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks among which the tensor is distributed."""
        return self._layout.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """A placement for each dimension of the mesh."""
        return self._layout.placements


class _Placed(DTensor):
    """A DTensor that is itself a meta tensor of the whole shape."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Raises, except for _ANSWERS."""
        name = getattr(func, "__name__", str(func))
        name = func.__self__.__name__ if name == "__get__" else name
        if name in _ANSWERS:
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise NotImplementedError(
            f"{name}() of a DTensor is not supported; compute with to_local(), "
            "this rank's part, or with full_tensor(), which all ranks call"
        )

    @property
    def device(self) -> Any:
        """The device of this rank's part."""
        return self._local.device

    @property
    def requires_grad(self) -> bool:
        """Whether backward() computes its gradient."""
        return bool(self._local.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._local.requires_grad = value

    def requires_grad_(self, requires_grad: bool = True) -> _Placed:
        """Set requires_grad."""
        self._local.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation computed it."""
        return bool(self._local.is_leaf)

    @property
    def grad_fn(self) -> Any:
        """The node of the operation that computed this rank's part, or None."""
        return self._local.grad_fn

    @property
    def grad(self) -> Any:
        """The gradient, a DTensor with these placements; or None."""
        found = self._local.grad
        return None if found is None else _made(found, self._layout.gradient())

    @grad.setter
    def grad(self, value: Any) -> None:
        self._local.grad = value._local if isinstance(value, DTensor) else value

    def __repr__(self, *unused: Any) -> str:
        return (
            f"DTensor(local_tensor={self._local!r}, device_mesh={self.device_mesh!r}, "
            f"placements={self.placements!r})"
        )


def _made(local: Tensor, layout: Layout) -> DTensor:
    like = _C.empty(layout.shape, dtype=local.dtype, device="meta")
    made: _Placed = _C._make_subclass(_Placed, like)
    made._local, made._layout = local, layout
    return made


class _Move(Function):
    """Moves a part from one layout to another, and its gradient back."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, now: Layout, then: Layout) -> Tensor:
        ctx.layouts = now.gradient(), then.gradient()
        if now == then:
            return local.view_as(local)
        return then.cut(now.whole(local.detach())).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        now, then = ctx.layouts
        return now.cut(then.whole(gradient)).clone(), None, None


class _Local(Function):
    """The part itself; its gradient may have another layout."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, own: Layout, of_gradient: Layout) -> Tensor:
        ctx.layouts = own.gradient(), of_gradient
        ctx.differs = own != of_gradient
        return local.view_as(local)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        own, of_gradient = ctx.layouts
        if ctx.differs:
            gradient = own.cut(of_gradient.whole(gradient)).clone()
        return gradient, None, None


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Give each rank of a mesh its part of a tensor. All of them have to call it.

    tensor         a leaf of the same shape on all ranks
    device_mesh    the ranks
    placements     Shard(dim) or Replicate() for each dimension of the mesh; None:
                   Replicate()
    src_data_rank  the rank, along each dimension, whose values are distributed; None:
                   each rank takes its part of its own tensor

    ValueError for placements that do not fit, RuntimeError for a tensor that is not a
    leaf.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh('cpu', (1,))
    >>> dist.tensor.distribute_tensor(torch.ones(2), mesh, [dist.tensor.Shard(0)]).shape
    torch.Size([2])
    >>> dist.destroy_process_group()
    """
    layout = Layout.of(tensor.shape, device_mesh, placements)
    if isinstance(tensor, DTensor):
        if (tensor.device_mesh, tensor.placements) != (device_mesh, layout.placements):
            raise ValueError(
                "distribute_tensor(): the tensor is a DTensor already, with placements "
                f"{tensor.placements}; call its redistribute()"
            )
        return tensor
    if any(isinstance(each, Partial) for each in layout.placements):
        raise ValueError(
            f"distribute_tensor(): placements are {layout.placements}; give Shard(dim) "
            "or Replicate(). DTensor.from_local() takes Partial()"
        )
    if not tensor.is_leaf:
        raise RuntimeError(
            "distribute_tensor(): the tensor is not a leaf; give a detach() of it, or "
            "use DTensor.from_local(), which gradients pass"
        )
    whole = tensor.detach().to(device_mesh.device_type)
    if src_data_rank is not None:
        whole = whole.clone(memory_format=_C.contiguous_format)
        for i in range(device_mesh.ndim):
            group = device_mesh.get_group(i)
            dist.broadcast(whole, group=group, group_src=src_data_rank)
    local = layout.cut(whole).clone()
    return _made(local.requires_grad_(tensor.requires_grad), layout)
