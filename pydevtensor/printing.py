"""How tensors print: what PyTorch prints, character for character.

The module is imported at the first repr. It sees a tensor through its public methods
only, and takes from the tensor's device nothing but the elements that will be shown, in
one copy.
"""

from __future__ import annotations

import sys
from itertools import chain
from math import inf
from operator import index
from typing import TYPE_CHECKING, Any

from pydevtensor import _C
from pydevtensor._names import publish as _publish

if TYPE_CHECKING:
    from pydevtensor import Tensor

__all__ = ["format_tensor", "get_printoptions", "name_of_file", "set_printoptions"]
__all__ += ["tensor_repr"]

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}
_options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; an omitted argument keeps its value, except sci_mode.

    precision   digits after the point (4)
    threshold   tensors of more elements than this are summarised (1000)
    edgeitems   elements shown at each end of a summarised dimension (3)
    linewidth   columns after which a line wraps (80)
    profile     'default', 'short' or 'full', set before the other arguments
    sci_mode    True or False for scientific notation always or never; None (also when
                left out) to choose for each tensor

    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.23456])
    tensor([1.23])
    >>> torch.set_printoptions(profile='default')
    """
    chosen: dict[str, Any] = {}
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(
                f"set_printoptions: profile is {profile!r}; "
                "use 'default', 'short' or 'full'"
            )
        chosen.update(_PROFILES[profile])
    given = {
        "precision": precision,
        "edgeitems": edgeitems,
        "threshold": threshold,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is None:
            continue
        whole = name in ("precision", "edgeitems")
        try:
            chosen[name] = index(value) if whole else value + 0  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(
                f"set_printoptions: {name} is {value!r}; give "
                f"{'an int' if whole else 'a number'}"
            ) from None
        if whole and chosen[name] < 0:
            raise ValueError(f"set_printoptions: {name} is {value}; give 0 or more")
    _options.update(chosen, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """The options in force, as a dict by the names that set_printoptions takes.

    >>> torch.get_printoptions()['precision']
    4
    """
    return dict(_options)


def tensor_repr(tensor: Tensor) -> str:
    """The text of repr(tensor) and str(tensor).

    >>> torch.printing.tensor_repr(torch.tensor([1, 2]))
    'tensor([1, 2])'
    """
    kind = type(tensor).__name__
    plain = kind in ("Tensor", "Parameter", "Buffer")
    opening = "tensor(" if plain else kind + "("
    notes = []
    device = tensor.device
    if device.type != "cpu":
        notes.append(f"device='{device}'")

    dtype, default_dtype = str(tensor.dtype), str(_C.get_default_dtype())
    if tensor.is_complex() and tensor.numel():
        wide = default_dtype == "torch.float64"
        default_dtype = "torch.complex128" if wide else "torch.complex64"
    if tensor.is_meta or (tensor.numel() and not tensor.untyped_storage().nbytes()):
        text = "..."
        notes.append(f"size={tuple(tensor.shape)}")
        if dtype != default_dtype:
            notes.append("dtype=" + dtype)
    elif tensor.numel() == 0:
        text = "[]"
        if tensor.dim() != 1:
            notes.append(f"size={tuple(tensor.shape)}")
        if dtype != default_dtype:
            notes.append("dtype=" + dtype)
    else:
        text = _elements(tensor, len(opening))
        if not _options["edgeitems"]:
            notes.append(f"size={tuple(tensor.shape)}")
        if dtype not in (default_dtype, "torch.int64", "torch.bool"):
            notes.append("dtype=" + dtype)

    if tensor.grad_fn is not None:
        notes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        notes.append("requires_grad=True")
    return _append_notes(opening + text, notes, len(opening))


def format_tensor(tensor: Tensor, spec: str) -> str:
    """The text of format(tensor, spec): of the number, where the tensor is just one.

    >>> f'{torch.tensor(3.14159):.2f}'
    '3.14'
    """
    if tensor.dim() == 0 and type(tensor).__name__ == "Tensor" and not tensor.is_meta:
        return format(tensor.item(), spec)
    # As for any object without a format of its own: only the empty one is known.
    return object.__format__(tensor, spec)


def name_of_file(file: str) -> str:
    """How reports name a source file: "In[4]" for a notebook's cell, else the file.

    file: the name that tracebacks have.

    >>> torch.printing.name_of_file("train.py")
    'train.py'
    """
    session = sys.modules.get("IPython")
    shell: Any = session.get_ipython() if session is not None else None
    try:
        _, name = shell.compile.format_code_name(file)
    except (AttributeError, TypeError):  # no session, an old one, or no cell
        return file
    return str(name)


def _append_notes(text: str, notes: list[str], indent: int, apart: bool = False) -> str:
    """Close text after the notes, each on a new line where this one has no room.

    apart: the first one is on a new line in any case.
    """
    column = len(text) - text.rfind("\n") + 1
    for i, note in enumerate(notes):
        if (apart and not i) or column + len(note) + 2 > _options["linewidth"]:
            text += ",\n" + " " * indent + note
            column = indent + len(note)
        else:
            text += ", " + note
            column += len(note) + 2
    return text + ")"


def _elements(tensor: Tensor, indent: int) -> str:
    """The brackets and all between them; the tensor is not empty."""
    shape = tuple(tensor.shape)
    if not shape:
        return _cells([tensor.item()])[0][0]
    edge = _options["edgeitems"]
    summarised = tensor.numel() > _options["threshold"]
    if summarised and not edge:
        return "[...]"
    cut = [summarised and size > 2 * edge for size in shape]
    values = _fetch(tensor, cut, edge)
    for _ in shape[1:]:
        values = list(chain.from_iterable(values))
    cells, width = _cells(values)

    # The rows of the last dimension, each wrapped to the line's width ...
    depth = len(shape) - 1
    size = 2 * edge if cut[depth] else shape[depth]
    room = _options["linewidth"] - indent - depth
    per_line = max(1, int(min(room / (width + 2), size + 1)))
    line_end = ",\n" + " " * (indent + depth + 1)
    parts = []
    for start in range(0, len(cells), size):
        row = cells[start : start + size]
        if cut[depth]:
            row.insert(edge, " ...")
        lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
        parts.append("[" + line_end.join(lines) + "]")

    # ... then each dimension outwards brackets as many of them as it has.
    while depth:
        depth -= 1
        size = 2 * edge if cut[depth] else shape[depth]
        line_end = "," + "\n" * (len(shape) - 1 - depth) + " " * (indent + depth + 1)
        groups = [parts[start : start + size] for start in range(0, len(parts), size)]
        if cut[depth]:
            for group in groups:
                group.insert(edge, "...")
        parts = ["[" + line_end.join(group) + "]" for group in groups]
    return parts[0]


def _fetch(tensor: Tensor, cut: list[bool], edge: int) -> list[Any]:
    """The elements to show, as nested lists: `edge` a side of each dimension cut."""
    if True not in cut:
        return tensor.tolist()
    # A cut dimension, seen as two blocks of `edge` far apart, is still one
    # strided view: the device gathers its elements, and tolist() copies them here once.
    sizes, steps, shown = [], [], []
    for size, step, short in zip(tensor.shape, tensor.stride(), cut, strict=True):
        if short:
            sizes.append(2)
            steps.append((size - edge) * step)
            size = edge
        sizes.append(size)
        steps.append(step)
        shown.append(2 * size if short else size)
    if tensor.requires_grad:
        tensor = tensor.detach()
    return tensor.as_strided(sizes, steps).reshape(shown).tolist()


def _cells(values: list[Any]) -> tuple[list[str], int]:
    """Each value as text, all padded to one width, and that width."""
    if isinstance(values[0], complex):
        reals, width = _cells([value.real for value in values])
        imags, more = _cells([value.imag for value in values])
        signed = [i.lstrip() if "-" in i else "+" + i.lstrip() for i in imags]
        pairs = zip(reals, signed, strict=True)
        return [real + imag + "j" for real, imag in pairs], width + more + 1
    if not isinstance(values[0], float):
        cells = list(map(str, values))
        width = max(map(len, cells))
        return [cell.rjust(width) for cell in cells], width

    # Zeros, infinities and NaN have no say in the form nor in the width.
    counted = [value for value in values if value and value - value == 0]
    if not counted:
        form, width = "%.0f.", 1
    else:
        magnitudes = list(map(abs, counted))
        least, greatest = min(magnitudes), max(magnitudes)
        scientific = _options["sci_mode"]
        if scientific is None:
            scientific = greatest / least > 1000 or greatest > 1e8 or least < 1e-4
        if scientific:
            form = f"%.{_options['precision']}e"
        elif all(map(float.is_integer, counted)):
            form = "%.0f."
        else:
            form = f"%.{_options['precision']}f"
        width = max([len(form % value) for value in counted])
    # str() for infinities and NaN, to which the form may add a point.
    cells = [form % value if value - value == 0 else str(value) for value in values]
    return [cell.rjust(width) for cell in cells], width


_publish(__name__)
