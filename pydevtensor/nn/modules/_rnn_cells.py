"""Cells of recurrent layers, and the checks that both share."""

from __future__ import annotations

import math
from typing import Any

from pydevtensor import _C
from pydevtensor.nn import init
from pydevtensor.nn._functional import recurrent
from pydevtensor.nn.modules._layer import Parametrized


def start_uniform(module: Any) -> None:
    """All parameters uniform within 1 / sqrt(hidden_size)."""
    size = module.hidden_size
    bound = 1 / math.sqrt(size) if size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


def check_home(module: Any, what: str, t: Any, home: Any) -> None:
    """t is on the device of the parameters."""
    if t.device != home.device:
        raise RuntimeError(
            f"{module}: the parameters are on {home.device} and the {what}, of shape "
            f"{[*t.shape]}, on {t.device}; bring them together, e.g. with "
            f"to('{home.device}')"
        )


def check_tensor(module: Any, what: str, t: Any) -> None:
    if not isinstance(t, _C.Tensor):
        raise TypeError(
            f"{module}: the {what} has to be a Tensor, not {type(t).__name__}"
        )


class RNNCellBase(
    Parametrized,
    takes="input_size: int, hidden_size: int, bias: bool, num_chunks: int, "
    "device, dtype",
):
    """Base of RNNCell, LSTMCell and GRUCell, which a program uses in its place.

    input_size     features of the input
    hidden_size    features of a state
    bias           whether there are biases
    num_chunks     matrices in one weight: 1 of an RNN, 3 of a GRU, 4 of an LSTM
    device, dtype  of the parameters

    >>> isinstance(nn.GRUCell(2, 3), nn.RNNCellBase)
    True
    """

    _spent = ("device", "dtype")
    _chunks = 1  # of the class
    input_size: int
    hidden_size: int
    bias: bool

    def _make(  # type: ignore[override]
        self, *, device: Any, dtype: Any, num_chunks: int = 0, **sizes: Any
    ) -> None:
        super()._make(**sizes)
        rows = (num_chunks or self._chunks) * self.hidden_size
        of_bias = (rows,) if self.bias else None
        shapes: dict[str, Any] = {
            "weight_ih": (rows, self.input_size),
            "weight_hh": (rows, self.hidden_size),
            "bias_ih": of_bias,
            "bias_hh": of_bias,
        }
        self._add(shapes, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize all parameters, uniform within 1 / sqrt(hidden_size)."""
        start_uniform(self)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _step(self, kind: int, input: Any, states: Any) -> list[Any]:
        """The states after a step; states before it may be None, each."""
        check_tensor(self, "input", input)
        check_home(self, "input", input, self.weight_ih)
        if input.ndim not in (1, 2):
            raise ValueError(
                f"{self}: the input has shape {[*input.shape]}; give (N, features) or "
                "(features,)"
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{self}: the input has shape {[*input.shape]}; its last size has to "
                f"be input_size, {self.input_size}"
            )
        x = input if input.ndim == 2 else input.unsqueeze(0)
        before = []
        for at, state in enumerate(states):
            if state is None:
                state = recurrent.zeros(x, len(x), self.hidden_size)
            check_tensor(self, "state", state)
            check_home(self, f"state {at}", state, self.weight_ih)
            if state.ndim not in (1, 2):
                raise ValueError(
                    f"{self}: state {at} has shape {[*state.shape]}; give "
                    "(N, hidden_size) or (hidden_size,)"
                )
            if input.ndim == 1 and state.ndim == 1:
                state = state.unsqueeze(0)
            if [*state.shape] != [len(x), self.hidden_size]:
                raise RuntimeError(
                    f"{self}: state {at} has shape {[*states[at].shape]}; for this "
                    f"input it has to be {[*input.shape[:-1], self.hidden_size]}"
                )
            before.append(state)
        for what, t in [("input", x), *(("state", state) for state in before)]:
            if not recurrent.may_meet(t, self.weight_ih):
                raise RuntimeError(
                    f"{self}: the {what} is of type {t.dtype} and the parameters of "
                    f"{self.weight_ih.dtype}; convert one of them"
                )
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        _, *after = recurrent.run(kind, x, before, weights, [len(x)], stepwise=True)
        return after if input.ndim == 2 else [state.squeeze(0) for state in after]


class RNNCell(
    RNNCellBase,
    takes="input_size: int, hidden_size: int, bias, nonlinearity: str = 'tanh', "
    "device, dtype",
):
    """One step of an RNN: from (N, input_size) and (N, hidden_size) to the next state.

    The state is zeros if left out; N may be missing. Raises RuntimeError for other
    sizes.

    nonlinearity  'tanh' or 'relu'

    >>> nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def _make(self, *, nonlinearity: str, **options: Any) -> None:
        super()._make(**options)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The state after one step.

        input  (N, input_size) or (input_size,)
        hx     the state before it, (N, hidden_size) or (hidden_size,); None: zeros
        """
        kind = {"tanh": recurrent.TANH, "relu": recurrent.RELU}.get(self.nonlinearity)
        if kind is None:
            raise RuntimeError(
                f"{self}: nonlinearity is {self.nonlinearity!r}; give 'tanh' or 'relu'"
            )
        return self._step(kind, input, [hx])[0]


class LSTMCell(
    RNNCellBase, takes="input_size: int, hidden_size: int, bias, device, dtype"
):
    """One step of an LSTM: from (N, input_size) and states (h, c) to the next (h, c).

    The states are zeros if left out; N may be missing. Raises RuntimeError for other
    sizes.

    >>> h, c = nn.LSTMCell(3, 4)(torch.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    _chunks = 4

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, ...]:
        """The states (h, c) after one step.

        input  (N, input_size) or (input_size,)
        hx     a tuple (h, c) of the states before it, each (N, hidden_size) or
               (hidden_size,); None: zeros
        """
        if hx is not None and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
            raise TypeError(
                f"{self}: the states have to be a tuple of two Tensors, h and c, not "
                f"{type(hx).__name__}"
            )
        return tuple(
            self._step(recurrent.LSTM, input, [None, None] if hx is None else hx)
        )


class GRUCell(
    RNNCellBase, takes="input_size: int, hidden_size: int, bias, device, dtype"
):
    """One step of a GRU: from (N, input_size) and (N, hidden_size) to the next state.

    The state is zeros if left out; N may be missing. Raises RuntimeError for other
    sizes.

    >>> nn.GRUCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    _chunks = 3

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The state after one step.

        input  (N, input_size) or (input_size,)
        hx     the state before it, (N, hidden_size) or (hidden_size,); None: zeros
        """
        return self._step(recurrent.GRU, input, [hx])[0]
