"""Calls that all ranks of a group make together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pydevtensor import _C
from pydevtensor._kinds import is_distributed
from pydevtensor._streams import current
from pydevtensor.distributed._exchange import Exchange
from pydevtensor.distributed._groups import ProcessGroup, get_group_rank, own_group
from pydevtensor.distributed._shared_engine import NoEngine
from pydevtensor.distributed._stores import seconds_of
from pydevtensor.distributed._work import Work

__all__ = ["ReduceOp", "all_gather", "all_gather_coalesced", "all_gather_into_tensor"]
__all__ += ["all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single"]
__all__ += ["barrier", "broadcast", "gather", "monitored_barrier", "reduce"]
__all__ += ["reduce_scatter", "reduce_scatter_tensor", "scatter"]

Tensor = _C.Tensor


class ReduceOp:
    """How elements of all ranks are combined: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR,
    BXOR. Elements are combined in the order of ranks, so all ranks get the same
    bits."""

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PRODUCT"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"
    RedOpType: Any  # the class itself; PyTorch has the members there


ReduceOp.RedOpType = ReduceOp
_OPS = {name: value for name, value in vars(ReduceOp).items() if name.isupper()}


def _reduction(op: Any, tensor: Tensor, group: ProcessGroup) -> str:
    if op not in _OPS:
        raise ValueError(f"op is {op!r}; give one of ReduceOp.{', '.join(_OPS)}")
    dtype = tensor.dtype
    if op in ("BAND", "BOR", "BXOR") and dtype.is_floating_point:
        raise RuntimeError(f"op is {op}, of bits; give tensors of integers or bool")
    if op == "AVG" and not (dtype.is_floating_point or dtype.is_complex):
        # NCCL rounds means of integers towards 0; gloo has none.
        by_nccl = "nccl" in group.name() and tensor.device.type == "cuda"
        if dtype == _C.bool or not by_nccl:
            raise RuntimeError(f"op is AVG; give floats, or SUM and divide {dtype}")
    return str(op)


def check_tensor(name: str, given: Any) -> Tensor:
    """TypeError unless it is a Tensor, NotImplementedError for a DTensor."""
    if type(given) is Tensor:
        return given
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} is {given!r} ({type(given).__name__}); give a Tensor")
    if is_distributed(given):
        raise NotImplementedError(
            f"{name} is a DTensor of shape {[*given.shape]}; give its to_local(), this "
            "rank's part"
        )
    return given


def _list(
    name: str, given: Any, count: int, like: Tensor | None = None
) -> list[Tensor]:
    """A list of Tensors, one for each rank, of the size and type of `like`."""
    if not isinstance(given, (list, tuple)):
        raise TypeError(
            f"{name} is {given!r} ({type(given).__name__}); give a list of Tensors"
        )
    if len(given) != count:
        raise ValueError(
            f"{name} has {len(given)} Tensors; give one for each of {count} ranks"
        )
    tensors = [check_tensor(f"{name}[{i}]", each) for i, each in enumerate(given)]
    for t in tensors:
        if like is not None and (t.dtype, t.numel()) != (like.dtype, like.numel()):
            raise ValueError(
                f"{name} has a Tensor of {t.numel()} {t.dtype}, and one of "
                f"{like.numel()} {like.dtype} is expected; give Tensors of the size "
                "that is exchanged"
            )
    return tensors


def _list_at(
    root: int, found: ProcessGroup, name: str, given: Any, like: Tensor
) -> list[Tensor] | None:
    """The list of the rank `root`; None at the other ranks, which pass none."""
    if found.rank() == root:
        return _list(name, given, found.size(), like)
    if given:
        raise ValueError(f"{name} is for rank {root} alone; give none at others")
    return None


def key_of(name: str, tensor: Tensor, *more: Any) -> str:
    """A text that has to be equal on all ranks, and that messages show."""
    text = f"{name}({', '.join(map(str, more))})" if more else name
    return f"{text} of {tensor.numel()} {str(tensor.dtype)[6:]}"


def root_of(found: ProcessGroup, rank: Any, in_group: Any, what: str) -> int:
    """A rank in its group, given as rank of the program or of the group."""
    if (rank is None) == (in_group is None):
        if rank is not None:
            raise ValueError(f"give either {what} or group_{what}")
        rank = 0
    if in_group is None:
        return get_group_rank(found, int(rank))
    if not 0 <= in_group < found.size():
        raise ValueError(
            f"group_{what} is {in_group}, and there are {found.size()} ranks"
        )
    return int(in_group)


def _collective(
    found: ProcessGroup, key: str, exchange: Exchange, results: Any, is_async: bool
) -> Work | None:
    call = found._call(key)
    if nccl := found._nccl_for(exchange.tensors()):
        return _started(nccl.collect(call, exchange, [*results]), is_async)
    tensors = exchange.inputs, exchange.outputs
    run = lambda: exchange.run(found, call)
    return found._collect(run, results, is_async, call, tensors)


def _started(work: Work, is_async: bool) -> Work | None:
    """The work of a GPU. The current stream waits for it unless is_async."""
    if is_async:
        return work
    work.wait()
    return None


def _only(size: int, rank: int, tensor: Tensor) -> list[Tensor | None]:
    return [tensor if r == rank else None for r in range(size)]


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until all ranks of the group have called it.

    With async_op, a Work to wait for. timeout: the group's without it.
    """
    found = own_group(group)
    seconds = seconds_of(timeout, timedelta(seconds=found._timeout))
    if not async_op and found._quick("barrier", None, -1, None, None, seconds):
        return None
    call = found._call("barrier", timeout=seconds)
    if isinstance(found._engine, NoEngine):
        return _barrier_of_gpus(found, group, async_op)
    run = lambda: Exchange(None, None).run(found, call)
    return found._collect(run, [], async_op, call, [()])


def _barrier_of_gpus(found: ProcessGroup, group: Any, is_async: bool) -> Work | None:
    """Wait for the current GPUs of all ranks, for groups without another engine."""
    work = all_reduce(_C.zeros(1, device="cuda"), "SUM", group, True)
    if is_async or work is None:
        return work
    work.wait()
    current("barrier").synchronize()
    return None


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks have called it, and name a rank that does not come in time.

    timeout: the group's without it. wait_all_ranks changes nothing: one is named.
    """
    barrier(group, timeout=timeout)


def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine a tensor of all ranks, elementwise, into each of them.

    tensor: of one size and type on all ranks. op: of ReduceOp. With async_op, a Work to
    wait for. TypeError, ValueError and RuntimeError for arguments that do not fit;
    RuntimeError that names two ranks and their lines where ranks make different calls.

    >>> dist = torch.distributed
    >>> dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2)
    >>> dist.all_reduce(x)
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    found = own_group(group)
    check_tensor("tensor", tensor)
    if not async_op and found._quick(
        "all_reduce", op, -1, tensor, None, found._timeout
    ):
        return None
    op = _reduction(op, tensor, found)
    key, both = key_of("all_reduce", tensor, op), [tensor]
    return _collective(found, key, Exchange(both, both, 1, op), both, async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give a rank's tensor to all ranks, into theirs.

    tensor: of one size and type on all ranks. src: the rank in the program; group_src:
    in the group instead. With async_op, a Work to wait for.
    """
    found = own_group(group)
    check_tensor("tensor", tensor)
    root = root_of(found, src, group_src, "src")
    if not async_op and found._quick(
        "broadcast", None, root, tensor, None, found._timeout
    ):
        return None
    gives = found.rank() == root
    exchange = Exchange(
        [tensor] if gives else None,
        None if gives else _only(found.size(), root, tensor),
        root=root,
    )
    return _collective(
        found, key_of("broadcast", tensor, f"src={root}"), exchange, [tensor], async_op
    )


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine a tensor of all ranks into that of one rank; the others stay as they are.

    dst: the rank in the program; group_dst: in the group instead. op: of ReduceOp. With
    async_op, a Work to wait for.
    """
    found = own_group(group)
    check_tensor("tensor", tensor)
    op = _reduction(op, tensor, found)
    root = root_of(found, dst, group_dst, "dst")
    takes = found.rank() == root
    exchange = Exchange([tensor], [tensor if takes else None], 1, op, root)
    key = key_of("reduce", tensor, op, f"dst={root}")
    return _collective(found, key, exchange, [tensor], async_op)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Give a tensor of every rank to all ranks.

    tensor_list: the results, one for each rank, of the size and type of `tensor`, which
    are equal on all ranks. With async_op, a Work to wait for.
    """
    found = own_group(group)
    check_tensor("tensor", tensor)
    results = _list("tensor_list", tensor_list, found.size(), tensor)
    exchange = Exchange([tensor], results)
    return _collective(
        found, key_of("all_gather", tensor), exchange, tensor_list, async_op
    )


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Give a tensor of every rank to all ranks, one after another in one tensor.

    output_tensor: ranks times as many elements as input_tensor. With async_op, a Work
    to wait for.
    """
    found = own_group(group)
    name = "all_gather_into_tensor"
    check_tensor("input_tensor", input_tensor)
    if not async_op and found._quick(
        name, None, -1, input_tensor, output_tensor, found._timeout
    ):
        return None
    parts = _parts("output_tensor", output_tensor, input_tensor, found.size())
    key = key_of(name, input_tensor)
    exchange = Exchange([input_tensor], parts, whole=output_tensor)
    return _collective(found, key, exchange, [output_tensor], async_op)


def _parts(name: str, whole: Any, part: Tensor, size: int) -> list[Tensor | None]:
    """The parts of a contiguous tensor, one for each rank."""
    check_tensor(name, whole)
    if whole.numel() != size * part.numel() or whole.dtype != part.dtype:
        raise ValueError(
            f"{name} has {whole.numel()} {whole.dtype}; give {size * part.numel()} "
            f"{part.dtype}, {part.numel()} for each of {size} ranks"
        )
    if not whole.is_contiguous():
        raise ValueError(f"{name} is not contiguous; give a contiguous Tensor")
    return [*whole.detach().view(size, -1).unbind()] if whole.numel() else [None] * size


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Give a tensor of every rank to one rank.

    gather_list: the results, at that rank alone. dst: the rank in the program;
    group_dst: in the group instead. With async_op, a Work to wait for.
    """
    found = own_group(group)
    check_tensor("tensor", tensor)
    root = root_of(found, dst, group_dst, "dst")
    results = _list_at(root, found, "gather_list", gather_list, tensor)
    key = key_of("gather", tensor, f"dst={root}")
    exchange = Exchange([tensor], results, root=root)
    return _collective(found, key, exchange, gather_list or [], async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each rank one of the tensors of one rank.

    tensor: the result. scatter_list: one Tensor for each rank, at that rank alone. src:
    the rank in the program; group_src: in the group instead. With async_op, a Work to
    wait for.
    """
    found = own_group(group)
    check_tensor("tensor", tensor)
    root = root_of(found, src, group_src, "src")
    given = _list_at(root, found, "scatter_list", scatter_list, tensor)
    to = _only(found.size(), root, tensor)
    exchange = Exchange(given, to, found.size(), root=root)
    key = key_of("scatter", tensor, f"src={root}")
    return _collective(found, key, exchange, [tensor], async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine a list of tensors of all ranks, and give each rank one of the results.

    input_list: one for each rank, of the size of output. op: of ReduceOp. With
    async_op, a Work to wait for.
    """
    found = own_group(group)
    check_tensor("output", output)
    op = _reduction(op, output, found)
    given = _list("input_list", input_list, found.size(), output)
    exchange = Exchange(given, [output], found.size(), op)
    key = key_of("reduce_scatter", output, op)
    return _collective(found, key, exchange, [output], async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine a tensor of all ranks, and give each rank a part of the result.

    input: ranks times as many elements as output. op: of ReduceOp. With async_op, a
    Work to wait for.
    """
    found = own_group(group)
    name = "reduce_scatter_tensor"
    check_tensor("output", output)
    if not async_op and found._quick(name, op, -1, output, input, found._timeout):
        return None
    op = _reduction(op, output, found)
    given = _parts("input", input, output, found.size())
    exchange = Exchange(given, [output], found.size(), op, whole=input)
    key = key_of(name, output, op)
    return _collective(found, key, exchange, [output], async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Give tensor i of every rank to rank i.

    Rank r's input_tensor_list[i] becomes rank i's output_tensor_list[r], which has its
    size and type. With async_op, a Work to wait for.
    """
    found = own_group(group)
    given = _list("input_tensor_list", input_tensor_list, found.size())
    results = _list("output_tensor_list", output_tensor_list, found.size())
    exchange = Exchange(given, results, found.size())
    key = f"all_to_all of {str(given[0].dtype)[6:]}"
    return _collective(found, key, exchange, output_tensor_list, async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Give part i, along the first dimension, of every rank's input to rank i.

    output: the parts for this rank, in the order of ranks.
    output_split_sizes, input_split_sizes: the sizes of the parts; equal parts without
    them. With async_op, a Work to wait for.
    """
    found = own_group(group)
    given = _split("input", input, input_split_sizes, found.size())
    results = _split("output", output, output_split_sizes, found.size())
    exchange = Exchange(given, results, found.size())
    key = f"all_to_all_single of {str(input.dtype)[6:]}"
    return _collective(found, key, exchange, [output], async_op)


def _split(name: str, whole: Any, sizes: Any, count: int) -> list[Tensor]:
    check_tensor(name, whole)
    length = whole.shape[0] if whole.ndim else 1
    if not sizes:
        if length % count:
            raise ValueError(
                f"{name} has {length} rows; give a multiple of {count}, the number of "
                f"ranks, or {name}_split_sizes"
            )
        sizes = [length // count] * count
    if len(sizes) != count or sum(sizes) != length:
        raise ValueError(
            f"{name}_split_sizes is {list(sizes)}; give {count} sizes whose sum is the "
            f"number of rows of {name}, {length}"
        )
    return [*whole.detach().split(list(sizes))]


def all_reduce_coalesced(
    tensors: list[Tensor],
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """all_reduce() of several tensors, as one call.

    op: of ReduceOp. With async_op, a Work to wait for.
    """
    found = own_group(group)
    works = [all_reduce(t, op, group, async_op=True) for t in tensors]
    return _together(found, works, tensors, async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """all_gather() of several tensors, as one call.

    output_tensor_lists: for each rank a list of its input_tensor_list. With async_op, a
    Work to wait for.
    """
    found = own_group(group)
    works = [
        all_gather([of_rank[i] for of_rank in output_tensor_lists], t, group, True)
        for i, t in enumerate(input_tensor_list)
    ]
    return _together(found, works, output_tensor_lists, async_op)


def _flat(results: Any) -> list[Tensor]:
    return [t for each in results for t in (each if isinstance(each, list) else [each])]


def _together(
    found: ProcessGroup, works: list[Work | None], results: Any, is_async: bool
) -> Work | None:
    """One work for several, which the same thread has done before, or the stream of a
    GPU."""
    if works and found._nccl_for(_flat(results)):
        last = works[-1]
        assert last is not None
        return _started(last, is_async)

    def wait() -> None:
        for work in works:
            if work:
                work.wait()

    return found._do(wait, results, is_async, "all")
