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
    composes = empty or x.is_complex()
    if x.dtype in _HALVES and (composes or not x.is_cuda):
        return _rounded_once(run, kind, x, state, weights, sizes, reverse)
    if composes:
        return composed(kind, x, state, weights, sizes, reverse)
    if len(weights) > 4:
        results = _Projected.apply(kind, tuple(sizes), reverse, x, *state, *weights)
        _C._named(results[0], "MmBackward0")
        return results
    state = (*state, None) if len(state) == 1 else state
    results = _Recurrence.apply(kind, tuple(sizes), reverse, x, *state, *weights)
    _C._named(results[0], _NODES[kind])
    return results[: 3 if kind == LSTM else 2]


def _rounded_once(
    body: Any, kind: int, x: Any, state: Any, weights: Any, *steps: Any
) -> tuple[Any, ...]:
    """run() or composed() of 16-bit operands, in float32."""
    wide = [None if w is None else w.float() for w in weights]
    results = body(kind, x.float(), [s.float() for s in state], wide, *steps)
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
        ctx: Any, kind: int, sizes: tuple[Any, ...], reverse: bool, *inputs: Any
    ) -> tuple[Any, ...]:
        x, h, c, w_ih, w_hh, b_ih, b_hh = inputs
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
        ctx.save_for_backward(*inputs, before, *kept)
        return results

    @staticmethod
    def backward(ctx: Any, dy: Any, dh: Any, dc: Any = None) -> tuple[Any, ...]:
        kind, sizes, reverse = ctx.options
        *inputs, before = ctx.saved_tensors[:8]
        kept, wants = ctx.saved_tensors[8:], ctx.needs_input_grad[3:]
        if _C.is_grad_enabled():
            return _composed_gradients(ctx, inputs, wants, [dy, dh, dc])
        h, w_hh = inputs[1], inputs[4]
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
        dstate += [None] * (kind != LSTM)
        of = _of_products(inputs, wants, dgates, dhidden, before)
        return (*(None, None, None), of[0], *dstate, *of[1:])


def _of_products(
    inputs: Any, wants: Any, dgates: Any, dhidden: Any, before: Any
) -> list[Any]:
    """Gradients of x, of two weights and of two biases.

    dgates and dhidden are the products' gradients; before has all steps' states.
    """
    x, w_ih, same = inputs[0], inputs[3], dhidden is dgates
    bias = dgates.sum(0) if wants[5] or (same and wants[6]) else None
    with _OfLayer():
        return [
            dgates @ w_ih if wants[0] else None,
            dgates.t() @ x if wants[3] else None,
            dhidden.t() @ before if wants[4] else None,
            bias if wants[5] else None,
            (bias if same else dhidden.sum(0)) if wants[6] else None,
        ]


def _ends(y: Any, sizes: Any, reverse: bool) -> list[Any]:
    """Views of the rows of y after which sequences end, in the order of these."""
    if reverse or sizes[0] == sizes[-1]:
        return [y[: sizes[0]] if reverse else y[-sizes[0] :]]
    steps = zip(y.split([*sizes]), [*sizes[1:], 0], strict=True)
    return [step[rows:] for step, rows in steps if len(step) > rows][::-1]


def _starts(y: Any, h: Any, sizes: Any, reverse: bool) -> Any:
    """The states before all steps: rows of y, and h where a sequence begins."""
    if sizes[0] == sizes[-1]:
        rows = len(y) - len(h)
        return _C.cat([y[len(h) :], h] if reverse else [h, y[:rows]])
    steps = y.split([*sizes])
    if not reverse:
        parts = [step[:rows] for step, rows in zip(steps, sizes[1:], strict=False)]
        return _C.cat([h, *parts])
    parts = []
    for rows, step in zip(sizes, steps[1:], strict=False):
        parts += [step, h[len(step) : rows]]
    return _C.cat([*parts, h[: sizes[-1]]])


class _Projected(Function):
    """_Recurrence of an LSTM whose states are projected."""

    @staticmethod
    def forward(
        ctx: Any, kind: int, sizes: tuple[Any, ...], reverse: bool, *inputs: Any
    ) -> tuple[Any, ...]:
        x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr = inputs
        with _OfLayer():
            gates = F.linear(x, w_ih, None if b_ih is None else b_ih + b_hh)
        c_n = _own(c)
        wide = gates.new_empty((len(gates), c.shape[1]))
        c_before = _C.empty_like(wide)
        y = gates.new_empty((len(gates), h.shape[1]))
        # The states before their projection, which no step reads, end in `wide` too.
        operands = [gates, _C.zeros_like(c_n), c_n, wide, wide, c_before]
        operands += [w.contiguous() for w in (w_hh, w_hr)]
        _C._rnn_steps(kind, [*operands, y, h.contiguous()], sizes, reverse)
        ctx.options = kind, sizes, reverse
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, y, wide, gates, c_before)
        return y, _C.cat(_ends(y, sizes, reverse)), c_n

    @staticmethod
    def backward(ctx: Any, dy: Any, dh: Any, dc: Any) -> tuple[Any, ...]:
        kind, sizes, reverse = ctx.options
        *inputs, y, wide, gates, c_before = ctx.saved_tensors
        wants = ctx.needs_input_grad[3:]
        if _C.is_grad_enabled():
            return _composed_gradients(ctx, inputs, wants, [dy, dh, dc])
        _, h, c, _, w_hh, _, _, w_hr = inputs
        dy = y.new_zeros(y.shape) if dy is None else _own(dy)
        if dh is not None:
            ends = _ends(dy, sizes, reverse)
            parts = dh.split([len(end) for end in ends])
            for end, part in zip(ends, parts, strict=True):
                end.add_(part)
        dc = c.new_zeros(c.shape) if dc is None else _own(dc)
        dstart = h.new_empty(h.shape)
        dgates, dwide = _C.empty_like(gates), _C.empty_like(wide)
        # The gradient of a state is in that of the results before the step.
        operands = [dgates, _C.zeros_like(dc), dc, dwide, gates, c_before]
        operands += [w.contiguous() for w in (w_hh, w_hr)]
        _C._rnn_steps(kind + _BACKWARD, [*operands, dy, dstart], sizes, not reverse)
        before = _starts(y, h, sizes, reverse) if wants[4] else None
        of = _of_products(inputs, wants, dgates, dgates, before)
        with _OfLayer():
            dw_hr = dy.t() @ wide if wants[7] else None
        return (*(None, None, None), of[0], dstart, dc, *of[1:], dw_hr)


def _composed_gradients(
    ctx: Any, inputs: list[Any], wants: Any, grads: list[Any]
) -> tuple[Any, ...]:
    """The gradients of composed(), recorded for higher derivatives, after 3 None."""
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
    return (None,) * 3 + tuple(next(found) if w else None for w in wants)
