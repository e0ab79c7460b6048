"""A module with a state of each kind."""

import pydevtensor as torch
from pydevtensor import nn


class Counting(nn.Module):
    """A scale, a counter that is stored, and one that is not."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("calls", torch.tensor(0))
        self.register_buffer("recent", torch.zeros(2), persistent=False)

    def forward(self, x, extra=0.0):
        self.calls += 1
        self.recent = x.detach()[-1]
        return x * self.scale + extra
