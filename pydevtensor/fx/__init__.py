"""torch.fx: programs as graphs of calls, which can be changed and run.

symbolic_trace() makes a GraphModule of a module or a function. While it runs, the
functions of this package and of `math`, and those of wrap(), record calls with Proxies.
"""

from pydevtensor._names import give as _give
from pydevtensor._names import publish as _publish
from pydevtensor.fx import (
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    passes,
    proxy,
    subgraph_rewriter,
)
from pydevtensor.fx._symbolic_trace import PH as PH
from pydevtensor.fx._symbolic_trace import Tracer, symbolic_trace, wrap
from pydevtensor.fx.graph import Graph
from pydevtensor.fx.graph_module import GraphModule
from pydevtensor.fx.interpreter import Interpreter, Transformer
from pydevtensor.fx.node import Node, has_side_effect, map_arg
from pydevtensor.fx.proxy import Proxy
from pydevtensor.fx.subgraph_rewriter import replace_pattern

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer"]
__all__ += ["Transformer", "graph", "graph_module", "has_side_effect", "interpreter"]
__all__ += ["immutable_collections", "map_arg", "node", "passes", "proxy"]
__all__ += ["replace_pattern"]
__all__ += ["subgraph_rewriter", "symbolic_trace", "wrap"]

_give("pydevtensor.fx._symbolic_trace", Tracer)
_publish(__name__)
