"""Ranks in rows and columns, with a group of ranks for each."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.distributed._groups import (
    default_group,
    get_process_group_ranks,
    is_initialized,
    new_group,
)

__all__ = ["DeviceMesh", "init_device_mesh"]

Tensor = _C.Tensor
_meshes: WeakValueDictionary[int, DeviceMesh] = WeakValueDictionary()  # by id()


class DeviceMesh:
    """Ranks as an array, and groups of those along each of its dimensions.

    device_type     'cpu' or 'cuda'
    mesh            the ranks, a Tensor or nested lists; all ranks of the program make
                    the same one
    mesh_dim_names  a name for each dimension

    ValueError for ranks that are given twice, or names that are not one for each
    dimension.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.device_mesh.DeviceMesh('cpu', [[0]], mesh_dim_names=('data', 'model'))
    DeviceMesh('cpu', [[0]], mesh_dim_names=('data', 'model'))
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Any = None
    ) -> None:
        ranks = mesh if isinstance(mesh, Tensor) else _C.tensor(mesh)
        self._set(device_type, ranks, mesh_dim_names)
        if len({*ranks.flatten().tolist()}) < ranks.numel():
            raise ValueError(
                f"DeviceMesh: mesh is {ranks.tolist()}; give each rank once"
            )
        self._groups = [self._group_along(dim) for dim in range(self.ndim)]

    @classmethod
    def from_group(cls, group: Any, device_type: str) -> DeviceMesh:
        """The ranks of a group, in one dimension.

        group: this rank's. device_type: 'cpu' or 'cuda'.
        """
        made = object.__new__(cls)
        made._set(device_type, _C.tensor(get_process_group_ranks(group)), None)
        made._groups = [group]
        return made

    def _set(self, device_type: str, ranks: Tensor, names: Any) -> None:
        if names is not None and len({*names}) != ranks.ndim:
            raise ValueError(
                f"DeviceMesh: mesh_dim_names is {names!r}; give {ranks.ndim} different "
                "names, one for each dimension"
            )
        self.device_type = device_type
        self.mesh = ranks.to(device="cpu", dtype=_C.int32)
        self.mesh_dim_names = tuple(names) if names else None
        self._world = default_group()
        self._rank = self._world.rank()
        _meshes[id(self)] = self

    def _group_along(self, dim: int) -> Any:
        """This rank's group along a dimension; None for ranks outside."""
        size = self.mesh.shape[dim]
        lines = self.mesh.movedim(dim, -1).reshape(-1, size).tolist()
        own = None
        for line in lines:
            if line == get_process_group_ranks(None):
                return default_group()
            made = new_group(line, sort_ranks=False)
            own = made if self._rank in line else own
        return own

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many ranks it has along each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """How many ranks it has, all or along the dimension mesh_dim."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None and self.ndim == 1:
            return 0
        if isinstance(mesh_dim, str) and mesh_dim in (self.mesh_dim_names or ()):
            return self.mesh_dim_names.index(mesh_dim)  # type: ignore[union-attr]
        if isinstance(mesh_dim, int) and -self.ndim <= mesh_dim < self.ndim:
            return mesh_dim % self.ndim
        known = [*range(self.ndim), *(self.mesh_dim_names or ())]
        raise RuntimeError(f"mesh_dim is {mesh_dim!r}; give one of {known}")

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """This rank's group along a dimension.

        mesh_dim: its number or name; None where there is one dimension.
        """
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list[Any]:
        """This rank's groups along all dimensions."""
        return [*self._groups]

    def get_rank(self) -> int:
        """This process's rank in the program."""
        return self._rank

    def get_coordinate(self) -> tuple[int, ...] | None:
        """This rank's index along each dimension; None for a rank outside."""
        found = (self.mesh == self._rank).nonzero().tolist()
        return tuple(found[0]) if found else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's index along a dimension: its rank in that group.

        mesh_dim: its number or name; None where there is one dimension.
        """
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"rank {self._rank} is not in {self!r}")
        return place[self._dim(mesh_dim)]

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along some dimensions that this rank is in."""
        names = (
            mesh_dim_names if isinstance(mesh_dim_names, tuple) else (mesh_dim_names,)
        )
        if not {*names} <= {*(self.mesh_dim_names or ())}:
            raise KeyError(
                f"the mesh has dimensions {self.mesh_dim_names}; {mesh_dim_names!r} is "
                "not one of them"
            )
        dims = [self._dim(name) for name in names]
        place = self.get_coordinate() or (0,) * self.ndim
        index = tuple(
            slice(None) if dim in dims else at for dim, at in enumerate(place)
        )
        order = [sorted(dims).index(dim) for dim in dims]
        part: DeviceMesh = object.__new__(DeviceMesh)
        part._set(self.device_type, self.mesh[index].permute(order), names)
        part._groups = [self._groups[dim] for dim in dims]
        return part

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same ranks, device and names."""
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        ranks = self.mesh.flatten().tolist()
        return self.device_type, self.shape, tuple(ranks), self.mesh_dim_names

    def __repr__(self) -> str:
        named = self.mesh_dim_names
        names = f", mesh_dim_names={named}" if named else ""
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"


def mesh_again(device_type: str, ranks: list[Any], names: Any) -> DeviceMesh:
    """The mesh of this process that has these ranks: one that the program has made, or
    all ranks in one row. RuntimeError where it is neither."""
    if not is_initialized():
        raise RuntimeError(
            f"a DTensor belongs to the ranks {ranks}, and this process has no group; "
            "call torch.distributed.init_process_group() before you load the DTensor"
        )
    world = default_group()
    wanted = device_type, ranks, names
    for mesh in [*_meshes.values()]:
        found = mesh.device_type, mesh.mesh.tolist(), mesh.mesh_dim_names
        if found == wanted and mesh._world is world:
            return mesh
    if ranks != [*range(world.size())]:
        raise RuntimeError(
            f"a DTensor belongs to the ranks {ranks}, with names {names}, and this "
            "process has no such mesh; make it by init_device_mesh() before you load "
            f"the DTensor. There are {world.size()} ranks"
        )
    return DeviceMesh(device_type, ranks, mesh_dim_names=names)


def init_device_mesh(
    device_type: str, mesh_shape: tuple[int, ...], *, mesh_dim_names: Any = None
) -> DeviceMesh:
    """All ranks, in order, as an array.

    device_type: 'cpu' or 'cuda'. mesh_shape: how many ranks along each dimension.
    mesh_dim_names: a name for each. RuntimeError where that is not the number of ranks.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> dist.init_device_mesh('cpu', (1,))
    DeviceMesh('cpu', [0])
    >>> dist.destroy_process_group()
    """
    count = default_group().size()
    asked = 1
    for each in mesh_shape:
        asked *= each
    if asked != count:
        raise RuntimeError(
            f"init_device_mesh(): mesh_shape is {tuple(mesh_shape)}, of {asked} ranks, "
            f"and there are {count}; give a shape of all ranks"
        )
    mesh = _C.arange(count).view(tuple(mesh_shape))
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)


_publish(__name__)
