"""A way through a kernel, with the limits of its cost."""

from dataclasses import dataclass

# The index of a pack in two dimensions: the outermost takes no division.
PLACE = "IMAD.HI.U32"


@dataclass(frozen=True)
class Case:
    """A way through a kernel, and what it may cost.

    `passes` are opcodes, or `load 16` for a load of 16 bytes from global memory, in the
    order in which the way comes by them. A round is the way from the first of them back
    to it; any other way leads from the kernel's entry to its end.
    """

    name: str
    source: str
    kernel: str  # as C++ writes it, without its parameters
    elements: int  # that a thread computes on the way
    passes: tuple[str, ...]
    most: float  # instructions an element
    in_flight: int  # bytes, at least
    registers: int  # at most
    spilled: int = 0  # bytes, at most
    is_round: bool = False
