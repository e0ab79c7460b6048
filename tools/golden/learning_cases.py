"""What PyTorch makes of tests/golden/learning.py, on the CPU."""

from learning import learn


def make(torch):
    found = learn(torch, "cpu")
    return {
        "found": {
            name: value
            if isinstance(value, str)
            else [float(f"{v:.9g}") for v in value]
            for name, value in found.items()
        }
    }
