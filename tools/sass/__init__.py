"""Machine code of the CUDA kernels: python tools/sass."""
