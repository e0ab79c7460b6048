"""The base of all distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pydevtensor import Size, Tensor
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.distributions import constraints
from pydevtensor.distributions.utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """The base of all distributions.

    A subclass has arg_constraints and support, which arguments and values are held
    against, and defines sample() or rsample(), log_prob(), and what else it has.

    batch_shape    the shape of the distributions, sizes
    event_shape    the shape of one value, sizes
    validate_args  whether arguments and values out of range raise ValueError; None: as
                   set_default_validate_args() says

    >>> torch.distributions.Normal(torch.zeros(3), 1.0).batch_shape
    torch.Size([3])
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[Any] = {}
    support: Any
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check arguments and values from now on.

        They do at first, unless Python runs with -O.

        value  True or False, else ValueError
        """
        if value not in (True, False):
            raise ValueError(f"value is {value!r}; give True or False")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()

    def _check_arguments(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if name not in self.__dict__ and lazy:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"{type(self).__name__}: {name} is {value!r}, which does not all "
                    f"satisfy {constraint!r}; give other values, or validate_args=False"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """The same distribution with parameters expanded to batch_shape.

        batch_shape  sizes that the present ones broadcast to; RuntimeError for others
        """
        batch_shape = Size(batch_shape)
        new = type(self).__new__(type(self)) if _instance is None else _instance
        count = len(self.batch_shape)
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                value = value.expand(batch_shape + value.shape[count:])
            elif isinstance(value, Distribution):
                value = value.expand(batch_shape)
            new.__dict__[name] = value
        new._batch_shape = batch_shape
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value."""
        return self._event_shape

    def _lacks(self, name: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {name}")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._lacks("mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise self._lacks("mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._lacks("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Random values, without gradients.

        sample_shape  how many, sizes: the result has sample_shape + batch_shape +
                      event_shape
        """
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Random values through which gradients reach the parameters.

        NotImplementedError where has_rsample is False.

        sample_shape  how many, sizes: the result has sample_shape + batch_shape +
                      event_shape
        """
        raise self._lacks("rsample()")

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)).

        n  how many, an int
        """
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability at value."""
        raise self._lacks("log_prob()")

    def cdf(self, value: Tensor) -> Tensor:
        """Cumulative distribution function: the probability of at most value."""
        raise self._lacks("cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """Inverse of cdf() at value, a probability."""
        raise self._lacks("icdf()")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first dimension.

        NotImplementedError where has_enumerate_support is False.

        expand  repeat them for each distribution of the batch, for a shape (values,
                *batch_shape, *event_shape); else the batch's sizes are 1
        """
        raise self._lacks("enumerate_support()")

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise self._lacks("entropy()")

    def perplexity(self) -> Tensor:
        """e to the power of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _values(self, first: Any) -> Tensor:
        """All values of a batch of categories, `first` being those of one."""
        return first.reshape(-1, *[1] * len(self._batch_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError where value has a wrong shape or is outside the support."""
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{type(self).__name__}: the value is a {type(value).__name__}; give a "
                "Tensor"
            )
        start = value.dim() - len(self._event_shape)
        if value.shape[max(start, 0) :] != self._event_shape:
            raise ValueError(
                f"{type(self).__name__}: the value has the shape {tuple(value.shape)}; "
                f"give one that ends with {tuple(self._event_shape)}"
            )
        actual, wanted = value.shape, self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(wanted), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"{type(self).__name__}: the shape {tuple(actual)} does not "
                    f"broadcast with {tuple(wanted)}"
                )
        try:
            support = self.support
        except (NotImplementedError, AttributeError):
            return
        if not support.check(value).all():
            raise ValueError(
                f"{type(self).__name__}: the value is {value!r}, and not all is in "
                f"the support, {support!r}; give other values, or validate_args=False"
            )

    def _checked(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return value

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
            elif value is not None:
                shown.append(f"{name}: {value}")
        return f"{type(self).__name__}({', '.join(shown)})"


def parameter(
    name: str, doc: str, of: str = "base_dist", kind: Callable[..., Any] = property
) -> Any:
    """A property that is another distribution's, or another attribute of it."""

    def get(self: Any) -> Tensor:
        return getattr(getattr(self, of), name)

    get.__name__, get.__doc__ = name, doc
    return kind(get)


def same_as(name: str, doc: str | None = None) -> Any:
    """A property that is another attribute, as a mean that is loc."""

    def get(self: Any) -> Tensor:
        return getattr(self, name)

    get.__doc__ = doc
    return property(get)


def positive(*names: str) -> dict[str, Any]:
    """arg_constraints for parameters that have to be positive."""
    return dict.fromkeys(names, constraints.positive)


_publish(__name__)
