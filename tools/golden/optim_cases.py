"""What PyTorch makes of tests/golden/optim.py, on the CPU."""

from optim import optimise


def make(torch):
    found = optimise(torch, "cpu")
    return {
        "found": {
            name: value
            if isinstance(value, str)
            else [float(f"{v:.9g}") for v in value]
            for name, value in found.items()
        }
    }
