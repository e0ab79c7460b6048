"""DTensor: a tensor of which each rank has a part or a copy."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor.distributed.device_mesh import DeviceMesh, mesh_again
from pydevtensor.distributed.tensor import _calls
from pydevtensor.distributed.tensor._layout import Layout, Sharding
from pydevtensor.distributed.tensor._moves import Local, Move
from pydevtensor.distributed.tensor._placements import Partial, Placement, Shard, placed

Tensor = _C.Tensor
_data: Any = Tensor.data  # attributes of all Tensors
_grad: Any = Tensor.grad


class DTensor(_C.Tensor):
    """A tensor of which each rank of a DeviceMesh has a part or a copy.

    distribute_tensor() and from_local() make one; parameters that fully_shard() has
    divided, their gradients and an optimizer's states of them are others. Its shape is
    that of the whole tensor, its memory this rank's part. Elementwise operations,
    reductions, views and subscripts compute with the parts, and gather where a part is
    not enough: all ranks of the mesh call them. Others raise NotImplementedError: they
    need to_local(), full_tensor() or redistribute(), which have gradients.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh('cpu', (1,))
    >>> x = dist.tensor.distribute_tensor(torch.eye(2), mesh, [dist.tensor.Shard(0)])
    >>> x.placements, x.full_tensor().sum()
    ((Shard(dim=0),), tensor(2.))
    >>> dist.destroy_process_group()
    """

    _is_distributed = True  # for is_distributed()
    _layout: Layout
    _parameter: Any = None  # the class nn.Parameter, if it is one

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Computes with the parts, where the result is a part."""
        return _calls.call(DTensor, func, args, kwargs or {})

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
        of the whole tensor; None: the parts have equal shapes. stride: what stride()
        returns. run_check: changes nothing. ValueError for placements that do not fit.
        """
        layout = Layout.of(local_tensor.shape, device_mesh, placements)
        whole = [*local_tensor.shape]
        for i, each in enumerate(layout.placements):
            if isinstance(each, Shard):
                whole[each.dim] *= device_mesh.size(i)
        layout = Layout.of(shape or whole, device_mesh, placements)
        if stride is not None:
            layout = replace(layout, strides=tuple(stride))
        return made(local_tensor.view_as(local_tensor), layout)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part, of the same memory.

        grad_placements: the placements of the gradient of the result; None: the
        DTensor's.
        """
        layout = self._layout
        if grad_placements is not None:
            layout = Layout.of(layout.shape, layout.mesh, grad_placements)
        with _C.DisableTorchFunctionSubclass():
            found: Tensor = Local.apply(self, self._layout, layout)
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
        with _C.DisableTorchFunctionSubclass():
            return made(Move.apply(self, now, then), now if now == then else then)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks among which the tensor is distributed."""
        return self._layout.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """A placement for each dimension of the mesh."""
        return self._layout.placements

    @property
    def shape(self) -> Any:
        """That of the whole tensor."""
        return _C.Size(self._layout.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of the whole tensor."""
        return self.numel() * self.itemsize

    def __len__(self) -> int:
        """The first size of the whole tensor."""
        return int(self.size(0))

    @property
    def data(self) -> DTensor:
        """A DTensor of the same memory, without gradients."""
        return made(_data.__get__(self), self._layout)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, DTensor) or value._layout != self._layout:
            raise RuntimeError(
                f"data is {value!r:.200}, and that of this DTensor has to be a DTensor "
                f"of shape {[*self.shape]} with placements {self.placements}; give one "
                "of distribute_tensor()"
            )
        _data.__set__(self, value)

    @property
    def grad(self) -> Tensor | None:
        """The gradient, a DTensor, too; or None."""
        found: Tensor | None = _grad.__get__(self)
        if found is None or isinstance(found, DTensor):
            return found
        own = self._gradient(found)
        if not found.requires_grad:
            _grad.__set__(self, own)  # one object, as long as it is held
        return own

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, DTensor):
            raise RuntimeError(
                f"grad is a {type(value).__name__} of shape {[*value.shape]}, and that "
                "of a DTensor has to be a DTensor; give DTensor.from_local(part, mesh, "
                "placements)"
            )
        _grad.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        _grad.__delete__(self)

    def _without_terms(self) -> DTensor:
        """The same with copies in place of terms. All ranks of the mesh call it."""
        return self.redistribute(placements=self._layout.gradient().placements)

    def _gradient(self, found: Tensor) -> DTensor:
        """The DTensor of a gradient of this one."""
        return made(found, self._layout.gradient())

    @property
    def _sharding(self) -> Sharding | None:
        """How its rows are divided; None if each rank has all."""
        return self._layout.sharding()

    @property
    def _ranks_of_norm(self) -> Any:
        """The ranks that have the other parts; None if each has all."""
        return self._layout.ranks_with_parts()

    def _take(self, whole: Tensor) -> DTensor:
        """Copy this rank's part of a whole tensor."""
        with _C.DisableTorchFunctionSubclass():
            self.copy_(self._layout.cut(whole))
        return self

    def _as_parameter(self, base: type, requires_grad: bool) -> Any:
        """nn.Parameter(self, requires_grad), of the same memory. base: that class."""
        kind = parameter_kind(base)
        with _C.DisableTorchFunctionSubclass():
            part = _C._make_subclass(kind, self.detach(), requires_grad)
        part._layout = self._layout
        return part

    def _tell_ranks(self, flags: Iterable[Tensor]) -> None:
        tell_ranks(flags, self._ranks_of_norm)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """This rank's part, and where it belongs."""
        if self._parameter is not None:
            return self._parameter, (self.detach(), self.requires_grad)
        layout, mesh = self._layout, self._layout.mesh
        placements = [
            (type(each).__name__, *vars(each).values()) for each in layout.placements
        ]
        belongs = mesh.device_type, mesh.mesh.tolist(), mesh.mesh_dim_names
        part = self.to_local().detach()
        given = part, *belongs, tuple(placements), layout.shape
        return _rebuilt, (*given, self.requires_grad)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) not in memo:
            with _C.DisableTorchFunctionSubclass():
                own = self.detach().clone()
            copy = _C._make_subclass(type(self), own, self.requires_grad)
            copy._layout, memo[id(self)] = self._layout, copy
        return memo[id(self)]

    def __array__(self, *unused: Any, **named: Any) -> Any:
        raise _calls.refusal("numpy")

    def __dlpack__(self, *unused: Any, **named: Any) -> Any:
        raise _calls.refusal("numpy")

    def __format__(self, spec: str) -> str:
        return (
            format(self.item(), spec)
            if not self.ndim
            else object.__format__(self, spec)
        )

    def __repr__(self, *unused: Any) -> str:
        return (
            f"DTensor(local_tensor={self.to_local().detach()!r}, "
            f"device_mesh={self.device_mesh!r}, placements={self.placements!r})"
        )


def _number(name: str) -> Any:
    def read(self: Any) -> Any:
        return getattr(self.full_tensor(), name)()

    return read


for _name in ("item", "__bool__", "__complex__", "__float__", "__index__", "__int__"):
    setattr(DTensor, _name, _number(_name))


def _refused(name: str) -> Any:
    def read(self: Any) -> Any:
        raise _calls.refusal(name)

    return property(read, doc="Raises NotImplementedError.")


def _viewed(name: str) -> Any:
    get = vars(Tensor)[name].__get__

    def read(self: Any) -> Any:
        return _calls.call(DTensor, get, (self,), {}, name)

    return property(read, doc="The dimensions in another order.")


for _name in ("H", "T", "mH", "mT"):
    setattr(DTensor, _name, _viewed(_name))
for _name in ("imag", "real"):
    setattr(DTensor, _name, _refused(_name))


for _name, _attribute in vars(Tensor).items():
    # The others are those of the part.
    if hasattr(_attribute, "__set__") and getattr(DTensor, _name) is _attribute:
        setattr(DTensor, _name, property(_attribute.__get__, _attribute.__set__))


def made(local: Tensor, layout: Layout) -> DTensor:
    """The DTensor of a part, with the part's memory and history."""
    found: Any = local.as_subclass(DTensor)
    found._layout = layout
    whole: DTensor = found
    return whole


def rows_as(rows: Tensor, sharding: Sharding) -> DTensor:
    """The DTensor of this rank's rows."""
    return made(rows.detach(), sharding.layout)


def _rebuilt(
    local: Tensor,
    device_type: str,
    ranks: list[Any],
    names: Any,
    placements: tuple[Any, ...],
    shape: tuple[int, ...],
    requires_grad: bool,
) -> DTensor:
    """The DTensor that a file or another process has the part of."""
    mesh = mesh_again(device_type, ranks, names)
    layout = Layout.of(shape, mesh, [placed(*each) for each in placements])
    if tuple(local.shape) != layout.part_shape():
        raise RuntimeError(
            f"a DTensor of shape {[*shape]} comes with a part of shape "
            f"{[*local.shape]}, and rank {mesh.get_rank()} has the part of shape "
            f"{[*layout.part_shape()]}; load the file that this rank has saved"
        )
    return made(local.detach(), layout).requires_grad_(requires_grad)


@functools.cache
def parameter_kind(base: type) -> Any:
    """The class of parameters that are DTensors. base: nn.Parameter."""
    return type("DTensorParameter", (DTensor, base), {"_parameter": base})


def tell_ranks(flags: Iterable[Tensor], group: Any) -> None:
    """Set GradScaler's flags on all ranks of a group if one rank has set them."""
    for flag in flags:
        dist.all_reduce(flag, dist.ReduceOp.MAX, group)


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
    placements     one for each dimension of the mesh; of a Partial() sum each rank has
                   an equal term; None: Replicate()
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
    for i, each in enumerate(layout.placements):
        if each == Partial("sum"):
            local /= device_mesh.size(i)
        elif isinstance(each, Partial) and each.reduce_op == "product":
            raise ValueError(
                f"distribute_tensor(): placements are {layout.placements}; a product "
                "has no equal factors: give Shard(dim), Replicate() or Partial()"
            )
    return made(local.requires_grad_(tensor.requires_grad), layout)
