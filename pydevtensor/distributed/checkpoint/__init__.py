"""Checkpoints that all ranks write together, and any number of ranks can read.

A checkpoint is a folder: a file in the safetensors format of each rank's tensors, one
of other values, and `.metadata`, which is written last and says what is where. PyTorch
reads the first ones alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pydevtensor import _C
from pydevtensor import distributed as dist
from pydevtensor._archive import replacing
from pydevtensor._names import publish as _publish
from pydevtensor._tree import map_leaves
from pydevtensor.autograd import no_grad
from pydevtensor.distributed.tensor import DTensor
from pydevtensor.safetensors import safe_open, save_file
from pydevtensor.serialization import load as _load_values
from pydevtensor.serialization import save as _save_values

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter"]
__all__ += ["async_save", "load", "save"]

Tensor = _C.Tensor
_METADATA = ".metadata"


class CheckpointException(RuntimeError):
    """Some ranks could not write or read their part.

    text: the message. failures: the errors by rank.
    """

    def __init__(self, text: str, failures: dict[int, str]) -> None:
        super().__init__(text)
        self.failures = failures


class FileSystemWriter:
    """The folder that a checkpoint is written to, for the option storage_writer.

    path: the folder. PyTorch's other options are taken and change nothing.

    >>> x = torch.ones(1)
    >>> checkpoint = torch.distributed.checkpoint
    >>> writer = checkpoint.FileSystemWriter('saved')
    >>> checkpoint.save({'x': x}, storage_writer=writer)
    >>> checkpoint.load({'x': x}, storage_reader=checkpoint.FileSystemReader('saved'))
    """

    def __init__(self, path: Any, **options: Any) -> None:
        self.path = path


class FileSystemReader:
    """The folder that a checkpoint is read from, for the option storage_reader.

    path: the folder. PyTorch's other options are taken and change nothing.

    >>> torch.distributed.checkpoint.FileSystemReader('saved').path
    'saved'
    """

    def __init__(self, path: Any, **options: Any) -> None:
        self.path = path


def _folder(checkpoint_id: Any, storage: Any) -> Path:
    """The folder that is given, by itself or by a writer or a reader."""
    if storage is not None:
        kinds = (FileSystemWriter, FileSystemReader)
        if not isinstance(storage, kinds):
            raise TypeError(
                f"the storage is {storage!r} ({type(storage).__name__}); give a "
                "FileSystemWriter or FileSystemReader, or checkpoint_id"
            )
        checkpoint_id = checkpoint_id or storage.path
    if checkpoint_id is None:
        raise ValueError("no folder is given; give checkpoint_id")
    return Path(checkpoint_id)


def _leaves(values: Any, path: str = "") -> Iterator[tuple[str, Any, Any, Any]]:
    """The path of each value in dicts and lists, the container, the key, the value."""
    pairs = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in pairs:
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, (dict, list)) and value:
            yield from _leaves(value, name)
        else:
            yield name, values, key, value


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The values, and the state_dict() of those that have one."""
    return {
        key: value.state_dict() if hasattr(value, "state_dict") else value
        for key, value in state_dict.items()
    }


def _together(what: str, run: Callable[[], Any], group: Any) -> list[Any]:
    """The results of run() on each rank. CheckpointException on all if one fails."""
    try:
        mine = True, run()
    except Exception as error:
        mine = False, f"{type(error).__name__}: {error}"
    found: list[Any] = [mine]
    if group is not None:
        found = [None] * group.size()
        dist.all_gather_object(found, mine, group)
    failures = {rank: text for rank, (fine, text) in enumerate(found) if not fine}
    if failures:
        rank, text = next(iter(failures.items()))
        raise CheckpointException(f"{what}: rank {rank} failed: {text}", failures)
    return [value for _, value in found]


def _group(given: Any, no_dist: bool) -> Any:
    if no_dist or not dist.is_initialized():
        return None
    return given or dist.group.WORLD


def _writes(value: Tensor, rank: int) -> bool:
    """Whether this rank writes a tensor: the first one that has it, or these rows."""
    sharding = value._sharding if isinstance(value, DTensor) else None
    if sharding is None:
        return rank == 0
    mesh = sharding.mesh
    return not any(mesh.get_local_rank(i) for i in range(mesh.ndim - 1))


@no_grad()
def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Write state_dict, as a checkpoint, to the folder checkpoint_id.

    Each rank of process_group (None: all) writes the rows that it has of sharded
    tensors; rank 0 writes the rest, which is equal on all. Dicts and lists may be
    nested, by str and int keys; of a value with state_dict() that is written. A
    checkpoint that is there already stays whole until the new one is. storage_writer
    names the folder instead. no_dist: one process writes alone. CheckpointException, on
    all ranks, where one fails.

    >>> checkpoint = torch.distributed.checkpoint
    >>> net = nn.Linear(2, 1)
    >>> checkpoint.save({'net': net, 'epoch': 3}, checkpoint_id='saved')
    >>> state = {'net': net, 'epoch': 0}
    >>> checkpoint.load(state, checkpoint_id='saved')
    >>> state['epoch']
    3
    """
    group = _group(process_group, no_dist)
    rank = group.rank() if group is not None else 0
    folder = _folder(checkpoint_id, storage_writer)
    mark = [os.urandom(6).hex()]
    if group is not None:
        dist.broadcast_object_list(mark, group=group, group_src=0)
    leaves = [(name, value) for name, _, _, value in _leaves(_states(state_dict))]
    begin = partial(_save_pieces, leaves, folder, mark[0], rank)
    pieces = _together("save()", begin, group)
    finish = partial(_save_rest, leaves, folder, mark[0], pieces)
    _together("save()", finish if rank == 0 else lambda: None, group)


_Leaves = list[tuple[str, Any]]


def _save_pieces(leaves: _Leaves, folder: Path, mark: str, rank: int) -> dict[str, Any]:
    """Write what a rank has of tensors; their shapes and the rows that it has."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors, pieces = {}, {}
    for name, value in leaves:
        if not isinstance(value, Tensor) or not _writes(value, rank):
            continue
        own, sharding = _own(value)
        first = sharding.rows().start if sharding else 0
        # A copy, since the format has each tensor's memory apart.
        tensors[name] = own.cpu().clone().contiguous()
        pieces[name] = {"shape": [*value.shape], "first": first}
        pieces[name]["rows"] = own.shape[0] if own.ndim else 1
    save_file(tensors, folder / f"{mark}_{rank}.safetensors")
    return pieces


def _save_rest(
    leaves: _Leaves, folder: Path, mark: str, found: list[dict[str, Any]]
) -> None:
    """Write other values, and what the ranks have written; then drop what was there."""
    values = {name: v for name, v in leaves if not isinstance(v, Tensor)}
    _save_values(values, folder / f"{mark}.pt")
    tensors: dict[str, Any] = {}
    for number, pieces in enumerate(found):
        for name, piece in pieces.items():
            known = tensors.setdefault(name, {"shape": piece["shape"], "pieces": []})
            known["pieces"].append([number, piece["first"], piece["rows"]])
    with replacing(folder / _METADATA) as file:
        file.write(json.dumps({"mark": mark, "tensors": tensors}).encode())
    for each in folder.iterdir():
        ours = each.suffix in (".safetensors", ".pt")
        if ours and not each.name.startswith(mark):
            each.unlink()


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: FileSystemWriter | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> Future[None]:
    """save() in another thread, of a copy in the host's memory that is made first.

    state_dict, checkpoint_id, storage_writer, process_group, no_dist: those of save().
    Tensors may change when it returns. The future is one of concurrent.futures, whose
    result() raises save()'s errors. All ranks of the group call it, and the program
    ends after it has.

    >>> x = torch.ones(1)
    >>> checkpoint = torch.distributed.checkpoint
    >>> saving = checkpoint.async_save({'x': x}, checkpoint_id='saved')
    >>> x.zero_()
    tensor([0.])
    >>> saving.result()
    """
    group, folder = (
        _group(process_group, no_dist),
        _folder(checkpoint_id, storage_writer),
    )
    # A group of its own, since the program goes on to use the other.
    own = group and dist.new_group(group._ranks, use_local_synchronization=True)
    copies = map_leaves(_copy, _states(state_dict))

    def run() -> None:
        save(copies, checkpoint_id=folder, process_group=own, no_dist=no_dist)
        if own:
            dist.destroy_process_group(own)

    thread = ThreadPoolExecutor(1, "async_save")
    future = thread.submit(run)
    thread.shutdown(wait=False)
    return future


def _copy(value: Any) -> Any:
    """A tensor's copy in the host's memory, of the same rows."""
    is_tensor = isinstance(value, Tensor)
    return value.detach().to("cpu", copy=True) if is_tensor else value


def _own(value: Tensor) -> tuple[Tensor, Any]:
    """This rank's part of a tensor, and how its rows are divided, or None."""
    if not isinstance(value, DTensor):
        return value.detach(), None
    return value.to_local().detach(), value._sharding


class _Reader:
    """A checkpoint's folder, whose files are opened when they are needed."""

    def __init__(self, folder: Path) -> None:
        path = folder / _METADATA
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} has no {_METADATA}; give the folder of a checkpoint that "
                "save() has finished"
            )
        known = json.loads(path.read_text())
        self.folder, self.mark, self.tensors = folder, known["mark"], known["tensors"]
        self.files: dict[int, safe_open] = {}
        self.values = _load_values(folder / f"{self.mark}.pt")

    def close(self) -> None:
        for file in self.files.values():
            file.__exit__()

    def fill(self, name: str, value: Tensor) -> None:
        """Reads a tensor, or the rows that this rank has."""
        own, sharding = _own(value)
        shape = [*value.shape]
        known = self.tensors[name]
        if known["shape"] != shape:
            raise ValueError(
                f"{name} has shape {shape}, and that of the checkpoint "
                f"{known['shape']}; make the module of the same sizes"
            )
        wanted = sharding.rows() if sharding else slice(0, shape[0] if shape else 1)
        for rank, first, rows in known["pieces"]:
            begin, end = max(first, wanted.start), min(first + rows, wanted.stop)
            if begin >= end:
                continue
            if rank not in self.files:
                path = self.folder / f"{self.mark}_{rank}.safetensors"
                self.files[rank] = safe_open(path, "pt")
            file = self.files[rank]
            if not shape:
                own.copy_(file.get_tensor(name))
                continue
            piece = file.get_slice(name)[begin - first : end - first]
            own[begin - wanted.start : end - wanted.start].copy_(piece)


@no_grad()
def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: FileSystemReader | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read what state_dict has from the checkpoint in the folder checkpoint_id.

    Tensors are written to, of sharded ones the rows of this rank, whatever the number
    of ranks that saved them; other values are replaced; values with load_state_dict()
    get theirs. storage_reader names the folder instead. process_group and no_dist are
    those of save(). CheckpointException, on all ranks, where one fails, as for a name
    that the checkpoint lacks.

    >>> checkpoint = torch.distributed.checkpoint
    >>> checkpoint.save({'x': torch.tensor([1, 2])}, checkpoint_id='saved')
    >>> state = {'x': torch.zeros(2)}
    >>> checkpoint.load(state, checkpoint_id='saved')
    >>> state['x']
    tensor([1., 2.])
    """
    group, folder = (
        _group(process_group, no_dist),
        _folder(checkpoint_id, storage_reader),
    )

    def read() -> None:
        reader = _Reader(folder)
        try:
            states = _states(state_dict)
            for name, container, key, value in [*_leaves(states)]:
                is_tensor = isinstance(value, Tensor)
                if name not in (reader.tensors if is_tensor else reader.values):
                    raise KeyError(f"the checkpoint has no {name!r}")
                if is_tensor:
                    reader.fill(name, value)
                else:
                    container[key] = reader.values[name]
        finally:
            reader.close()
        for key, value in state_dict.items():
            if hasattr(value, "load_state_dict"):
                value.load_state_dict(states[key])
            else:
                state_dict[key] = states[key]

    _together("load()", read, group)


_publish(__name__, later=("state_dict", "stateful"))
