"""Work captured as a CUDA graph."""

import pydevtensor as torch


def captured(work, device, **options):
    """A graph of what work() does, and its result."""
    g = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.cuda.graph(g, **options):
        result = work()
    return g, result
