"""The loss of sequences that are not aligned with their labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._functions import function
from pydevtensor.nn._functional._reduction import check_classes, reduce_loss

if TYPE_CHECKING:
    from pydevtensor._functions.types import Tensor, Text


@function()
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Text = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of sequences over all alignments with the input.

    Connectionist temporal classification: Graves et al., 2006. Raises RuntimeError for
    lengths and classes out of range.

    log_probs       logarithms of probabilities, such as log_softmax gives, (T, N, C) or
                    (T, C)
    targets         integers, classes other than blank, (N, S), or all sequences one
                    after the other in one dimension
    input_lengths   how many of the T steps of each input count, a tensor or tuple of N
                    integers
    target_lengths  how many of the labels of each target count, a tensor or tuple of N
                    integers
    blank           the class that stands for no label, 0 to C - 1
    reduction       'mean' (of losses divided by their target's length), 'sum', or
                    'none' for one loss each
    zero_infinity   make an infinite loss, of a target too long for its input, 0, and
                    its gradient, which is NaN otherwise, too

    >>> x = torch.full((2, 1, 2), 0.5).log()
    >>> nn.functional.ctc_loss(x, torch.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """
    (log_probs,) = _C._autocast_float(log_probs)
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    if log_probs.ndim != 3 or not log_probs.numel():
        raise RuntimeError(
            f"log_probs has shape {[*log_probs.shape]}; give (T, N, C) or (T, C), and "
            "elements"
        )
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"blank is {blank}; give 0 to {classes - 1}")
    lengths = _lengths("input_lengths", input_lengths, batch, steps)
    sizes = _lengths("target_lengths", target_lengths, batch, None)
    device = log_probs.device
    labels = _padded(targets.long(), sizes, blank).to(device)
    check_classes(labels, 0, classes)
    # The states of an alignment: the labels with blanks between, before and after.
    states = 2 * labels.shape[1] + 1
    sequence = _C.full((batch, states), blank, dtype=_C.int64, device=device)
    sequence[:, 1::2] = labels
    emitted = log_probs.gather(2, sequence.expand(steps, batch, states))
    # A step goes on by two states from label to label, if these differ.
    least = -math.inf
    skips = _C.zeros((batch, states), dtype=_C.bool, device=device)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    alpha = _C.cat(
        [emitted[0, :, :2], emitted.new_full((batch, max(states - 2, 0)), least)], 1
    )
    ends = _C.tensor(lengths, device=device).unsqueeze(1)
    outside = emitted.new_full((batch, 2), least)
    final = alpha.masked_fill(ends == 0, least)
    if steps and any(length == 0 for length in lengths):
        first = _C.arange(states, device=device) == 0
        final = _C.where((ends == 0) & first, 0.0, final)
    for t in range(1, max(lengths, default=0)):
        shifted = _C.cat([outside, alpha], 1)
        jumped = shifted[:, :-2].masked_fill(~skips, least)
        sums = _C.stack([alpha, shifted[:, 1:-1], jumped])
        alpha = _log_sum(sums) + emitted[t]
        final = _C.where(ends == t + 1, alpha, final)
    last = 2 * _C.tensor(sizes, device=device).unsqueeze(1)
    before = final.gather(1, (last - 1).clamp_min(0)).masked_fill(last == 0, least)
    loss = -_log_sum(_C.stack([final.gather(1, last), before])).squeeze(1)
    # PyTorch's gradient is that of a softmax before: it has the probabilities of the
    # steps that count, whose derivative log_softmax takes away.
    counts = _C.arange(steps, device=device).unsqueeze(1) < ends.T
    total = _C.where(counts, log_probs.exp().sum(2), 0.0).sum(0)
    impossible = loss == math.inf
    if zero_infinity:
        loss = _C.where(impossible, 0.0, loss - (total.detach() - total))
    else:
        # An infinite loss has a gradient of NaN for all classes.
        never = -_C.where(impossible, 0 * total, 1.0).log()
        loss = _C.where(impossible, never, loss - (total.detach() - total))
    if reduction == "mean":
        divisors = _C.tensor(sizes, device=device).clamp_min(1).to(loss.dtype)
        return (loss / divisors).mean()
    loss = loss.squeeze(0) if single and reduction == "none" else loss
    return reduce_loss("CtcLoss" if reduction == "none" else "", loss, reduction)


def _log_sum(parts: Any) -> Any:
    """log(sum(e^x)) over the first dimension, whose gradient is 0 where all are "
    "-inf."""
    known = parts > -math.inf
    some = known.any(0)
    total = _C.where(some, parts, 0.0).logsumexp(0)
    return _C.where(some, total, -math.inf)


def _lengths(what: str, given: Any, batch: int, most: int | None) -> list[int]:
    """Lengths as ints."""
    if isinstance(given, _C.Tensor):
        if given.is_floating_point():
            raise RuntimeError(f"{what} is of {given.dtype}; give integers")
        given = given.reshape(-1).tolist()
    if not isinstance(given, (int, tuple, list)):
        raise TypeError(f"{what} is {given!r}; give a Tensor or tuple of integers")
    given = [given] if isinstance(given, int) else [*given]
    for each in given:
        if not isinstance(each, int):
            raise TypeError(f"{what} has a {type(each).__name__}; give integers")
        if each < 0 or (most is not None and each > most):
            bound = "or more" if most is None else f"to {most}, the input's steps"
            raise RuntimeError(f"{what} has {each}; give 0 {bound}")
    if len(given) != batch:
        raise RuntimeError(
            f"{what} has {len(given)} elements; give {batch}, one for each sequence"
        )
    return given


def _padded(targets: Any, sizes: list[int], blank: int) -> Any:
    """The targets as (N, S), filled up with some class."""
    longest = max(sizes, default=0)
    if targets.ndim == 1:
        if targets.numel() != sum(sizes):
            raise RuntimeError(
                f"targets has {targets.numel()} elements, and target_lengths "
                f"sum to {sum(sizes)}; give as many"
            )
        rows = targets.split(sizes)
        made = targets.new_full((len(sizes), longest), 1 if blank == 0 else 0)
        for row, given in zip(made, rows, strict=True):
            row[: given.numel()] = given
        return made
    if (
        targets.ndim != 2
        or targets.shape[0] != len(sizes)
        or targets.shape[1] < longest
    ):
        raise RuntimeError(
            f"targets has shape {[*targets.shape]}; give ({len(sizes)}, S) "
            f"with S at least {longest}, or all in one dimension"
        )
    inside = _C.arange(longest, device=targets.device) < _C.tensor(
        sizes, device=targets.device
    ).unsqueeze(1)
    return _C.where(inside, targets[:, :longest], 0)
