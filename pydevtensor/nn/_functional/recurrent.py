"""Layers of recurrent networks: one node of the graph for all steps of a direction."""

from __future__ import annotations

from typing import Any

from pydevtensor import _C
from pydevtensor._autocast import cast, is_cast
from pydevtensor.autograd import Function, enable_grad, grad
from pydevtensor.nn import functional as F
from pydevtensor.nn._functional.dropout import dropout

# Rows of csrc/ops/rnn.def; the gradient of a row is 4 rows later.
TANH, RELU, LSTM, GRU = range(4)
_BACKWARD = 4
GATES = {TANH: 1, RELU: 1, LSTM: 4, GRU: 3}
# The last operation of a step that is composed of others, as PyTorch's are.
_NODES = {TANH: "TanhBackward0", RELU: "ReluBackward0"}
_NODES |= {LSTM: "MulBackward0", GRU: "AddBackward0"}
_HALVES = _C.float16, _C.bfloat16


def run(
    kind: int,
    x: Any,
    state: Any,
    weights: Any,
    sizes: Any,
    reverse: bool = False,
    stepwise: bool = False,
) -> tuple[Any, ...]:
    """Run one direction of a layer; returns all steps' results and the last state.

    x is [rows, inputs]: the rows of step 0, then those of step 1, ...; step t has
    sizes[t] of them, no more than the step before. state is (h,), or (h, c) of an
    LSTM; weights are those of the input and of h, their two biases or None, and of an
    LSTM with projections weight_hr. stepwise: PyTorch computes it step by step, which
    matters to the types of an LSTM's results under autocast.
    """
    if is_cast(x):
        return _in_autocast(kind, x, state, weights, sizes, reverse, stepwise)
    empty = not x.numel() or not state[0].numel()
    composes = empty or len(weights) > 4 or x.is_complex()
    if x.dtype in _HALVES and (composes or not x.is_cuda):
        return _rounded_once(run, kind, x, state, weights, sizes, reverse)
    if composes:
        return composed(kind, x, state, weights, sizes, reverse)
    state = (*state, None) if len(state) == 1 else state
    results = _Recurrence.apply(kind, tuple(sizes), reverse, x, *state, *weights)
    _C._named(results[0], _NODES[kind])
    return results[: 3 if kind == LSTM else 2]


def _rounded_once(
    body: Any,
    kind: int,
    x: Any,
    state: Any,
    weights: Any,
    sizes: Any,
    reverse: bool,
) -> tuple[Any, ...]:
    """run() or composed() of 16-bit operands, in float32."""
    wide = [None if w is None else w.float() for w in weights]
    results = body(kind, x.float(), [s.float() for s in state], wide, sizes, reverse)
    return tuple(r.to(x.dtype) for r in results)


def run_layers(
    kind: int,
    x: Any,
    states: list[Any],
    weights: list[Any],
    sizes: Any,
    directions: int,
    dropped: float = 0.0,
    packed: bool = False,
) -> tuple[Any, ...]:
    """Run layers, one on another's results; returns the last one's, and the states.

    x and sizes as in run(); states: (h,) or (h, c), a row for each layer and direction;
    weights: run()'s for each layer and direction; dropped: the probability of dropout
    between layers.
    """
    if x.is_cuda and is_cast(x):
        x, *states = cast([x, *states], "cuda", _C._autocast_state("cuda")[1])
    starts = [state.unbind(0) for state in states]
    ends: list[list[Any]] = [[] for _ in states]
    for at in range(0, len(weights), directions):
        if at and dropped:
            x = dropout(x, dropped)
        results = []
        for direction in range(directions):
            state = [start[at + direction] for start in starts]
            own = weights[at + direction]
            y, *last = run(kind, x, state, own, sizes, direction == 1, packed)
            results.append(y)
            for end, value in zip(ends, last, strict=True):
                end.append(value)
        x = results[0] if directions == 1 else _C.cat(results, 1)
    return x, [_C.stack(end) for end in ends]


def _in_autocast(
    kind: int,
    x: Any,
    state: Any,
    weights: Any,
    sizes: Any,
    reverse: bool,
    stepwise: bool,
) -> tuple[Any, ...]:
    """run() of the operands in the lower type; on the CPU with steps in float32.

    On a GPU all results are of the lower type. On the CPU PyTorch casts the products
    alone, so a state of float32 that is added to them stays float32.
    """
    device_type = x.device.type
    lower = _C._autocast_state(device_type)[1]
    if device_type == "cpu" and len(weights) > 4:
        return composed(kind, x, state, weights, sizes, reverse)
    fused = not stepwise and x.dtype in (_C.float32, lower)
    added = kind == GRU or (kind == LSTM and not fused)
    given = lower
    if device_type == "cpu" and added:
        given = _C.promote_types(lower, state[-1].dtype)
    _C._autocast_state(device_type, False, lower)
    try:
        operands = [cast([x, *weights], device_type, lower)]
        operands.append(cast([*state], device_type, given))
        if device_type == "cpu":
            operands = cast(operands, device_type, _C.float32)
        (x, *weights), state = operands
        results = run(kind, x, state, weights, sizes, reverse)
        return tuple(result.to(given) for result in results)
    finally:
        _C._autocast_state(device_type, True, lower)


def zeros(x: Any, *shape: int) -> Any:
    """A state of zeros for the input x; on a GPU of the type that autocast gives it."""
    lower = x.is_cuda and is_cast(x)
    return x.new_zeros(shape, dtype=_C._autocast_state("cuda")[1] if lower else x.dtype)


def may_meet(first: Any, second: Any) -> bool:
    """Whether a layer takes both: of one type, or cast to one by autocast."""
    return first.dtype == second.dtype or (is_cast(first) and is_cast(second))


def composed(
    kind: int, x: Any, state: Any, weights: Any, sizes: Any, reverse: bool = False
) -> tuple[Any, ...]:
    """The same, composed of operations for each step, which have all derivatives."""
    w_ih, w_hh, b_ih, b_hh, *projection = weights
    steps = F.linear(x, w_ih, b_ih).split([*sizes])
    start, state = state, [s[:0] for s in state]
    results: list[Any] = [None] * len(steps)
    order = range(len(steps))
    for t in reversed(order) if reverse else order:
        rows = sizes[t]
        if len(state[0]) < rows:
            # Sequences that begin here.
            state = [
                _C.cat([s, s0[len(s) : rows]])
                for s, s0 in zip(state, start, strict=True)
            ]
        ended = [s[rows:] for s in state]
        products = F.linear(state[0][:rows], w_hh, b_hh)
        state = _cell(kind, steps[t], products, [s[:rows] for s in state])
        for w_hr in projection:
            state[0] = F.linear(state[0], w_hr)
        results[t] = state[0]
        state = [
            _C.cat([s, e]) if len(e) else s for s, e in zip(state, ended, strict=True)
        ]
    return (_C.cat(results), *state)


def _cell(kind: int, gates: Any, products: Any, state: Any) -> list[Any]:
    h, width = state[0], state[-1].shape[1]
    if kind == LSTM:
        i, f, g, o = (gates + products).split(width, 1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return [o.sigmoid() * c.tanh(), c]
    if kind == GRU:
        r, z, n = gates.split(width, 1)
        hr, hz, hn = products.split(width, 1)
        n = (n + (r + hr).sigmoid() * hn).tanh()
        return [(h - n) * (z + hz).sigmoid() + n]
    total = gates + products
    return [total.tanh() if kind == TANH else total.relu()]


def _own(t: Any) -> Any:
    return t.clone(memory_format=_C.contiguous_format)


class _OfLayer:
    """Float32 products within are as exact as backends.cudnn.allow_tf32 says."""

    def __enter__(self) -> None:
        _C._products_are_recurrent(True)

    def __exit__(self, *_: object) -> None:
        _C._products_are_recurrent(False)


class _Recurrence(Function):
    """composed(), with the steps in one call and gradients of all steps as products."""

    @staticmethod
    def forward(
        ctx: Any,
        kind: int,
        sizes: tuple[Any, ...],
        reverse: bool,
        x: Any,
        h: Any,
        c: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any,
        b_hh: Any,
    ) -> tuple[Any, ...]:
        weight, bias = w_hh.contiguous(), b_ih
        if kind != GRU and b_ih is not None:
            bias = b_ih + b_hh
        with _OfLayer():
            gates = F.linear(x, w_ih, bias)
        h_n = _own(h)
        y = gates.new_empty((gates.shape[0], h.shape[1]))
        before = _C.empty_like(y)
        if kind == LSTM:
            c_n = _own(c)
            kept = [gates, _C.empty_like(y)]
            operands = [gates, h_n, c_n, y, before, kept[1]]
            results: tuple[Any, ...] = y, h_n, c_n
        elif kind == GRU:
            kept = [gates, _C.empty_like(y)]
            if b_hh is None:
                b_hh = gates.new_zeros(weight.shape[:1])
            hidden = gates.new_empty((len(h), weight.shape[0]))
            bias = b_hh.contiguous()
            operands = [hidden, h_n, gates, bias, y, before, kept[1]]
            results = y, h_n
        else:
            kept = [y]
            operands = [gates, h_n, y, before]
            results = y, h_n
        _C._rnn_steps(kind, [*operands, weight], sizes, reverse)
        ctx.options = kind, sizes, reverse
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, h, c, w_ih, w_hh, b_ih, b_hh, before, *kept)
        return results

    @staticmethod
    def backward(ctx: Any, dy: Any, dh: Any, dc: Any = None) -> tuple[Any, ...]:
        kind, sizes, reverse = ctx.options
        x, h, c, w_ih, w_hh, b_ih, b_hh, before, *kept = ctx.saved_tensors
        wants = ctx.needs_input_grad[3:]
        if _C.is_grad_enabled():
            inputs = [x, h, c, w_ih, w_hh, b_ih, b_hh]
            return (None,) * 3 + _composed_gradients(ctx, inputs, wants, [dy, dh, dc])
        width = h.shape[1]
        dy = before.new_zeros(before.shape) if dy is None else dy.contiguous()
        dstate = [
            h.new_zeros(h.shape) if d is None else _own(d)
            for d in ([dh, dc] if kind == LSTM else [dh])
        ]
        dgates = before.new_empty((len(before), GATES[kind] * width))
        dhidden = dgates
        if kind == LSTM:
            operands = [dgates, *dstate, dy, *kept]
        elif kind == GRU:
            dhidden = _C.empty_like(dgates)
            operands = [dhidden, *dstate, dgates, dy, kept[0], before, kept[1]]
        else:
            operands = [dgates, *dstate, dy, *kept]
        # Backward, the last step is the first.
        operands.append(w_hh.contiguous())
        _C._rnn_steps(kind + _BACKWARD, operands, sizes, not reverse)
        bias = dgates.sum(0) if wants[5] or wants[6] else None
        with _OfLayer():
            dx = dgates @ w_ih if wants[0] else None
            dw_ih = dgates.t() @ x if wants[3] else None
            dw_hh = dhidden.t() @ before if wants[4] else None
        return (
            *(None, None, None),
            dx,
            dstate[0],
            dstate[1] if kind == LSTM else None,
            dw_ih,
            dw_hh,
            bias if wants[5] else None,
            (dhidden.sum(0) if kind == GRU else bias) if wants[6] else None,
        )


def _composed_gradients(
    ctx: Any, inputs: list[Any], wants: Any, grads: list[Any]
) -> tuple[Any, ...]:
    """The gradients of composed(), recorded for higher derivatives."""
    kind, sizes, reverse = ctx.options
    with enable_grad():
        # Views, so that a tensor given twice counts as two.
        own = [t.view_as(t) if w else t for t, w in zip(inputs, wants, strict=True)]
        state = own[1:3] if kind == LSTM else own[1:2]
        given = kind, own[0], state, own[3:], sizes, reverse
        half = own[0].dtype in _HALVES
        results = _rounded_once(composed, *given) if half else composed(*given)
    pairs = [(r, g) for r, g in zip(results, grads, strict=False) if g is not None]
    found = iter(
        grad(
            [r for r, _ in pairs],
            [t for t, w in zip(own, wants, strict=True) if w],
            [g for _, g in pairs],
            create_graph=True,
            allow_unused=True,
        )
    )
    return tuple(next(found) if w else None for w in wants)
