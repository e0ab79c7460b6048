"""The same numbers in other strides."""

import pydevtensor as torch

# How a tensor of each kind is made from a row-major one with the same values.
LAYOUTS = {
    "row-major": lambda t: t.clone(),
    "transposed": lambda t: t.t().contiguous().t() if t.ndim == 2 else t.clone(),
    "with gaps": lambda t: spread(t),
}


def spread(t):
    """t's values in a tensor whose elements are two apart in memory."""
    wide = torch.zeros(*t.shape, 2, dtype=t.dtype, device=t.device)
    part = wide[..., 1]
    part.copy_(t)
    return part
