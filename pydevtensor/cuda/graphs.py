"""torch.cuda.graphs: work that a stream captures once, to be replayed."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Literal

from pydevtensor import _C, _graphs, _streams
from pydevtensor._names import publish as _publish
from pydevtensor._streams import Event, Stream
from pydevtensor._tree import flatten

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing"]
__all__ += ["make_graphed_callables"]

_MODES = ("global", "thread_local", "relaxed")
_pool_numbers = count(1)


def is_current_stream_capturing() -> bool:
    """Whether a CUDA graph takes the work of the current stream.

    >>> torch.cuda.is_current_stream_capturing()
    False
    """
    return bool(_graphs.captured) and _C._graph_capturing(_C._device_index(None))


def graph_pool_handle() -> tuple[int, int]:
    """A new pool of memory, which graphs may share: the `pool` of their captures.

    >>> pool = torch.cuda.graph_pool_handle()
    >>> pool == torch.cuda.graph_pool_handle()
    False
    """
    return 0, next(_pool_numbers)


def _pool_number(pool: Any) -> int:
    if pool is None:
        return next(_pool_numbers)
    if isinstance(pool, tuple) and len(pool) == 2 and sum(pool) > 0:
        return sum(pool)
    raise TypeError(
        f"capture_begin(): pool is {pool!r}; give a graph's pool() or a "
        "graph_pool_handle()"
    )


class CUDAGraph:
    """Work that a stream captures, to be replayed with one launch.

    Work between capture_begin() and capture_end() is recorded, not run. A replay
    runs it on the same memory: write new values into the tensors that were its inputs,
    replay(), and read the tensors that were its results. torch.cuda.graph() is the
    easier way.

    Random numbers go on from replay to replay, as those of the calls would, and so do
    the steps of optimizers (capturable=True where they have that option). What was
    allocated during the capture is in a pool of the graph's own, until the graph is
    reset or gone. Captured calls cannot wait for a device, copy to the host, or copy
    from memory that is not pinned: they raise AcceleratorError, and the capture is
    lost.

    keep_graph  keep the captured graph beside its executable, for raw_cuda_graph() and
                instantiate(); capture_end() then leaves it to the first replay() to
                make it ready, unless instantiate() does so before

    >>> x = torch.zeros(3, device='cuda')
    >>> g = torch.cuda.CUDAGraph()
    >>> with torch.cuda.graph(g):
    ...     y = x + 1
    >>> g.replay()
    >>> y
    tensor([1., 1., 1.], device='cuda:0')
    >>> x += 5
    >>> g.replay()
    >>> y
    tensor([6., 6., 6.], device='cuda:0')
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._graph = _C._graph_new(keep_graph)
        self._keeps, self._debugs = bool(keep_graph), False
        self._index, self._handle, self._pool = -1, 0, 0
        self._generators: list[_C.Generator] = []
        # Called before a replay: they fill tables on the host.
        self._fills: list[Callable[[], None]] = []
        self._done = Event()  # recorded when a table was made, and after each replay

    def capture_begin(
        self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global"
    ) -> None:
        """Begin to capture the work of the current stream.

        pool                the memory of other graphs, whose replays never run at the
                            same time as those of this one: their pool(), or a
                            graph_pool_handle()
        capture_error_mode  whose calls may spoil the capture: those of every thread
                            ('global'), of this one ('thread_local'), or only what
                            waits for the captured streams ('relaxed')

        Raises RuntimeError on the default stream, or if the graph holds a capture.

        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.stream(torch.cuda.Stream()):
        ...     g.capture_begin()
        ...     x = torch.ones(2, device='cuda')
        ...     g.capture_end()
        >>> g.replay()
        """
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"capture_begin(): capture_error_mode is {capture_error_mode!r}; give "
                "'global', 'thread_local' or 'relaxed'"
            )
        index, number = _C._device_index(None), _pool_number(pool)
        mode, known = _MODES.index(capture_error_mode), tuple(self._generators)
        _C._graph_begin(self._graph, index, mode, number, known)
        self._index, self._pool = index, number
        self._handle = _C._stream_current(index)
        _graphs.captured.append(self)

    def capture_end(self) -> None:
        """End the capture, on the stream where it began.

        Raises AcceleratorError if it was lost; then the graph is empty.

        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.stream(torch.cuda.Stream()):
        ...     g.capture_begin()
        ...     g.capture_end()
        """
        try:
            _C._graph_end(self._graph)
        except RuntimeError:
            ended = self in _graphs.captured
            if ended and _C._stream_current(self._index) == self._handle:
                self.reset()  # it was lost
            raise
        _graphs.captured.remove(self)

    def instantiate(self) -> None:
        """Make a graph with keep_graph=True ready for replays, again if it was.

        Again after the program has changed raw_cuda_graph(). Raises RuntimeError
        without keep_graph=True, or before the capture has ended.

        >>> x = torch.zeros(2, device='cuda')
        >>> g = torch.cuda.CUDAGraph(keep_graph=True)
        >>> with torch.cuda.graph(g):
        ...     x += 1
        >>> g.instantiate()
        >>> g.replay()
        >>> x
        tensor([1., 1.], device='cuda:0')
        """
        _C._graph_instantiate(self._graph)

    def raw_cuda_graph(self) -> int:
        """CUDA's handle of the captured graph, a cudaGraph_t, as an int.

        It is the graph's: do not destroy it. Raises RuntimeError without
        keep_graph=True, or before the capture has ended.

        >>> g = torch.cuda.CUDAGraph(keep_graph=True)
        >>> with torch.cuda.graph(g):
        ...     x = torch.ones(2, device='cuda')
        >>> g.raw_cuda_graph() != 0
        True
        """
        return _C._graph_native(self._graph, False)

    def raw_cuda_graph_exec(self) -> int:
        """CUDA's handle of the executable graph, a cudaGraphExec_t, as an int.

        instantiate() destroys it and makes another. Raises RuntimeError before the
        graph is ready for replays.

        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.graph(g):
        ...     x = torch.ones(2, device='cuda')
        >>> g.raw_cuda_graph_exec() != 0
        True
        """
        return _C._graph_native(self._graph, True)

    def enable_debug_mode(self) -> None:
        """Keep the graph of the next capture, for debug_dump().

        >>> torch.cuda.CUDAGraph().enable_debug_mode()
        """
        self._debugs = True
        _C._graph_debug(self._graph)

    def debug_dump(self, debug_path: str) -> None:
        """Write the captured work to a file in the DOT language, for Graphviz.

        debug_path  where to write it

        Warns, and writes nothing, without enable_debug_mode() before the capture or
        keep_graph=True. Raises RuntimeError before the capture has ended, and
        AcceleratorError where the file cannot be written.

        >>> import tempfile
        >>> g = torch.cuda.CUDAGraph(keep_graph=True)
        >>> with torch.cuda.graph(g):
        ...     x = torch.ones(2, device='cuda')
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     g.debug_dump(folder + '/graph.dot')
        ...     'digraph' in open(folder + '/graph.dot').read()
        True
        """
        if not self._keeps and not self._debugs:
            warnings.warn(
                "debug_dump(): the graph does not keep what it captures; call "
                "enable_debug_mode() before the capture",
                stacklevel=2,
            )
            return
        _C._graph_dump(self._graph, os.fsencode(debug_path))

    def replay(self) -> None:
        """Queue the captured work on the current stream.

        >>> x = torch.zeros(2, device='cuda')
        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.graph(g):
        ...     x += 1
        >>> g.replay()
        >>> g.replay()
        >>> x
        tensor([2., 2.], device='cuda:0')
        """
        if self._fills:
            stream = _streams.current("replay", self._index)
            self._done.wait(stream)
            for fill in self._fills:
                fill()
        _C._graph_replay(self._graph)
        if self._fills:
            self._done.record(stream)

    def reset(self) -> None:
        """Drop the capture, and give its memory back: empty_cache() returns it.

        >>> g = torch.cuda.CUDAGraph()
        >>> with torch.cuda.graph(g):
        ...     x = torch.ones(2, device='cuda')
        >>> g.reset()
        """
        if self in _graphs.captured:
            _graphs.captured.remove(self)
        _C._graph_reset(self._graph)
        self._fills.clear()
        self._done, self._pool = Event(), 0

    def pool(self) -> tuple[int, int]:
        """The graph's pool of memory: the `pool` of another capture.

        >>> g, h = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        >>> with torch.cuda.graph(g):
        ...     x = torch.ones(2, device='cuda')
        >>> with torch.cuda.graph(h, pool=g.pool()):
        ...     y = x + 1
        """
        if not self._pool:
            raise RuntimeError(
                "pool(): the graph has no capture, and so no memory; capture it first"
            )
        return self._pool, 0

    def register_generator_state(self, generator: _C.Generator) -> None:
        """Let the next capture draw from a Generator; the device's own is known.

        >>> numbers = torch.Generator(device='cuda')
        >>> g = torch.cuda.CUDAGraph()
        >>> g.register_generator_state(numbers)
        >>> with torch.cuda.graph(g):
        ...     x = torch.rand(2, device='cuda', generator=numbers)
        >>> g.replay()
        """
        if not isinstance(generator, _C.Generator):
            raise TypeError(
                f"register_generator_state(): {generator!r} is no Generator; give one "
                "of a GPU"
            )
        self._generators.append(generator)

    def _rate_there(self, rate: _C.Tensor) -> _C.Tensor:
        """A copy on the GPU of a learning rate on the CPU, made anew by each replay."""
        with _streams.existing(self._index, 0) as elsewhere:
            there = _C.empty((), dtype=_C.float64, device=f"cuda:{self._index}")
            self._done.record(elsewhere)

        def fill() -> None:
            there.copy_(rate.detach().reshape(()))

        self._fills.append(fill)
        return there

    def _table_of_steps(
        self,
        rule: str,
        parameters: int,
        steps: list[Any],
        numbers: list[Any],
        kept: list[Any],
    ) -> _C.Tensor | None:
        """The numbers of an optimizer's step that each replay computes anew.

        They depend on how many steps there were, which the host counts. None: none do.
        """
        if not kept and not any(isinstance(step, _C.Tensor) for step in steps):
            return None
        shape = parameters, _C._UPDATE_OWN
        # Not memory of the graph: its work would overwrite what the host has filled in.
        with _streams.existing(self._index, 0) as elsewhere:
            table = _C.empty(*shape, dtype=_C.float64, device=f"cuda:{self._index}")
            self._done.record(elsewhere)

        def fill() -> None:
            filled = _C.empty(*shape, dtype=_C.float64, device="cpu")
            _C._update_own(filled, rule, steps, numbers, kept)
            table.copy_(filled)

        self._fills.append(fill)
        return table


_capture_streams: dict[int, Stream] = {}


def capture_stream(index: int) -> Stream:
    """The stream that captures on a GPU where the program gives none.

    One, so that what libraries keep for a stream is there at the second capture.
    """
    if index not in _capture_streams:
        _capture_streams[index] = Stream(index)
    return _capture_streams[index]


class graph:
    """Captures what runs in a with statement into cuda_graph, a CUDAGraph.

    pool and capture_error_mode are those of CUDAGraph.capture_begin(), stream is the
    stream that captures (default: one that is made for this). Before, the device is
    synchronized and cached memory is returned. If the block raises, the graph stays
    empty.

    >>> x = torch.arange(3., device='cuda')
    >>> g = torch.cuda.CUDAGraph()
    >>> with torch.cuda.graph(g):
    ...     total = (x * x).sum()
    >>> g.replay()
    >>> total.item()
    5.0
    """

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if not isinstance(cuda_graph, CUDAGraph):
            raise TypeError(f"graph(): {cuda_graph!r} is no CUDAGraph; give one")
        if stream is None:
            stream = capture_stream(_C._device_index(None))
        self.cuda_graph = cuda_graph
        self.capture_stream = _streams.checked("graph", stream, Stream)
        self.pool = pool
        self.capture_error_mode = capture_error_mode

    def __enter__(self) -> None:
        index = self.capture_stream.device.index
        _C._device_synchronize(index)
        gc.collect()
        _C._device_empty_cache(index)
        self.capture_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.capture_stream.__exit__()
            raise

    def __exit__(self, kind: object, *error: object) -> Literal[False]:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph.reset()
        finally:
            self.capture_stream.__exit__()
        return False


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Functions or modules whose forward and backward passes are replays of graphs.

    callables           a function or Module, or a tuple of them, which have to be
                        called in that order
    sample_args         a tuple of Tensors as the callable will get, or a tuple of such
                        tuples: shapes, types and requires_grad have to stay the same
    num_warmup_iters    how often each runs before it is captured
    allow_unused_input  whether inputs may have no influence on the results
    pool                the memory of the graphs: CUDAGraph.capture_begin()

    A Module is returned with another forward(), which replays while it is in the mode,
    training or not, in which it was captured. Results are overwritten by the next call.
    Raises RuntimeError for a Module with hooks or with buffers that require gradients,
    TypeError for arguments that are no Tensors.

    >>> layer = nn.Linear(3, 2, device='cuda')
    >>> sample = torch.ones(4, 3, device='cuda')
    >>> layer = torch.cuda.make_graphed_callables(layer, (sample,))
    >>> layer(torch.zeros(4, 3, device='cuda')).sum().backward()
    >>> layer.bias.grad
    tensor([4., 4.], device='cuda:0')
    """
    from pydevtensor.cuda._graphed import graphed

    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    if not isinstance(sample_args, tuple) or len(sample_args) != len(callables):
        raise TypeError(
            "make_graphed_callables(): sample_args is not a tuple with the arguments "
            "of each callable; give a tuple of Tensors for each"
        )
    made: Sequence[Any] = graphed(
        callables,
        [_flat(arguments) for arguments in sample_args],
        num_warmup_iters,
        allow_unused_input,
        graph_pool_handle() if pool is None else pool,
    )
    return made[0] if single else tuple(made)


def _flat(arguments: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    leaves, back = flatten(arguments)
    for leaf in leaves:
        if not isinstance(leaf, _C.Tensor):
            raise TypeError(
                f"make_graphed_callables(): sample_args contains {leaf!r}; all "
                "arguments have to be Tensors"
            )
    return leaves, back


_publish(__name__)
