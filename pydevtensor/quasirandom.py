"""torch.quasirandom: points that fill a cube more evenly than random ones do."""

from __future__ import annotations

from typing import Any

import pydevtensor as torch
from pydevtensor._names import publish as _publish

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of Sobol's sequence, by SciPy, in the cube from 0 to 1.

    Raises ValueError for other dimensions, and ImportError without SciPy.

    dimension  from 1 to 21201
    scramble   draw the sequence in a random order of its digits; with other numbers
               than PyTorch's
    seed       of the scrambling; None: it is drawn from the default generator

    >>> torch.quasirandom.SobolEngine(2).draw(3)  # doctest: +SKIP
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXDIM = 21201
    MAXBIT = 30

    def __init__(
        self, dimension: int, scramble: bool = False, seed: int | None = None
    ) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"the dimension is {dimension}; give one from 1 to {self.MAXDIM}"
            )
        self.dimension = dimension
        self.scramble = scramble
        self.seed = seed
        if scramble and seed is None:
            seed = int(torch.randint(2**31, ()).item())
        self._scrambles = seed
        self.reset()

    def reset(self) -> SobolEngine:
        """Begin again with the first point."""
        try:
            from scipy.stats import qmc  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError(
                "SobolEngine needs SciPy; install it with: pip install scipy"
            ) from None
        options = {"scramble": self.scramble, "bits": self.MAXBIT}
        self._points = qmc.Sobol(self.dimension, rng=self._scrambles, **options)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave n points out.

        n  their number
        """
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def draw(
        self, n: int = 1, out: Any = None, dtype: torch.dtype | None = None
    ) -> Any:
        """The next points, of shape (n, dimension).

        n      their number
        out    a Tensor that they are written to
        dtype  their type, the default dtype by default
        """
        kind = torch.get_default_dtype() if dtype is None else dtype
        points = torch.from_numpy(self._points.random(n)).to(kind)
        self.num_generated += n
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(
        self, m: int, out: Any = None, dtype: torch.dtype | None = None
    ) -> Any:
        """The next 2**m points; ValueError unless all are 2, 4, 8, ...

        m      the logarithm of their number
        out    a Tensor that they are written to
        dtype  their type, the default dtype by default
        """
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"{self.num_generated} points were drawn, and with 2**{m} more they "
                "are not 2, 4, 8, ...; call draw()"
            )
        return self.draw(2**m, out, dtype)

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        shown += ["scramble=True"] * self.scramble
        shown += [f"seed={self.seed}"] * (self.seed is not None)
        return f"SobolEngine({', '.join(shown)})"


_publish(__name__)
