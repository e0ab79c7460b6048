"""L-BFGS: a quasi-Newton method for few parameters and exact gradients.

The formulas are those of Nocedal and Wright, Numerical Optimization (2006): algorithm
7.4 for the direction, 3.5 and 3.6 for the line search, with cubic interpolation (3.59).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pydevtensor import _C
from pydevtensor.autograd import enable_grad, no_grad
from pydevtensor.optim._options import options_of
from pydevtensor.optim.optimizer import Optimizer, ParamsT


class LBFGS(Optimizer):
    """L-BFGS (Nocedal, 1980), a quasi-Newton method for few parameters.

    All parameters are in one group, and are copied into one vector: on a GPU, an
    iteration waits for some numbers. Raises ValueError for a negative lr and for
    several groups.

    params            Tensors, in one group
    lr                length of an iteration's move, or where the line search begins
    max_iter          iterations of a step() at most
    max_eval          calls of the closure at most; None: 5/4 of max_iter
    tolerance_grad    stop where no gradient is greater
    tolerance_change  stop where parameters and loss change by less
    history_size      how many moves are remembered
    line_search_fn    None, or "strong_wolfe" to search the length of each move;
                      RuntimeError, in step(), for another

    >>> w = nn.Parameter(torch.tensor([3.0, -2.0]))
    >>> trainer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     trainer.zero_grad()
    ...     loss = ((w - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> trainer.step(closure)
    tensor(13., grad_fn=<SumBackward0>)
    >>> w.data
    tensor([1.0000, 1.0000])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | _C.Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, options_of(locals()))
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS makes one vector of all parameters, and got "
                f"{len(self.param_groups)} groups; give one group"
            )

    def step(  # type: ignore[override]
        self, closure: Callable[[], Any]
    ) -> Any:
        """Minimize; gives the first loss.

        closure  clears the gradients, computes the loss, calls backward() and returns
                 the loss
        """
        with no_grad():
            return self._minimize(closure)

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        parameters = group["params"]
        state = self.state[parameters[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            first_loss = closure()
        loss, gradient = float(first_loss), _gradient(parameters)
        state["func_evals"] += 1
        evaluations, iterations = 1, 0
        smallest = group["tolerance_change"]
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first_loss
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction = gradient.neg()
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
                t = min(1.0, 1.0 / gradient.abs().sum()) * group["lr"]
            else:
                _remember(state, gradient, group["history_size"])
                direction = _direction(state, gradient, group["history_size"])
                t = group["lr"]
            state.update(
                d=direction, t=t, prev_flat_grad=gradient.clone(), prev_loss=loss
            )
            before, slope = loss, gradient.dot(direction)
            if slope > -smallest:
                break
            used = 0
            if group["line_search_fn"] is not None:
                line = _Line(closure, parameters, direction)
                line.tries = min(line.tries, group["max_eval"] - evaluations)
                start = _Point(0, loss, gradient, slope)
                t, loss, gradient, _ = _search(group, line, start, t)
                state["t"], used = t, line.evaluations
                _move(parameters, direction, t)
            else:
                _move(parameters, direction, t)
                if iterations != group["max_iter"]:
                    with enable_grad():
                        loss = float(closure())
                    gradient, used = _gradient(parameters), 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= group["max_eval"]
                or gradient.abs().max() <= group["tolerance_grad"]
                or (direction * t).abs().max() <= smallest
                or abs(loss - before) < smallest
            ):
                break
        return first_loss


# --- one vector of all parameters -----------------------------------------------------


def _reals(x: Any) -> Any:
    """x, or the parts of complex numbers."""
    return _C.view_as_real(x) if x.is_complex() else x


def _gradient(parameters: list[Any]) -> Any:
    grads = [_C.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    return _C.cat([_reals(g.to_dense()).reshape(-1) for g in grads], 0)


def _move(parameters: list[Any], direction: Any, t: Any) -> None:
    """Add t * direction to the parameters."""
    parameters = [_reals(p) for p in parameters]
    sizes = [p.numel() for p in parameters]
    for p, part in zip(parameters, direction.split(sizes), strict=True):
        p.add_(part.reshape(p.shape), alpha=float(t))


# --- the direction --------------------------------------------------------------------


def _remember(state: dict[Any, Any], gradient: Any, most: int) -> None:
    """Keep the last step, and the change of the gradient along it, if the loss curves
    upwards there. Of `most` steps the oldest is dropped."""
    change = gradient - state["prev_flat_grad"]
    move = state["d"] * state["t"]
    curvature = change.dot(move)
    if not curvature > 1e-10:
        return
    kept = state["old_dirs"], state["old_stps"], state["ro"]
    if most == 0:
        raise IndexError("history_size is 0; give the number of steps to remember")
    if len(state["old_dirs"]) == most:
        for each in kept:
            each.pop(0)
    for each, value in zip(kept, (change, move, 1.0 / curvature), strict=True):
        each.append(value)
    state["H_diag"] = curvature / change.dot(change)


def _direction(state: dict[Any, Any], gradient: Any, most: int) -> Any:
    """Minus the gradient times the inverse Hessian, as the kept steps tell it."""
    changes, moves, ro = state["old_dirs"], state["old_stps"], state["ro"]
    shares = state.setdefault("al", [None] * most)
    direction = gradient.neg()
    for i in reversed(range(len(changes))):
        shares[i] = moves[i].dot(direction) * ro[i]
        direction.sub_(changes[i] * shares[i])
    direction = direction * state["H_diag"]
    for i, (change, move) in enumerate(zip(changes, moves, strict=True)):
        direction.add_(move * (shares[i] - change.dot(direction) * ro[i]))
    return direction


# --- the line search ------------------------------------------------------------------


class _Point(NamedTuple):
    """A point on the line: the length t, and what was found there. The slope is the
    derivative of the loss by t."""

    t: Any
    loss: float
    gradient: Any
    slope: Any


class _Line:
    """The loss along a direction, from where the parameters are."""

    def __init__(
        self, closure: Callable[..., Any], parameters: list[Any], direction: Any
    ) -> None:
        self.closure = closure
        self.parameters = parameters
        self.start = [p.clone() for p in parameters]
        self.direction = direction
        self.evaluations = 0
        self.tries = 25  # the most evaluations after the first

    def at(self, t: Any) -> _Point:
        _move(self.parameters, self.direction, t)
        with enable_grad():
            loss = float(self.closure())
        gradient = _gradient(self.parameters)
        for p, start in zip(self.parameters, self.start, strict=True):
            p.copy_(start)
        self.evaluations += 1
        return _Point(t, loss, gradient, gradient.dot(self.direction))


def _search(group: dict[Any, Any], line: _Line, start: _Point, t: Any) -> _Point:
    if group["line_search_fn"] != "strong_wolfe":
        raise RuntimeError(
            f"line_search_fn is {group['line_search_fn']!r}; give 'strong_wolfe' or "
            "None"
        )
    return _strong_wolfe(line, start, t, group["tolerance_change"])


_DECREASE = 1e-4  # how much of the slope at the start the loss has to fall by
_CURVATURE = 0.9  # how much of it the slope may still be


def _strong_wolfe(line: _Line, start: _Point, t: Any, smallest: float) -> _Point:
    """A point that satisfies the strong Wolfe conditions, or the best one found."""
    width = line.direction.abs().max()

    def is_high(p: _Point) -> Any:
        return p.loss > start.loss + _DECREASE * p.t * start.slope

    def is_flat(p: _Point) -> Any:
        return abs(p.slope) <= -_CURVATURE * start.slope

    # Longer and longer steps, until a minimum is between the last two.
    last, here = start, line.at(t)
    bracket = None
    while line.evaluations <= line.tries:
        is_later = line.evaluations > 2
        if is_high(here) or (is_later and here.loss >= last.loss):
            bracket = [last, here]
            break
        if is_flat(here):
            return here
        if here.slope >= 0:
            bracket = [last, here]
            break
        least, most = here.t + 0.01 * (here.t - last.t), here.t * 10
        t = _minimum_of_cubic(last, here, least, most)
        last, here = here, line.at(t)
    if bracket is None:
        bracket = [start, here]

    # A smaller and smaller bracket around it.
    low = _lower(bracket)
    is_slow = False
    while line.evaluations <= line.tries:
        a, b = bracket
        if abs(b.t - a.t) * width < smallest:
            break
        first, end = min(a.t, b.t), max(a.t, b.t)
        t = _minimum_of_cubic(a, b, first, end)
        # Close to an end twice in a row, or beyond it: a tenth of the way inside.
        margin = 0.1 * (end - first)
        is_close = min(end - t, t - first) < margin
        if is_close and (is_slow or t >= end or t <= first):
            t = end - margin if abs(t - end) < abs(t - first) else first + margin
            is_close = False
        is_slow = is_close
        here = line.at(t)
        if is_high(here) or here.loss >= bracket[low].loss:
            bracket[1 - low] = here
            low = _lower(bracket)
            continue
        done = is_flat(here)
        if not done and here.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = here
        if done:
            break
    return bracket[low]


def _lower(bracket: list[_Point]) -> int:
    return 0 if bracket[0].loss <= bracket[1].loss else 1


def _minimum_of_cubic(a: _Point, b: _Point, least: Any, most: Any) -> Any:
    """Where the cubic through two points with their slopes is least, between bounds;
    their middle, where it has no minimum."""
    if a.t > b.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2.0
    d2 = square.sqrt()
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(t, least), most)
