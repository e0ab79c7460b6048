"""Modules whose forward() is the code of a graph."""

from __future__ import annotations

import copy
import linecache
from itertools import count
from typing import Any

from pydevtensor import Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.fx.graph import Graph
from pydevtensor.fx.node import map_aggregate, map_arg
from pydevtensor.nn import Module, Parameter

__all__ = ["GraphModule"]

_numbers = count()


def value_at(root: Any, path: str) -> Any:
    """The value that names with dots lead to."""
    for name in path.split("."):
        root = getattr(root, name)
    return root


class GraphModule(Module):
    """A Module that runs a Graph.

    root        the Module, or a dict by path, that has what the graph's nodes name
    graph       the Graph; assign another one, or call recompile() after changing it
    class_name  what repr() shows

    >>> net = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    >>> for node in net.graph.nodes:
    ...     if node.target == '1':
    ...         with net.graph.inserting_after(node):
    ...             new = net.graph.call_function(torch.neg, (node,))
    ...         _ = node.replace_all_uses_with(new, lambda user: user is not new)
    >>> _ = net.recompile()
    >>> bool((net(torch.ones(1, 2)) <= 0).all())
    True
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # A class of its own, since forward() is found in the class.
        base = next(c for c in cls.__mro__ if "_is_made" not in vars(c))
        made = type(base.__name__, (base,), {"_is_made": True})
        # Programs that replace forward() know such a class by this name.
        made.__module__, made.__qualname__ = base.__module__, "GraphModuleImpl"
        return super().__new__(made)

    def __init__(
        self, root: Any, graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if isinstance(root, Module):
                    value = value_at(root, node.target)
                elif node.target in root:
                    value = root[node.target]
                else:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target "
                        "was not provided in root; add it"
                    )
                self._put(node.target, value)
        self.graph = graph

    def _owner(self, path: str) -> tuple[Any, str]:
        """The owner of the last name of a path, and the name. Adds absent modules."""
        *above, last = path.split(".")
        owner: Any = self
        for name in above:
            if not isinstance(owner, Module):
                break
            if not hasattr(owner, name):
                owner.add_module(name, Module())
            owner = getattr(owner, name)
        return owner, last

    def _put(self, path: str, value: Any) -> None:
        owner, last = self._owner(path)
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            if last in owner._buffers:
                return
            owner.register_buffer(last, value)
        else:
            setattr(owner, last, value)

    @property
    def graph(self) -> Graph:
        """The Graph. Assigning another one compiles it."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        graph.owning_module = self
        self._graph = graph
        self.recompile()

    @property
    def code(self) -> str:
        """The code of forward()."""
        return self._code

    def recompile(self) -> Any:
        """Compile the graph's code to forward(), after a change of the graph."""
        made = self._graph.python_code("self")
        self._code = made.src
        name = f"<graph_module_{next(_numbers)}>"
        lines = made.src.splitlines(keepends=True)
        linecache.cache[name] = (len(made.src), None, lines, name)  # for tracebacks
        scope = dict(made.globals)
        exec(compile(made.src.rstrip(), name, "exec"), scope)
        type(self).forward = scope["forward"]  # type: ignore[method-assign]
        return made

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add m under the path target; False where something else is in the way."""
        owner, last = self._owner(target)
        if not isinstance(owner, Module):
            return False
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module of the path target; False where there is none."""
        above, _, last = target.rpartition(".")
        try:
            owner = self.get_submodule(above)
        except AttributeError:
            return False
        if not isinstance(getattr(owner, last, None), Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node of the graph names, nor what they contain."""
        used = {
            n.target for n in self._graph.nodes if n.op in ("call_module", "get_attr")
        }
        kept = set()
        for path in used:
            parts = path.split(".")
            kept |= {".".join(parts[:i]) for i in range(1, len(parts) + 1)}
        called = tuple(path + "." for path in used)
        for path, _ in [*self.named_modules()][:0:-1]:
            if path not in kept and not path.startswith(called):
                self.delete_submodule(path)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The class as text, which is printed too.

        print_output: whether to print it. options have no effect.
        """
        head, _, body = self._code.strip().partition("\n")
        body = f"{head}\n    # No stacktrace found for following nodes\n{body}"
        body = body.replace("\n", "\n    ")
        text = f"class {type(self).__name__}(torch.nn.Module):\n    {body}\n"
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        root = Module()
        root.__dict__.update(copy.deepcopy(self._attributes(), memo))
        return _made(root, copy.deepcopy(self._graph), type(self).__name__)

    def __copy__(self) -> Any:
        return GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._attributes(), _rows(self._graph), type(self).__name__)

    def _attributes(self) -> dict[str, Any]:
        """The attributes that do not follow from the graph."""
        own = ("_graph", "_code")
        return {k: v for k, v in self.__dict__.items() if k not in own}

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, hint])


def _made(root: Module, graph: Graph, name: str) -> GraphModule:
    made = GraphModule(root, graph, name)
    more = {k: v for k, v in root.__dict__.items() if k not in made.__dict__}
    made.__dict__.update(more)
    return made


class _Name(str):
    """The name of a Node, in the arguments of another one that is pickled."""

    __slots__ = ()


def _rows(graph: Graph) -> list[tuple[Any, ...]]:
    def named(value: Any) -> Any:
        return map_arg(value, lambda node: _Name(node.name))

    return [
        (n.op, n.target, named(n.args), named(n.kwargs), n.name, n.type)
        for n in graph.nodes
    ]


def _rebuild(state: dict[str, Any], rows: list[Any], name: str) -> GraphModule:
    """Called by unpickling; functions in the graph are found by their names."""
    graph, nodes = Graph(), dict[str, Any]()

    def found(value: Any) -> Any:
        return nodes[value] if isinstance(value, _Name) else value

    for op, target, args, kwargs, label, kind in rows:
        given = map_aggregate(args, found), map_aggregate(kwargs, found)
        nodes[label] = graph.create_node(op, target, *given, label, kind)
    root = Module()
    root.__dict__.update(state)
    return _made(root, graph, name)


_publish(__name__)
