"""Recurrent layers; their cells are in _rnn_cells.py."""

from __future__ import annotations

import warnings
from typing import Any

from pydevtensor import _C
from pydevtensor._names import give
from pydevtensor.nn._functional import recurrent
from pydevtensor.nn.modules._layer import Parametrized
from pydevtensor.nn.modules._rnn_cells import (
    GRUCell,
    LSTMCell,
    RNNCell,
    RNNCellBase,
    check_home,
    check_tensor,
    start_uniform,
)
from pydevtensor.nn.modules.module import Module
from pydevtensor.nn.parameter import Parameter
from pydevtensor.nn.utils.rnn import PackedSequence

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "GRUCell",
    "LSTMCell",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
]

_KINDS = {
    "RNN_TANH": recurrent.TANH,
    "RNN_RELU": recurrent.RELU,
    "LSTM": recurrent.LSTM,
    "GRU": recurrent.GRU,
}


class RNNBase(Parametrized):
    """Base of RNN, LSTM and GRU, which a program uses in its place.

    TypeError for sizes that are not ints, ValueError for those out of range.

    mode           'RNN_TANH', 'RNN_RELU', 'LSTM' or 'GRU'
    input_size     features of the input
    hidden_size    features of a state
    num_layers     layers, each with the rows of the one before
    bias           whether there are biases
    batch_first    take (N, L, features) in place of (L, N, features)
    dropout        probability of dropout between layers, in training; one layer has
                   none
    bidirectional  also run backwards; the features are joined
    proj_size      features that an LSTM's state is projected to; 0: none
    device, dtype  of the parameters

    >>> isinstance(nn.GRU(2, 3), nn.RNNBase)
    True
    """

    _spent = ("device", "dtype")
    _mode = ""  # of the class

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        Module.__init__(self)
        sizes = {"input_size": input_size, "hidden_size": hidden_size}
        for name, size in {**sizes, "num_layers": num_layers}.items():
            if not isinstance(size, int):
                raise TypeError(f"{name} has to be an int, not {type(size).__name__}")
            if size < 1:
                raise ValueError(f"{name} has to be 1 or more, but got {size}")
        number = isinstance(dropout, (int, float)) and not isinstance(dropout, bool)
        if not number or not 0 <= dropout <= 1:
            raise ValueError(
                f"dropout has to be a number from 0 to 1, the share of elements that "
                f"become 0, but got {dropout!r}"
            )
        if dropout and num_layers == 1:
            warnings.warn(
                "dropout is applied to the results of all layers but the last, so "
                f"dropout={dropout} does nothing with num_layers=1",
                stacklevel=4,
            )
        if mode not in _KINDS:
            raise ValueError(f"there is no mode {mode!r}; give one of {[*_KINDS]}")
        if proj_size and mode != "LSTM":
            raise ValueError(f"proj_size={proj_size} was given; only LSTM has it")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"proj_size has to be from 0 (no projection) to hidden_size - 1, "
                f"{hidden_size - 1}, but got {proj_size}"
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout: float = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                end = f"_l{layer}{suffix}"
                shapes = {f"{k}{end}": v for k, v in self._shapes(layer).items()}
                for name, shape in shapes.items():
                    value = _C.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(name, Parameter(value))
                self._all_weights.append([*shapes])
        self.reset_parameters()

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters of one direction of a layer."""
        rows = recurrent.GATES[_KINDS[self.mode]] * self.hidden_size
        results = self.proj_size or self.hidden_size
        inputs = (
            (2 if self.bidirectional else 1) * results if layer else self.input_size
        )
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs)}
        shapes["weight_hh"] = rows, results
        if self.bias:
            shapes.update(bias_ih=(rows,), bias_hh=(rows,))
        if self.proj_size:
            shapes["weight_hr"] = self.proj_size, self.hidden_size
        return shapes

    def _make(self, **options: Any) -> None:
        RNNBase.__init__(self, type(self)._mode, **options)

    def reset_parameters(self) -> None:
        """Initialize all parameters, uniform within 1 / sqrt(hidden_size)."""
        start_uniform(self)

    def flatten_parameters(self) -> None:
        """Has no effect: parameters need not be contiguous in memory."""

    @property
    def all_weights(self) -> list[Any]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [weight for weights in self.all_weights for weight in weights]

    def __getstate__(self) -> dict[str, Any]:
        """With what PyTorch's layers keep beside their parameters."""
        names = ("_flat_weights_names", "_flat_weights")
        return {**self.__dict__, **{name: getattr(self, name) for name in names}}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__({k: v for k, v in state.items() if k[:6] != "_flat_"})

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        parts += [
            f"{name}={getattr(self, name)}"
            for name, default in defaults.items()
            if getattr(self, name) != default
        ]
        return ", ".join(parts)

    # --- one call ---

    def _check_input(self, input: Any, packed: bool) -> None:
        check_tensor(self, "input", input)
        weight = self.all_weights[0][0]
        check_home(self, "input", input, weight)
        if not recurrent.may_meet(input, weight):
            # As PyTorch: under autocast the product of the two raises it.
            kind = RuntimeError if _C._autocast_on() else ValueError
            raise kind(
                f"{self}: the input is of type {input.dtype} and the parameters of "
                f"{weight.dtype}; convert one, e.g. with input.to({weight.dtype})"
            )
        if packed:
            right = input.ndim == 2
        elif input.ndim not in (2, 3):
            layout = "(N, L, features)" if self.batch_first else "(L, N, features)"
            raise ValueError(
                f"{self}: the input has shape {[*input.shape]}; give {layout}, or "
                "(L, features) without a batch"
            )
        else:
            right = True
        if not right or input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{self}: the input has shape {[*input.shape]}; its last size has to "
                f"be input_size, {self.input_size}"
            )

    def _states(
        self, input: Any, hx: Any, batch: int, batched: bool, order: Any
    ) -> list[Any]:
        """The states before the first step: each [layers * directions, batch, size]."""
        sizes = [self.proj_size or self.hidden_size]
        names = ["hidden state"]
        if self.mode == "LSTM":
            sizes.append(self.hidden_size)
            names.append("cell state")
        count = len(self._all_weights)
        if hx is None:
            return [recurrent.zeros(input, count, batch, size) for size in sizes]
        states = [hx]
        if self.mode == "LSTM":
            if not isinstance(hx, (tuple, list)) or len(hx) != 2:
                raise RuntimeError(
                    f"{self}: the states have to be a tuple of two Tensors, the "
                    f"hidden state and the cell state, not {type(hx).__name__}"
                )
            states = [*hx]
        for at, (state, size) in enumerate(zip(states, sizes, strict=True)):
            check_tensor(self, names[at], state)
            wanted = [count, batch, size] if batched else [count, size]
            if [*state.shape] != wanted:
                raise RuntimeError(
                    f"{self}: the {names[at]} has shape {[*state.shape]}; for this "
                    f"input it has to be {wanted}"
                )
            check_home(self, names[at], state, input)
            if not recurrent.may_meet(state, input):
                raise RuntimeError(
                    f"{self}: the {names[at]} is of type {state.dtype} and the input "
                    f"of {input.dtype}; convert one of them"
                )
            if not batched:
                states[at] = state.unsqueeze(1)
            elif order is not None:
                states[at] = state.index_select(1, order)
        return states

    def _run(
        self, x: Any, states: list[Any], sizes: list[Any], packed: bool
    ) -> tuple[Any, ...]:
        """All layers over rows x; returns the rows of the last one, and the states."""
        weights = self.all_weights
        if not self.bias:
            weights = [[*own[:2], None, None, *own[2:]] for own in weights]
        return recurrent.run_layers(
            _KINDS[self.mode],
            x,
            states,
            weights,
            sizes,
            2 if self.bidirectional else 1,
            self.dropout if self.training else 0.0,
            packed,
        )

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, ...]:
        """The last layer's results, and the states after the last step.

        input  (L, N, input_size), (N, L, input_size) with batch_first, (L, input_size),
               or a PackedSequence
        hx     states before the first step, (num_layers * directions, N, hidden_size),
               for an LSTM a tuple (h, c), where h has proj_size features if that is
               given; None: zeros
        """
        packed = isinstance(input, PackedSequence)
        order = None
        batched = True
        if packed:
            x, batch_sizes, order, undo = input
            self._check_input(x, True)
            sizes = batch_sizes.tolist()
            batch = sizes[0]
            if sum(sizes) != len(x):
                raise RuntimeError(
                    f"{self}: batch_sizes sum to {sum(sizes)}, and there are "
                    f"{len(x)} rows of data; pack with pack_padded_sequence()"
                )
        else:
            self._check_input(input, False)
            batched = input.ndim == 3
            x = input if batched else input.unsqueeze(1)
            if batched and self.batch_first:
                x = x.transpose(0, 1)
            steps, batch = x.shape[:2]
            if not steps:
                raise RuntimeError(
                    f"{self}: the input of shape {[*input.shape]} has no steps; give "
                    "a sequence of one or more"
                )
            x, sizes = x.reshape((steps * batch, x.shape[2])), [batch] * steps
        states = self._states(x, hx, batch, batched, order)
        y, last = self._run(x, states, sizes, packed)
        if packed:
            if order is not None:
                last = [state.index_select(1, undo) for state in last]
            result: Any = PackedSequence(y, batch_sizes, order, undo)
        else:
            result = y.reshape((steps, batch, y.shape[1]))
            if not batched:
                result = result.squeeze(1)
                last = [state.squeeze(1) for state in last]
            elif self.batch_first:
                result = result.transpose(0, 1)
        return result, last[0] if len(last) == 1 else tuple(last)


class RNN(
    RNNBase,
    takes="input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str "
    "= 'tanh', bias, batch_first, dropout, bidirectional: bool = False, proj_size: int "
    "= 0, device, dtype",
):
    """h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh), or relu.

    From an input (L, N, input_size), (N, L, input_size) with batch_first, (L,
    input_size) or a PackedSequence, and states (num_layers * directions, N,
    hidden_size) that are zeros if left out, to the results of the last layer (L, N,
    directions * hidden_size) and the last states. Raises RuntimeError for other sizes
    and devices, ValueError for another type. See also LSTM and GRU, which remember
    longer.

    nonlinearity  'tanh' or 'relu'
    proj_size     has to be 0: only an LSTM projects its state

    >>> output, state = nn.RNN(3, 4)(torch.ones(5, 2, 3))
    >>> output.shape, state.shape
    (torch.Size([5, 2, 4]), torch.Size([1, 2, 4]))
    """

    def _make(self, *, nonlinearity: str, **options: Any) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity is {nonlinearity!r}; give 'tanh' or 'relu'")
        RNNBase.__init__(self, f"RNN_{nonlinearity.upper()}", **options)
        self.nonlinearity = nonlinearity


class LSTM(
    RNNBase,
    takes="input_size: int, hidden_size: int, num_layers: int = 1, bias, batch_first, "
    "dropout, bidirectional: bool = False, proj_size: int = 0, device, dtype",
):
    """Long short-term memory: a cell state c beside the hidden state h.

    With i, f, g, o of x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh:
    c' = sigmoid(f) * c + sigmoid(i) * tanh(g) and h' = sigmoid(o) * tanh(c'), which
    weight_hr projects to proj_size if that is given. Shapes are those of RNN; states
    are a tuple (h, c).

    proj_size  features that h is projected to, below hidden_size; 0: none

    >>> output, (h, c) = nn.LSTM(3, 4, num_layers=2)(torch.ones(5, 2, 3))
    >>> output.shape, h.shape, c.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 2, 4]), torch.Size([2, 2, 4]))
    """

    _mode = "LSTM"


class GRU(
    RNNBase,
    takes="input_size: int, hidden_size: int, num_layers: int = 1, bias, batch_first, "
    "dropout, bidirectional: bool = False, proj_size: int = 0, device, dtype",
):
    """Gated recurrent units: gates of reset r and update z.

    With three parts of x @ weight_ih.T + bias_ih and of h @ weight_hh.T + bias_hh:
    r = sigmoid(xr + hr), z = sigmoid(xz + hz), n = tanh(xn + r * hn) and
    h' = (1 - z) * n + z * h. Shapes are those of RNN.

    proj_size  has to be 0: only an LSTM projects its state

    >>> output, state = nn.GRU(3, 4, bidirectional=True)(torch.ones(5, 2, 3))
    >>> output.shape, state.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]))
    """

    _mode = "GRU"


give(__name__, RNNCellBase, RNNCell, LSTMCell, GRUCell)
