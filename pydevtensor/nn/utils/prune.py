"""Pruning: masks of zeros and ones by which a module's parameters are multiplied.

A parameter `weight` that is pruned becomes the parameter `weight_orig` and the buffer
`weight_mask`; a hook sets the attribute `weight` to their product before each call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.utils.convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

Tensor = _C.Tensor


class BasePruningMethod(ABC):
    """The hook, and how its mask is computed. Derive a class from it for another way.

    A derived class has compute_mask() and PRUNING_TYPE: "unstructured", for single
    elements, "structured", for slices along `dim`, or "global", for all at once. The
    type says which elements the next pruning of a parameter chooses from.

    >>> class FirstRow(nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = 'global'
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask[0] = 0
    ...         return mask
    >>> layer = nn.Linear(2, 2)
    >>> _ = FirstRow.apply(layer, 'weight')
    >>> layer.weight_mask
    tensor([[0., 0.],
            [1., 1.]])
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor, given the mask that it has already.

        t             the tensor, or what says how important its elements are
        default_mask  ones and zeros of t's shape, ones if nothing is pruned
        """

    def apply_mask(self, module: Module) -> Tensor:
        """The product of the module's parameter and its mask."""
        name = self._tensor_name
        mask = getattr(module, f"{name}_mask")
        original = getattr(module, f"{name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """Prune a module's parameter, by its name; the hook, which holds earlier ones.

        The other arguments make the method. importance_scores are used in the place of
        the parameter's values. Raises AssertionError if their shape is not the
        parameter's, AttributeError if there is no such parameter.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        hooks = module._forward_pre_hooks
        for key, hook in list(hooks.items()):
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                container = PruningContainer()
                container._tensor_name = name
                for each in hook if isinstance(hook, PruningContainer) else [hook]:
                    container.add_pruning_method(each)
                container.add_pruning_method(method)
                old, method = key, container
                break
        else:
            old = None
        parameter = getattr(module, name)
        _check_scores(name, parameter, importance_scores)
        original = parameter if old is None else getattr(module, f"{name}_orig")
        scores = original if importance_scores is None else importance_scores
        if old is None:
            mask = _C.ones_like(scores)
        else:
            mask = getattr(module, f"{name}_mask").detach().clone()
        mask = method.compute_mask(scores.detach(), mask)
        # Nothing has changed until here, where nothing fails.
        if old is None:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
        else:
            del hooks[old]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """The tensor t, pruned, as a tensor of its own, without a module.

        default_mask is the mask that it has already, by default ones. Raises
        AssertionError if importance_scores are of another shape.

        >>> nn.utils.prune.L1Unstructured(2).prune(torch.tensor([1.0, -3.0, 2.0, 0.5]))
        tensor([ 0., -3.,  2.,  0.])
        """
        _check_scores("t", t, importance_scores)
        scores = t if importance_scores is None else importance_scores
        mask = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the product the module's parameter again; the mask and the hook go."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        original = module._parameters[f"{name}_orig"]
        assert original is not None
        original.data = weight.data
        if name in vars(module):
            delattr(module, name)
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _check_scores(name: str, parameter: Tensor, scores: Tensor | None) -> None:
    if scores is not None and scores.shape != parameter.shape:
        raise AssertionError(
            f"importance_scores has the shape {tuple(scores.shape)} and {name} "
            f"{tuple(parameter.shape)}; give a score for each element"
        )


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, each of what the ones before have left.

    >>> layer = nn.Linear(3, 2)
    >>> for _ in range(2):
    ...     _ = nn.utils.prune.l1_unstructured(layer, 'weight', 2)
    >>> int(layer.weight_mask.sum())
    2
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Append a method; None does nothing.

        Raises TypeError for what is not a method, ValueError for one of another tensor.
        """
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(
                f"add_pruning_method() got a {type(method).__name__}; give a "
                "BasePruningMethod"
            )
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"the method prunes {method._tensor_name!r} and the container "
                f"{self._tensor_name!r}; give one of the same tensor"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last method for t, applied to what default_mask has left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            chosen: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()  # type: ignore[attr-defined]
            others = [d for d in range(t.dim()) if d != dim]
            chosen = (slice(None),) * dim + (mask.sum(others) != 0,)
        elif method.PRUNING_TYPE == "global":
            chosen = (slice(None),) * t.dim()
        else:
            raise ValueError(
                f"PRUNING_TYPE is {method.PRUNING_TYPE!r}; give 'unstructured', "
                "'structured' or 'global'"
            )
        mask = mask.clone()
        mask[chosen] = method.compute_mask(t[chosen], default_mask=mask[chosen])
        return mask


class Identity(BasePruningMethod):
    """A mask of ones: nothing is pruned, but the names are those of a pruned module.

    >>> nn.utils.prune.Identity().prune(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """default_mask, the mask that t has."""
        return default_mask


class _Amount(BasePruningMethod):
    """A method that prunes a number of elements or slices, or a share of them.

    amount  how many, an int, or which share, a float from 0 to 1
    """

    def __init__(self, amount: float) -> None:
        if not isinstance(amount, (int, float)):
            raise TypeError(
                f"amount is a {type(amount).__name__}; give a count or a share from 0 "
                "to 1"
            )
        if amount < 0 or (isinstance(amount, float) and amount > 1):
            raise ValueError(f"amount is {amount}; give a count or a share from 0 to 1")
        self.amount = amount

    def _count(self, of: int) -> int:
        if not isinstance(self.amount, int):
            return round(self.amount * of)
        if self.amount > of:
            raise ValueError(f"amount is {self.amount}; give a count up to {of}")
        return self.amount


class _Unstructured(_Amount):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """default_mask with zeros at more elements, chosen among all of t."""
        count = self._count(t.numel())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask

    @abstractmethod
    def _chosen(self, t: Tensor, count: int) -> Tensor: ...


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    >>> nn.utils.prune.RandomUnstructured(3).prune(torch.ones(4)).sum()
    tensor(1.)
    """

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return _C.topk(_C.rand_like(t).view(-1), count).indices


class L1Unstructured(_Unstructured):
    """Prunes the elements of the least magnitudes.

    >>> nn.utils.prune.L1Unstructured(0.5).prune(torch.tensor([1.0, -3.0]))
    tensor([ 0., -3.])
    """

    def _chosen(self, t: Tensor, count: int) -> Tensor:
        return _C.topk(t.abs().view(-1), count, largest=False).indices


class _Structured(_Amount):
    """A method that prunes slices.

    dim  the dimension that the slices are of
    """

    PRUNING_TYPE = "structured"
    dim: int

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """default_mask with zeros at more slices of t along dim.

        Raises ValueError for a tensor of one dimension, IndexError for a dim that it
        does not have.
        """
        if t.dim() <= 1:
            raise ValueError(
                f"t has the shape {tuple(t.shape)}; slices need 2 or more dimensions: "
                "use an unstructured method"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(
                f"dim is {self.dim} and t has the shape {tuple(t.shape)}; give one of "
                "its dimensions"
            )
        length = t.shape[self.dim]
        count = self._count(length)
        if not count:
            return default_mask
        line = [1] * t.dim()
        line[self.dim] = length
        kept = self._kept(t, length, count).to(dtype=default_mask.dtype)
        return default_mask * kept.view(line)

    @abstractmethod
    def _kept(self, t: Tensor, length: int, count: int) -> Tensor: ...


class RandomStructured(_Structured):
    """Prunes slices at random.

    >>> nn.utils.prune.RandomStructured(1, dim=0).prune(torch.ones(3, 2)).sum()
    tensor(4.)
    """

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _kept(self, t: Tensor, length: int, count: int) -> Tensor:
        chances = _C.rand(length)
        return (chances > _C.kthvalue(chances, count).values).to(t.device)


class LnStructured(_Structured):
    """Prunes the slices of the least norms.

    n  which norm: 1, 2, float('inf'), 'fro', ...

    >>> x = torch.tensor([[1.0, 4.0], [2.0, 5.0]])
    >>> nn.utils.prune.LnStructured(1, n=2, dim=1).prune(x)
    tensor([[0., 4.],
            [0., 5.]])
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def _kept(self, t: Tensor, length: int, count: int) -> Tensor:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = _C.norm(t, p=self.n, dim=others)
        kept = _C.zeros(length, device=t.device)
        kept[_C.topk(norms, length - count).indices] = 1
        return kept


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask is 0.

    mask  ones and zeros of the parameter's shape

    >>> x, mask = torch.tensor([1.0, 2.0]), torch.tensor([0, 1])
    >>> nn.utils.prune.CustomFromMask(mask).prune(x)
    tensor([0., 2.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of the mask and default_mask, which have the shape of t.

        Raises AssertionError if the shapes differ.
        """
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"mask has the shape {tuple(self.mask.shape)} and the tensor "
                f"{tuple(default_mask.shape)}; give one of the tensor's"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """The module, with a mask of ones for its parameter `name`.

    >>> layer = nn.utils.prune.identity(nn.Linear(2, 1), 'bias')
    >>> layer.bias_mask
    tensor([1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """The module, with elements of its parameter `name` pruned at random.

    amount  how many, an int, or which share, a float from 0 to 1

    >>> layer = nn.utils.prune.random_unstructured(nn.Linear(3, 2), 'weight', 0.5)
    >>> layer.weight_mask.sum()
    tensor(3.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """The module, with its parameter `name` pruned where magnitudes are least.

    amount             how many, an int, or which share, a float from 0 to 1
    importance_scores  magnitudes to go by in the place of the parameter's

    >>> layer = nn.Linear(3, 1)
    >>> layer.weight.data = torch.tensor([[1.0, -3.0, 0.5]])
    >>> nn.utils.prune.l1_unstructured(layer, 'weight', 1).weight_mask
    tensor([[1., 1., 0.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """The module, with slices of its parameter `name` along dim pruned at random.

    amount  how many, an int, or which share, a float from 0 to 1

    >>> layer = nn.utils.prune.random_structured(nn.Linear(3, 2), 'weight', 1, dim=0)
    >>> sorted(layer.weight_mask.sum(1).tolist())
    [0.0, 3.0]
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """The module, with the slices of the least norms of its parameter `name` pruned.

    amount             how many, an int, or which share, a float from 0 to 1
    n                  which norm: 1, 2, float('inf'), 'fro', ...
    dim                the dimension that the slices are of
    importance_scores  values to take the norms of in the place of the parameter's

    >>> layer = nn.Linear(2, 2)
    >>> layer.weight.data = torch.tensor([[1.0, -3.0], [0.5, 2.0]])
    >>> nn.utils.prune.ln_structured(layer, 'weight', 1, n=2, dim=0).weight_mask
    tensor([[1., 1.],
            [0., 0.]])
    """
    scores = importance_scores
    LnStructured.apply(module, name, amount, n, dim, importance_scores=scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: Any,
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    parameters         pairs of a module and a name
    pruning_method     a class whose PRUNING_TYPE is "unstructured"
    importance_scores  by such a pair, values to go by in the place of the parameter's
    kwargs             options of the method, such as amount

    Raises TypeError for a method of another type.

    >>> prune = nn.utils.prune
    >>> a, b = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> a.weight.data = torch.tensor([[1., 4.]])
    >>> b.weight.data = torch.tensor([[2., 3.]])
    >>> pairs = [(a, 'weight'), (b, 'weight')]
    >>> prune.global_unstructured(pairs, prune.L1Unstructured, amount=2)
    >>> a.weight_mask, b.weight_mask
    (tensor([[0., 1.]]), tensor([[0., 1.]]))
    """
    pairs = [*parameters]
    given = importance_scores or {}
    scores = [given.get((m, name), getattr(m, name)) for m, name in pairs]
    masks = [
        getattr(m, f"{name}_mask", _C.ones_like(getattr(m, name))) for m, name in pairs
    ]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"{type(method).__name__} prunes slices or all at once; give a class whose "
            "PRUNING_TYPE is 'unstructured'"
        )
    vector = parameters_to_vector([each.detach() for each in scores])
    final = container.compute_mask(vector, parameters_to_vector(masks))
    at = 0
    for module, name in pairs:
        parameter = getattr(module, name)
        mask = final[at : at + parameter.numel()].view_as(parameter)
        custom_from_mask(module, name, mask)
        at += parameter.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """The module, with its parameter `name` pruned where a mask of its shape is 0.

    >>> layer = nn.Linear(2, 1)
    >>> mask = torch.tensor([[0.0, 1.0]])
    >>> nn.utils.prune.custom_from_mask(layer, 'weight', mask).weight[0, 0] == 0
    tensor(True)
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """The module, with the pruned `name` a parameter again, with the zeros.

    Raises ValueError if the parameter is not pruned.

    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(3, 2), 'weight', 4)
    >>> list(nn.utils.prune.remove(layer, 'weight').state_dict())
    ['bias', 'weight']
    """
    hooks = module._forward_pre_hooks
    for key, hook in hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del hooks[key]
            return module
    raise ValueError(f"{name!r} of {type(module).__name__} is not pruned")


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one inside of it, is pruned.

    >>> layer = nn.Linear(3, 2)
    >>> before = nn.utils.prune.is_pruned(layer)
    >>> _ = nn.utils.prune.identity(layer, 'weight')
    >>> before, nn.utils.prune.is_pruned(nn.Sequential(layer))
    (False, True)
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


_publish(__name__, described=True)
