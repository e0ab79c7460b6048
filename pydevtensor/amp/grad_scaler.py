"""GradScaler: gradients in float16 without underflow."""

from __future__ import annotations

import itertools
from typing import Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish
from pydevtensor.autograd import no_grad
from pydevtensor.autograd._gradients import writable

__all__ = ["GradScaler"]

_READY, _UNSCALED, _STEPPED = range(3)


class _Found:
    """Whether gradients were infinite or NaN: a flag on each device, read once."""

    def __init__(self, flags: list[Any]) -> None:
        self.flags = flags
        self._answer: bool | None = None

    def __bool__(self) -> bool:
        if self._answer is None:
            self._answer = any(bool(flag) for flag in self.flags)
        return self._answer


class GradScaler:
    """Scales losses, so that small gradients do not become 0 in float16.

    scale(loss).backward(), step(optimizer) and update() take the place of
    loss.backward() and optimizer.step(). step() divides the gradients by the scale
    again, and leaves the step out where one is infinite or NaN. update() then
    multiplies the scale by backoff_factor; after growth_interval steps without, by
    growth_factor. Ranks that have parts of the parameters leave out the same steps.

    With enabled=False it does nothing but pass on.

    device      'cuda' or 'cpu'
    init_scale  the first factor

    >>> net = nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)
    >>> scaler.scale(net(torch.ones(3, 2)).sum()).backward()
    >>> net.bias.grad
    tensor([3072.])
    >>> _ = scaler.step(optimizer)
    >>> scaler.update()
    >>> net.bias.grad, scaler.get_scale()
    (tensor([3.]), 1024.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled and (device != "cuda" or _C._device_count("cuda") > 0)
        if self._enabled:
            self._need(growth_factor > 1.0, "growth_factor", growth_factor, "above 1")
            self._need(
                backoff_factor < 1.0, "backoff_factor", backoff_factor, "below 1"
            )
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._scale: Any = None
        self._stages: dict[int, int] = {}
        self._found: dict[int, _Found] = {}

    @staticmethod
    def _need(right: bool, name: str, value: float, what: str) -> None:
        if not right:
            raise AssertionError(f"GradScaler: {name} is {value}; give one {what}")

    # --- scaling

    def _scale_on(self, device: Any) -> Any:
        if self._scale is None:
            self._scale = _C.full((), self._init_scale, device=device)
        return self._scale.to(device, non_blocking=True)

    def scale(self, outputs: Any) -> Any:
        """outputs, a loss or a list or tuple of them, times the scale.

        ValueError for others.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(each) for each in outputs)
        raise ValueError(
            f"scale(): outputs has a {type(outputs).__name__}; give a Tensor, or lists "
            "and tuples of them"
        )

    def _check_started(self, function: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"{function}(): the scale is not in use yet; call scale(loss) and its "
                "backward() first"
            )

    @no_grad()
    def unscale_(self, optimizer: Any) -> None:
        """Divide the optimizer's gradients by the scale, e.g. before they are clipped.

        Once between two updates, else RuntimeError; ValueError for float16 gradients,
        which come of float16 parameters.
        """
        if not self._enabled:
            return
        self._check_started("unscale_")
        if self._stages.get(id(optimizer), _READY) != _READY:
            raise RuntimeError(
                "unscale_() or step() has been called for this optimizer since the "
                "last update(); call it once in an iteration"
            )
        gradients: dict[Any, list[Any]] = {}
        shares: dict[Any, Any] = {}  # by the ranks that have the other parts, a part
        for p in itertools.chain(*(g["params"] for g in optimizer.param_groups)):
            if p.grad is None:
                continue
            gradient = writable(p)
            shares[getattr(p, "_ranks_of_norm", None)] = p
            if gradient.dtype == _C.float16:
                raise ValueError(
                    "unscale_(): a gradient is of float16; keep the parameters in "
                    "float32, and let autocast compute in float16"
                )
            gradients.setdefault(gradient.device, []).append(gradient)
        found = []
        for device, each in gradients.items():
            found.append(_C.zeros((), device=device))
            factor = self._scale_on(device).reciprocal()
            _C._update("unscale", each * 2, (), (0.0,), factor, found=found[-1])
        for ranks, p in shares.items():
            if ranks is not None:
                p._tell_ranks(found)
        self._found[id(optimizer)] = _Found(found)
        self._stages[id(optimizer)] = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients, and call optimizer.step() if all are finite.

        Returns its result, or None. Once between two updates, else RuntimeError;
        AssertionError if no parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("step(): GradScaler cannot call a closure again")
        stage = self._stages.get(id(optimizer), _READY)
        if stage == _STEPPED:
            raise RuntimeError("step() has been called since the last update()")
        if stage == _READY:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        if not found.flags:
            raise AssertionError(
                "step(): no parameter of the optimizer has a gradient; call "
                "scale(loss).backward() first"
            )
        result = None
        if not found:
            result = optimizer.step(*args, **kwargs)
        self._stages[id(optimizer)] = _STEPPED
        return result

    @no_grad()
    def update(self, new_scale: float | Any | None = None) -> None:
        """Change the scale after the steps of an iteration, or set it to new_scale.

        AssertionError if no gradient was unscaled since the last call.
        """
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is not None:
            given = _C.as_tensor(new_scale, dtype=_C.float32)
            self._scale = given.detach().clone().reshape(()).to(self._scale.device)
        else:
            if not any(each.flags for each in self._found.values()):
                raise AssertionError(
                    "update(): no gradients were unscaled since the last update(); "
                    "call step(optimizer) first"
                )
            if any(self._found.values()):
                self._scale = self._scale * self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = self._scale * self._growth_factor
                    self._scale = grown.where(grown.isfinite(), self._scale)
                    self._growth_tracker = 0
        self._stages.clear()
        self._found.clear()

    # --- values

    def get_scale(self) -> float:
        """The scale, 1.0 where it is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Factor of the scale after growth_interval steps without infinities."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set growth_factor to new_factor, above 1."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Factor of the scale after infinite gradients."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set backoff_factor to new_factor, below 1."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """The number of steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set growth_interval to new_interval, a number of steps."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, factors and counter; empty where it is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what state_dict() returned; RuntimeError if it is empty."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "load_state_dict(): the state is empty, as that of a disabled "
                "GradScaler; give one of an enabled one"
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]


_publish(__name__)
