"""The tensors whose text printing.json holds, built by PyTorch or by pydevtensor."""

import math


def plain(value):
    return float(value["float"]) if isinstance(value, dict) else value


def values_of(case):
    if "range" in case:
        start, step = case["range"]
        return [start + i * step for i in range(math.prod(case["shape"]))]
    if "middle" in case:
        return [1.0] * 500 + [plain(case["middle"])] + [2.0] * 600
    return [plain(value) for value in case["values"]]


def build(case, torch, device="cpu"):
    dtype = getattr(torch, case["dtype"])
    tensor = torch.tensor(values_of(case), dtype=dtype, device=device)
    tensor = tensor.reshape(case["shape"])
    return eval(case.get("view", "x"), {"x": tensor})
