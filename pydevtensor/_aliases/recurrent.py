"""Recurrent layers and cells as functions of their parameters, in lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor._functions.checks import same_device
from pydevtensor.nn._functional import recurrent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydevtensor._functions.types import Tensor


def _meet(x, others):
    """Raise where tensors are on two devices, or of types that do not meet."""
    for other in others:
        if not isinstance(other, _C.Tensor):
            raise TypeError(
                f"an element of a list is of type {type(other).__name__}; give Tensors"
            )
        same_device(x, other)
        if not recurrent.may_meet(x, other):
            raise RuntimeError(
                f"the input is of type {x.dtype}, and a state or a parameter of "
                f"{other.dtype}; convert one of them"
            )


def _fits(what, tensor, *wanted):
    if tensor.shape != wanted:
        raise RuntimeError(
            f"{what} has shape {[*tensor.shape]}; for the other arguments it has to be "
            f"{[*wanted]}"
        )


def _weights(params, layers, directions, has_biases, projected):
    """For each layer and direction the matrices, biases or None, and a projection."""
    each = 2 + 2 * has_biases + projected
    if layers < 1 or len(params) != layers * directions * each:
        raise RuntimeError(
            f"there are {len(params)} parameters; give {each} for each of {layers} "
            f"layers and {directions} directions"
        )
    none = [] if has_biases else [None, None]
    groups = [params[at : at + each] for at in range(0, len(params), each)]
    return [[*group[:2], *none, *group[2:]] for group in groups]


def _check_weights(kind, weights, inputs, directions):
    """Raise where shapes do not fit; return the sizes of the states."""
    rows, results = weights[0][1].shape if weights[0][1].ndim == 2 else (0, 0)
    hidden = rows // recurrent.GATES[kind]
    if not hidden:
        raise RuntimeError(
            f"a matrix of the state has shape {[*weights[0][1].shape]}; give (gates * "
            "hidden size, size of the state)"
        )
    for at, (w_ih, w_hh, b_ih, b_hh, *projection) in enumerate(weights):
        before = inputs if at < directions else results * directions
        wide = recurrent.GATES[kind] * hidden
        _fits("a matrix of the input", w_ih, wide, before)
        _fits("a matrix of the state", w_hh, wide, results)
        for bias in (b_ih, b_hh):
            if bias is not None:
                _fits("a bias", bias, wide)
        for matrix in projection:
            _fits("a projection", matrix, results, hidden)
    if not weights[0][4:] and results != hidden:
        raise RuntimeError(
            f"a matrix of the state has {rows} rows and {results} columns; give "
            f"{recurrent.GATES[kind]} times as many rows"
        )
    return [results, hidden] if kind == recurrent.LSTM else [results]


def _check_options(kind, hx, params, flags, layers, dropout):
    if not isinstance(params, (list, tuple)):
        raise TypeError(
            f"params is of type {type(params).__name__}; give a list of Tensors"
        )
    for value in flags:
        if not isinstance(value, bool):
            raise TypeError(f"an option is {value!r}; give True or False")
    if not isinstance(layers, int) or not isinstance(dropout, (int, float)):
        raise TypeError(
            f"num_layers is {layers!r} and dropout {dropout!r}; give an int and a float"
        )
    if not isinstance(hx, (list, tuple) if kind == recurrent.LSTM else _C.Tensor):
        raise TypeError(
            f"hx is of type {type(hx).__name__}; give a Tensor, or for lstm() a list "
            "of two"
        )


def _as_rows(x, batch_sizes, batch_first):
    """The elements of all steps below each other, and how many each step has."""
    packed = batch_sizes is not None
    if x.ndim != (2 if packed else 3):
        raise (RuntimeError if packed else IndexError)(
            f"the input has shape {[*x.shape]}; give (L, N, features), or with "
            "batch_sizes (rows, features)"
        )
    if packed:
        sizes = batch_sizes.tolist()
        if sum(sizes) != len(x) or not sizes:
            raise RuntimeError(
                f"batch_sizes sum to {sum(sizes)}, and there are {len(x)} rows; pack "
                "with nn.utils.rnn.pack_padded_sequence()"
            )
        return x, sizes
    steps = x.transpose(0, 1) if batch_first else x
    if not len(steps):
        raise RuntimeError(
            f"the input of shape {[*x.shape]} has no steps; give one or more"
        )
    count, features = steps.shape[1:]
    rows = steps.reshape(-1, features) if x.numel() else x.new_empty(0, features)
    return rows, [count] * len(steps)


def _layers(
    kind: int,
    /,
    input: Tensor,
    hx: Any,
    params: Any,
    has_biases: Any,
    num_layers: Any,
    dropout: Any,
    train: Any,
    bidirectional: Any,
    batch_first: Any,
) -> tuple[Tensor, ...]:
    """The results of all steps and the last states, by the arguments of lstm()."""
    batch_sizes: Any = None
    options = [has_biases, num_layers, dropout, train, bidirectional]
    # In place of the states there are batch_sizes.
    if not isinstance(hx if kind == recurrent.LSTM else params, (list, tuple)):
        # (data, batch_sizes, hx, params, ...), and no batch_first.
        batch_sizes, hx, params, *options = hx, params, *options, batch_first
        batch_first = False
    has_biases, layers, dropout, train, bidirectional = options
    flags = has_biases, train, bidirectional, batch_first
    _check_options(kind, hx, params, flags, layers, dropout)
    states: list[Any] = [*hx] if kind == recurrent.LSTM else [hx]
    _meet(input, (*states, *params))
    directions = 1 + bidirectional
    # Without projections the states are as wide as an LSTM's second.
    projected = (
        kind == recurrent.LSTM
        and len(states) == 2
        and states[0].shape[-1:] != states[1].shape[-1:]
    )
    weights = _weights(params, layers, directions, has_biases, projected)
    x, sizes = _as_rows(input, batch_sizes, batch_first)
    wanted = _check_weights(kind, weights, x.shape[1], directions)
    if len(states) != len(wanted):
        raise RuntimeError(f"hx has {len(states)} states; give {len(wanted)}")
    for state, size in zip(states, wanted, strict=True):
        _fits("a state", state, layers * directions, sizes[0], size)
    packed, dropped = batch_sizes is not None, dropout if train else 0.0
    y, last = recurrent.run_layers(
        kind, x, states, weights, sizes, directions, dropped, packed
    )
    if not packed:
        y = y.reshape(len(sizes), sizes[0], y.shape[1])
        y = y.transpose(0, 1) if batch_first else y
    return (y, *last)


@function(like="_layers", given=(recurrent.LSTM,))
def lstm() -> tuple[Tensor, Tensor, Tensor]:
    """nn.LSTM as a function: the results, the last hidden and the last cell states.

    input (L, N, features), or (N, L, features) with batch_first; hx: the states h and
    c, (layers * directions, N, size); params: of each layer and direction the matrices
    of input and state, their biases if has_biases, and the projection if h is of
    another size than c. Or the rows of a PackedSequence: lstm(data, batch_sizes, hx,
    params, has_biases, num_layers, dropout, train, bidirectional). RuntimeError for
    shapes and types that do not fit.

    num_layers     number of stacked layers
    dropout        probability of an element between two layers to be zeroed, if train
                   is true
    bidirectional  each layer also runs from the last step to the first; results are
                   side by side

    >>> state, weights = torch.zeros(1, 2, 4), [torch.ones(16, 3), torch.ones(16, 4)]
    >>> x = torch.ones(5, 2, 3)
    >>> y, h, c = torch.lstm(x, [state, state], weights, False, 1, 0.0, False, False, False)
    >>> y.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """  # noqa: E501


@function(like="lstm", given=(recurrent.GRU,))
def gru() -> tuple[Tensor, Tensor]:
    """As lstm(), for nn.GRU: the results and the last states.

    hx is one Tensor, (layers * directions, N, size).

    >>> state, weights = torch.zeros(1, 2, 4), [torch.ones(12, 3), torch.ones(12, 4)]
    >>> x = torch.ones(5, 2, 3)
    >>> y, h = torch.gru(x, state, weights, False, 1, 0.0, False, False, False)
    >>> y.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """


@function(like="lstm", given=(recurrent.TANH,))
def rnn_tanh() -> tuple[Tensor, Tensor]:
    """As lstm(), for nn.RNN: the results and the last states.

    hx is one Tensor, (layers * directions, N, size).

    >>> state, weights = torch.zeros(1, 2, 4), [torch.ones(4, 3), torch.ones(4, 4)]
    >>> x = torch.ones(5, 2, 3)
    >>> y, h = torch.rnn_tanh(x, state, weights, False, 1, 0.0, False, False, False)
    >>> y.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """


@function(like="lstm", given=(recurrent.RELU,))
def rnn_relu() -> tuple[Tensor, Tensor]:
    """As rnn_tanh(), for nn.RNN with relu.

    >>> state, weights = torch.zeros(1, 2, 4), [torch.ones(4, 3), torch.ones(4, 4)]
    >>> x = torch.ones(1, 2, 3)
    >>> y, h = torch.rnn_relu(x, state, weights, False, 1, 0.0, False, False, False)
    >>> y[0, 0]
    tensor([3., 3., 3., 3.])
    """


# --- cells ---


def _step(kind, x, states, w_ih, w_hh, b_ih=None, b_hh=None):
    if (b_ih is None) != (b_hh is None):
        raise RuntimeError("one of the biases is None; give both or none")
    weights = [w_ih, w_hh, b_ih, b_hh]
    _meet(x, (*states, *(w for w in weights if w is not None)))
    if x.ndim != 2:
        raise RuntimeError(f"the input has shape {[*x.shape]}; give (N, features)")
    for state, size in zip(
        states, _check_weights(kind, [weights], x.shape[1], 1), strict=True
    ):
        _fits("a state", state, len(x), size)
    _, *after = recurrent.run(kind, x, states, weights, [len(x)], stepwise=True)
    return after


def _cell(
    kind: int,
    /,
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    return _step(kind, input, [hx], w_ih, w_hh, b_ih, b_hh)[0]


@function()
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """nn.LSTMCell as a function: the states after a step, of states hx = (h, c).

    input (N, features), states (N, size). RuntimeError for shapes and types that do
    not fit.

    w_ih, w_hh  matrices for input and h, (4 * size, features) and (4 * size, size)
    b_ih, b_hh  vectors of 4 * size elements, or both None

    >>> state = torch.zeros(2, 4)
    >>> w_ih, w_hh = torch.ones(16, 3), torch.ones(16, 4)
    >>> h, c = torch.lstm_cell(torch.ones(2, 3), [state, state], w_ih, w_hh)
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """
    if not isinstance(hx, (list, tuple)) or len(hx) != 2:
        raise RuntimeError("hx has to be a list of two Tensors, h and c")
    h, c = _step(recurrent.LSTM, input, [*hx], w_ih, w_hh, b_ih, b_hh)
    return h, c


@function(like="_cell", given=(recurrent.GRU,))
def gru_cell() -> Tensor:
    """As lstm_cell(), for nn.GRUCell: the state after a step.

    hx is one Tensor, (N, size); the matrices have 3 * size rows.

    >>> w_ih, w_hh = torch.ones(12, 3), torch.ones(12, 4)
    >>> torch.gru_cell(torch.ones(2, 3), torch.zeros(2, 4), w_ih, w_hh).shape
    torch.Size([2, 4])
    """


@function(like="gru_cell", given=(recurrent.TANH,))
def rnn_tanh_cell() -> Tensor:
    """As lstm_cell(), for nn.RNNCell: the state after a step.

    hx is one Tensor, (N, size); the matrices have size rows.

    >>> w_ih, w_hh = torch.ones(4, 3), torch.ones(4, 4)
    >>> torch.rnn_tanh_cell(torch.ones(2, 3), torch.zeros(2, 4), w_ih, w_hh).shape
    torch.Size([2, 4])
    """


@function(like="gru_cell", given=(recurrent.RELU,))
def rnn_relu_cell() -> Tensor:
    """As rnn_tanh_cell(), for nn.RNNCell with relu.

    >>> w_ih, w_hh = torch.ones(1, 3), torch.ones(1, 1)
    >>> torch.rnn_relu_cell(torch.ones(1, 3), torch.ones(1, 1), w_ih, w_hh)
    tensor([[4.]])
    """
