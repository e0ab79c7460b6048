"""The ways through kernels that are counted, by family."""

from sass.cases import elementwise, movement, nn, reduction, sorting, windows

CASES = (
    *elementwise.CASES,
    *movement.CASES,
    *reduction.CASES,
    *windows.CASES,
    *nn.CASES,
    *sorting.CASES,
)
