"""The shapes and types of a graph's values."""

from __future__ import annotations

from typing import Any, NamedTuple

import pydevtensor as torch
from pydevtensor._names import publish as _publish
from pydevtensor.fx.interpreter import Interpreter
from pydevtensor.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """A Tensor's shape, type and strides, as ShapeProp finds them.

    memory_format: torch.contiguous_format, channels_last or None. The last two are for
    quantized Tensors, of which there are none.

    >>> net = torch.fx.symbolic_trace(nn.Linear(3, 5))
    >>> _ = torch.fx.passes.shape_prop.ShapeProp(net).propagate(torch.ones(2, 3))
    >>> [*net.graph.nodes][0].meta['tensor_meta'].stride
    (3, 1)
    """

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _metadata(tensor: Any) -> TensorMetadata:
    formats = torch.contiguous_format, torch.channels_last
    laid = (f for f in formats if tensor.is_contiguous(memory_format=f))
    return TensorMetadata(
        tensor.shape,
        tensor.dtype,
        tensor.requires_grad,
        tensor.stride(),
        next(laid, None),
        False,
        {},
    )


class ShapeProp(Interpreter):
    """Runs a graph, and keeps each value's shape and type in its Node.

    A Node's meta has a TensorMetadata under "tensor_meta", in the tuples and lists that
    the value has, and the value's class under "type". RuntimeError for a Node that
    fails, which it names.

    gm         the GraphModule
    fake_mode  has to be None; to compute no values give Tensors on meta to propagate()

    >>> net = torch.fx.symbolic_trace(nn.Linear(3, 5))
    >>> torch.fx.passes.shape_prop.ShapeProp(net).propagate(torch.ones(2, 3)).shape
    torch.Size([2, 5])
    >>> [node.meta['tensor_meta'].shape for node in net.graph.nodes][-1]
    torch.Size([2, 5])
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError(
                "there is no fake mode; give propagate() Tensors on the device meta"
            )

    def run_node(self, n: Node) -> Any:
        """Run the Node n, and keep its result's shape and type in n.meta."""
        try:
            value = super().run_node(n)
        except Exception as error:
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()}: {error}"
            ) from error
        seen = False

        def look(leaf: Any) -> Any:
            nonlocal seen
            if not isinstance(leaf, torch.Tensor):
                return leaf
            seen = True
            return _metadata(leaf)

        found = map_aggregate(value, look)
        if seen:
            n.meta["tensor_meta"] = found
        n.meta["type"] = type(value)
        return value

    def propagate(self, *args: Any) -> Any:
        """The result for args, whose shapes and types those of all values follow."""
        return self.run(*args)


_publish(__name__)
