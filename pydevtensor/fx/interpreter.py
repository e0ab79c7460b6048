"""Running a graph node by node."""

from __future__ import annotations

from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.fx.graph import Graph
from pydevtensor.fx.graph_module import GraphModule
from pydevtensor.fx.node import Node, map_arg
from pydevtensor.fx.proxy import GraphAppendingTracer, Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; override a method to look at values or change them.

    module                  the GraphModule
    garbage_collect_values  let a value go behind its last use
    graph                   the Graph, by default that of module

    >>> class Count(torch.fx.Interpreter):
    ...     def run_node(self, n):
    ...         print(n.op, n.target if n.op == 'call_method' else n.name)
    ...         return super().run_node(n)
    >>> Count(torch.fx.symbolic_trace(lambda x: x.sum())).run(torch.ones(3))
    placeholder x
    call_method sum
    output output
    tensor(3.)
    """

    def __init__(
        self,
        module: Any,
        garbage_collect_values: bool = True,
        graph: Graph | None = None,
    ) -> None:
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph
        self.garbage_collect_values = garbage_collect_values
        self.env: dict[Node, Any] = {}

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """The result of the graph for args.

        initial_env: values of nodes that do not run. enable_io_processing: no effect.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(args)
        last: dict[Node, Node] = {}
        for node in self.graph.nodes:
            last.update(dict.fromkeys(node.all_input_nodes, node))
        for node in self.graph.nodes:
            if node not in self.env:
                try:
                    self.env[node] = self.run_node(node)
                except Exception as error:
                    note = f"While executing {node.format_node()}"
                    if hasattr(error, "add_note"):
                        error.add_note(note)
                    raise
            if node.op == "output":
                return self.env[node]
            if self.garbage_collect_values:
                for used in node.all_input_nodes:
                    if last[used] is node:
                        self.env.pop(used, None)
        return None

    def run_node(self, n: Node) -> Any:
        """The value of the Node n."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """The next argument of run(), all that are left for `*args`.

        target: the parameter's name. args: its default. kwargs: nothing.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(
            f"Expected positional argument for parameter {target}, but one was not "
            "passed in!"
        )

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """The module's attribute of the path target. args, kwargs: nothing."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of the function target for args and kwargs."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """The result of the first argument's method target for args and kwargs."""
        own, *rest = args
        return getattr(own, target)(*rest, **kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """The result of the module of the path target for args and kwargs."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: str, args: Any, kwargs: Any) -> Any:
        """The result, args[0]. target: 'output'. kwargs: nothing."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute of the path target."""
        value = self.module
        for name in target.split("."):
            if not hasattr(value, name):
                raise RuntimeError(
                    f"Node referenced nonexistent target {target}; the module has no "
                    f"{name} there"
                )
            value = getattr(value, name)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The arguments of the Node n, with values for Nodes."""
        return (
            self.map_nodes_to_values(n.args, n),
            self.map_nodes_to_values(n.kwargs, n),
        )

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """args of the Node n with the value of each Node in it."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}!")
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """An Interpreter whose values are Proxies, so that it makes another GraphModule.

    module: the GraphModule.

    >>> class Swap(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         target = torch.sigmoid if target is torch.relu else target
    ...         return super().call_function(target, args, kwargs)
    >>> net = Swap(torch.fx.symbolic_trace(lambda x: torch.relu(x))).transform()
    >>> net(torch.zeros(1))
    tensor([0.5000])
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = GraphAppendingTracer(self.new_graph)

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        """A new input. target, args, kwargs: those of the Node."""
        default = args[0] if args else ...
        node = self.new_graph.placeholder(target, default_value=default)
        return Proxy(node, self.tracer)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        """A new Node for an attribute. target, args, kwargs: those of the Node."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A new Node for a function. target, args, kwargs: those of the Node."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        """A new Node for a method. target, args, kwargs: those of the Node."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        """A new Node for a module. target, args, kwargs: those of the Node."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The GraphModule of the new Nodes."""
        result = self.run()
        self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)


_publish(__name__)
