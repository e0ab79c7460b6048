"""Writes docs/operations.md: which operation takes which element type on which device.

python tools/operations.py [--check]

The operations are those of the extension's signatures. The tool calls each of them with
valid arguments (signatures.py) of each type, on the CPU and on a simulated GPU. --check
writes nothing and exits with status 1 if the file would change.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("PYDEVTENSOR_SIM_GPUS", "2")

ROOT = Path(__file__).resolve().parents[1]
# The installed package, not the source tree.
sys.path[:] = [p for p in sys.path if p and Path(p).resolve() != ROOT]

from signatures import PROCESS_WIDE, VALID, parameters, valid  # noqa: E402

import pydevtensor as torch  # noqa: E402

PAGE = ROOT / "docs" / "operations.md"
DEVICES = ("cpu", "cuda")
HEAD = """\
# Operations, element types and devices

Made by `make docs`, which calls every operation on tensors of every type. ● works on
the CPU and on GPUs, ○ on the CPU alone, ◐ on GPUs alone; an empty cell raises an error
that says what to do. A function and a method of one name share a row. In-place methods,
`out=` and aliases take what their operation takes. Functions that make tensors from
sizes, and those that only inspect a tensor (`numel`, `stride`, ...), are left out.

"""
# These work on any type: they inspect a tensor, move it, or change its autograd state.
LEFT_OUT = {
    *("backward", "detach", "record_stream", "register_hook"),
    *("register_post_accumulate_grad_hook", "retain_grad"),
}
LEFT_OUT |= {"requires_grad_", "cuda", "is_pinned", "pin_memory", "item", "tolist"}
LEFT_OUT |= {"numpy", "to_dlpack", "new", "new_tensor", "imag"}
LEFT_OUT |= {"to_sparse_bsr", "to_sparse_bsc"}  # say what to use instead
# These have a type of their own.
INDICES = {"index", "LU_pivots", "indices", "mask", "condition", "repeats", "sorter"}


def types() -> dict[str, Any]:
    """The element types by name, without second names."""
    found = {n: v for n, v in vars(torch._C).items() if type(v) is torch.dtype}
    return {n: v for n, v in found.items() if str(v) == f"torch.{n}"}


def operations() -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    """Names, each with the forms by which it may be called and whether as a method."""
    found: dict[str, list[tuple[str, bool]]] = {}
    for name, text, is_function, _ in torch._C._signatures():
        own_name = text.startswith(f"{name}(")
        if name.startswith("_") or name in LEFT_OUT | PROCESS_WIDE or not own_name:
            continue
        forms = [
            (form, not is_function)
            for form in text.split(" | ")
            if "input: Tensor" in form or "Value" in form or "Tensors" in form
        ]
        found.setdefault(name, []).extend(forms)
    for name, forms in sorted(found.items()):
        twin = name.endswith("_") and name[:-1] in found
        if forms and not twin and not name.startswith(("new_", "is_")):
            yield name, forms


def converted(value: Any, parameter: Any, dtype: Any, scale: int) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(converted(v, parameter, dtype, scale) for v in value)
    if not isinstance(value, torch.Tensor) or parameter.name in INDICES:
        return value
    return (value * scale).to(dtype)


def works(name: str, form: str, method: bool, dtype: Any, device: str) -> bool:
    target = getattr(torch.Tensor if method else torch, name)
    known = VALID.get(name, {})
    found = parameters(form)
    needed = [p for p in found if p.required or p.name in known]
    for scale in (1, 4):  # below 1 and all of 1 or more, once they are whole
        try:
            values: list[Any] = []
            for p in needed:
                if p.keyword:
                    continue
                value = converted(valid(name, p, device), p, dtype, scale)
                values.extend(value if p.rest and type(value) is tuple else [value])
            words = {p.name: valid(name, p, device) for p in needed if p.keyword}
            target(*values, **words)
            if device != "cpu":
                torch.cuda.synchronize()
            return True
        except (TypeError, ValueError, RuntimeError, IndexError):
            continue
    return False


MARKS = {(True, True): "●", (True, False): "○", (False, True): "◐", (False, False): ""}


def page() -> str:
    names = types()
    lines = [
        f"| | {' | '.join(names)} |",
        f"|---|{'|'.join(':-:' for _ in names)}|",
    ]
    none: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, forms in operations():
            cells = []
            for dtype in names.values():
                found = tuple(
                    any(works(name, form, m, dtype, device) for form, m in forms)
                    for device in DEVICES
                )
                cells.append(MARKS[found])
            if not any(cells):
                none.append(name)
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    if none:
        raise SystemExit(f"good arguments are wanted in the tests for {none}")
    return HEAD + "\n".join(lines) + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        same = PAGE.exists() and PAGE.read_text() == text
        if not same:
            print(
                "docs/operations.md is not up to date; bring it there with: make docs"
            )
        return 0 if same else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
