"""torch.library: operators of a program's own, with schemas, kernels and derivatives.

@custom_op makes one of a function with types; torch.ops.<namespace>.<name> calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydevtensor._names import publish as _publish
from pydevtensor.library import _checks, _operators
from pydevtensor.library._namespaces import namespace as namespace
from pydevtensor.library._schema import infer as _infer

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "impl", "infer_schema"]
__all__ += [
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]

_libraries: dict[str, str] = {"aten": "PyTorch", "prim": "PyTorch", "prims": "PyTorch"}


class CustomOpDef:
    """An operator that custom_op() made: call it, and register what belongs to it.

    namespace, name: those of torch.ops. schema: its text. fn: the first kernel.

    >>> @torch.library.custom_op("docs::halve", mutates_args=())
    ... def halve(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 2
    >>> halve
    <CustomOpDef(docs::halve)>
    """

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable[..., Any]
    ) -> None:
        self._namespace, self._name = namespace, name
        self._qualname = f"{namespace}::{name}"
        self._init_fn = fn
        old = _operators.namespaces.get(namespace, {}).get(name)
        if old is not None:  # a cell that runs again
            old._overloads.pop("default", None)
        self._opoverload = _operators.define(namespace, name, schema)
        self._opoverload.strict = self
        self.__name__ = getattr(fn, "__name__", name)
        self.__doc__ = fn.__doc__

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self,
        device_types: str | Sequence[str] | None,
        fn: Callable[..., Any] | None = None,
        /,
    ) -> Callable[..., Any]:
        """Let fn run for Tensors on device_types: "cpu", "cuda", or None for all.

        Without fn, a decorator.
        """

        def register(body: Callable[..., Any]) -> Callable[..., Any]:
            for kind in _kinds(device_types):
                self._opoverload.kernels[kind] = body
            return body

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Let fn make results without data, for Tensors on the device meta."""
        self._opoverload.kernels["meta"] = fn
        return fn

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """Let backward be the derivative.

        backward: a function of (ctx, *gradients) that returns a gradient for each
        input, a list of them for a list of Tensors. setup_context: a function of (ctx,
        inputs, output), with keyword_only_inputs where there are such, that keeps in
        ctx what backward needs. RuntimeError for an operator that writes its arguments.
        """
        self._opoverload.differentiate(backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """Gives func back, and has no effect: vmap() calls the operator for rows."""
        return func if func is not None else lambda fn: fn


def _kinds(device_types: str | Sequence[str] | None) -> list[str]:
    """Where an operator keeps the kernels of these devices."""
    if device_types is None:
        return ["default"]
    given = [device_types] if isinstance(device_types, str) else device_types
    for kind in given:
        if kind not in ("cpu", "cuda", "meta", "default"):
            raise ValueError(
                f"device_types has {kind!r}; give 'cpu', 'cuda', 'meta' or 'default'"
            )
    return [*given]


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
) -> str:
    """The schema of prototype_function, whose parameters and result have types.

    mutates_args: the names of the arguments that it writes, or "unknown". op_name: what
    to call it. ValueError for a type that a schema does not have.

    >>> def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor: ...
    >>> torch.library.infer_schema(scale, mutates_args=())
    '(Tensor x, float by=2.0) -> Tensor'
    """
    return _infer(prototype_function, mutates_args, op_name or "")


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """An operator whose kernel is fn; without fn, a decorator.

    name          "namespace::name", by which torch.ops has it
    mutates_args  the names of the arguments that fn writes; "unknown": every Tensor
    device_types  the devices that fn is for, all if it is None
    schema        the schema; without it, that of fn's type annotations
    tags          has no effect

    fn runs without recording. Its results may share memory neither with arguments nor
    with each other: RuntimeError. They have no derivative before register_autograd().

    >>> @torch.library.custom_op("docs::cube", mutates_args=())
    ... def cube(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(x.numpy() ** 3)
    >>> cube.register_autograd(
    ...     lambda ctx, gradient: gradient * 3 * ctx.saved_tensors[0] ** 2,
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> torch.autograd.grad(torch.ops.docs.cube(x), x)
    (tensor([12.]),)
    """

    def make(body: Callable[..., Any]) -> CustomOpDef:
        namespace, short = _operators.split(name)
        text = schema or infer_schema(body, mutates_args=mutates_args)
        made = CustomOpDef(namespace, short, text, body)
        made.register_kernel(device_types, body)
        return made

    return make if fn is None else make(fn)


def define(
    qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()
) -> None:
    """Define an operator: qualname, which is "namespace::name", and its schema.

    lib, tags: have no effect. RuntimeError for another text and for an
    operator that is there.

    >>> torch.library.define("docs::add_n", "(Tensor x, int n=1) -> Tensor")
    >>> @torch.library.impl("docs::add_n", "default")
    ... def add_n(x, n=1):
    ...     return x + n
    >>> torch.ops.docs.add_n(torch.zeros(2), n=3)
    tensor([3., 3.])
    """
    del lib, tags
    _operators.define(*_operators.split(qualname), schema)


def impl(
    qualname: Any,
    types: str | Sequence[str],
    func: Any = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Register a kernel of an operator; without func, a decorator.

    qualname  "namespace::name"; or a Library, and then types is the name and func the
              dispatch key
    types     types of devices: "cpu", "cuda", "meta", or "default" for all
    lib       has no effect

    >>> torch.library.define("docs::twice", "(Tensor x) -> Tensor")
    >>> torch.library.impl("docs::twice", ["cpu", "cuda"], lambda x: x * 2)
    >>> torch.ops.docs.twice(torch.ones(2))
    tensor([2., 2.])
    """
    if isinstance(qualname, Library):
        return qualname._registers(str(types), func or "")
    operator = _operators.find(qualname)

    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        for kind in _kinds(types):
            operator.kernels[kind] = body
        return body

    if func is None:
        return register
    register(func)
    return None


def register_kernel(
    op: Any,
    device_types: str | Sequence[str] | None,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Register func as a kernel for device_types, as CustomOpDef.register_kernel().

    op: the operator or its name. lib: has no effect.

    >>> @torch.library.custom_op("docs::third", mutates_args=(), device_types="cuda")
    ... def third(x: torch.Tensor) -> torch.Tensor:
    ...     return x / 3
    >>> @torch.library.register_kernel("docs::third", "cpu")
    ... def _(x):
    ...     return x * (1 / 3)
    >>> third(torch.tensor([3.0]))
    tensor([1.])
    """
    register = impl(_operators.find(op), device_types or "default", lib=lib)
    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Register what makes results without data, for Tensors on the device meta.

    op: the operator or its name. Without func, a decorator. lib and allow_override have
    no effect. RuntimeError if there is no such operator.

    >>> @torch.library.custom_op("docs::rows", mutates_args=())
    ... def rows(x: torch.Tensor) -> torch.Tensor:
    ...     return x.sum(0)
    >>> @torch.library.register_fake("docs::rows")
    ... def _(x):
    ...     return x.new_empty(x.shape[1:])
    >>> rows(torch.empty(2, 3, device="meta")).shape
    torch.Size([3])
    """
    return register_kernel(op, "meta", func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Let backward be an operator's derivative, as CustomOpDef.register_autograd().

    op: the operator or its name. setup_context: keeps in its ctx what backward needs.
    lib: has no effect.

    >>> torch.library.define("docs::negate", "(Tensor x) -> Tensor")
    >>> torch.library.impl("docs::negate", "default", lambda x: -x)
    >>> torch.library.register_autograd("docs::negate", lambda ctx, gradient: -gradient)
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.docs.negate(x).sum().backward()
    >>> x.grad
    tensor([-1., -1.])
    """
    _operators.find(op).differentiate(backward, setup_context)


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _checks.ALL,
    raise_exception: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
) -> dict[str, Any]:
    """Check an operator on arguments: its schema, derivative and fake kernel.

    Returns by each check "SUCCESS", or the error. test_schema: what the operator writes
    and returns is as its schema says. test_autograd_registration: gradients have the
    shapes of the arguments that require them. test_faketensor: results on the device
    meta have the shapes and types of those with data. test_aot_dispatch_dynamic: a
    second call has the same results and gradients.

    op               the operator, a CustomOpDef or one of torch.ops
    args, kwargs     its arguments
    test_utils       which checks, a name or several
    raise_exception  raise the first error, an OpCheckError
    rtol, atol       how far results of two calls may differ

    >>> @torch.library.custom_op("docs::double", mutates_args=())
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> _ = double.register_fake(torch.empty_like)
    >>> torch.library.opcheck(double, (torch.ones(2),), test_utils='test_faketensor')
    {'test_faketensor': 'SUCCESS'}
    """
    checks = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    off = {} if rtol is None or atol is None else {"rtol": rtol, "atol": atol}
    results: dict[str, Any] = {}
    for name in checks:
        results[name] = _checks.run(name, op, args, kwargs or {}, off)
        if raise_exception and results[name] != "SUCCESS":
            raise results[name]
    return results


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Has no effect but to give func back: vmap() calls an operator for each row.

    op: the operator or its name. lib: has no effect.

    >>> @torch.library.custom_op("docs::square", mutates_args=())
    ... def square(x: torch.Tensor) -> torch.Tensor:
    ...     return x * x
    >>> torch.library.register_vmap("docs::square", max)
    <built-in function max>
    """
    _operators.find(op)
    return func if func is not None else lambda fn: fn


class Library:
    """Defines and implements operators of a namespace.

    ns            the namespace
    kind          "DEF", of which a namespace has one, "FRAGMENT" or "IMPL"
    dispatch_key  the one of impl() without it

    They stay when the object goes.

    >>> lib = torch.library.Library("docs_lib", "DEF")
    >>> lib.define("plus(Tensor x, Tensor y) -> Tensor")
    'plus'
    >>> lib.impl("plus", lambda x, y: x + y, "CompositeImplicitAutograd")
    >>> torch.ops.docs_lib.plus(torch.ones(2), torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind!r}; give DEF, FRAGMENT or IMPL")
        if kind == "DEF":
            if ns in _libraries:
                raise RuntimeError(
                    "Only a single Library can be used to register the namespace "
                    f"{ns}, which {_libraries[ns]} has; give the kind FRAGMENT"
                )
            _libraries[ns] = "another Library"
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def __repr__(self) -> str:
        key = self.dispatch_key
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema, and give its name back.

        alias_analysis, tags: have no effect.
        """
        name = schema.partition("(")[0].strip()
        _operators.define(self.ns, name, schema[len(name) :].strip())
        return name

    def _registers(self, op_name: str, dispatch_key: str) -> Any:
        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.impl(op_name, fn, dispatch_key)
            return fn

        return register

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Let fn run for dispatch_key: "CPU", "CUDA", "Meta", "Autograd", ...

        op_name: the name, or the operator. Without a key, the Library's; without that
        too, "CompositeImplicitAutograd": fn is differentiated as other functions are.
        with_keyset: NotImplementedError for True. allow_override: has no effect.
        """
        if with_keyset:
            raise NotImplementedError("impl(): with_keyset; there are no key sets")
        key = dispatch_key or self.dispatch_key
        if key not in _operators.KEYS:
            raise RuntimeError(
                f"could not parse dispatch key: {key}; give one of "
                f"{', '.join(filter(None, _operators.KEYS))}"
            )
        if isinstance(op_name, str):
            op_name = f"{self.ns}::{op_name.rpartition('::')[2]}"
        _operators.find(op_name).kernels[_operators.KEYS[key]] = fn


_publish(__name__)
