"""Which names an expression needs that the package does not have yet."""

import ast

# What the GPU chapter and its readers' notes need: these are never skipped.
NEEDED = frozenset(
    [
        "Tensor",
        "Size",
        "dtype",
        "device",
        "Generator",
        "tensor",
        "zeros",
        "ones",
        "full",
        "empty",
        "arange",
        "rand",
        "randn",
        "zeros_like",
        "ones_like",
        "float32",
        "float64",
        "int64",
        "int32",
        "bool",
        "float",
        "double",
        "long",
        "int",
        "manual_seed",
        "initial_seed",
        "from_numpy",
        "set_printoptions",
        "set_default_device",
        "is_tensor",
        "add",
        "sub",
        "mul",
        "div",
        "floor_divide",
        "remainder",
        "fmod",
        "pow",
        "maximum",
        "minimum",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "abs",
        "neg",
        "sign",
        "square",
        "sqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "relu",
        "sum",
        "mean",
        "max",
        "min",
        "norm",
        "matmul",
        "mm",
        "addmm",
        "shape",
        "size",
        "dim",
        "ndim",
        "numel",
        "stride",
        "item",
        "tolist",
        "t",
        "T",
        "transpose",
        "permute",
        "reshape",
        "view",
        "flatten",
        "squeeze",
        "unsqueeze",
        "expand",
        "narrow",
        "select",
        "chunk",
        "split",
        "contiguous",
        "is_contiguous",
        "clone",
        "detach",
        "to",
        "cpu",
        "cuda",
        "type",
        "get_device",
        "requires_grad",
        "add_",
        "sub_",
        "mul_",
        "div_",
        "fill_",
        "zero_",
        "copy_",
        "uniform_",
        "normal_",
        "numpy",
        "as_strided",
        "data_ptr",
    ]
)
OTHER_OWNERS = frozenset(
    dir(str) + dir(list) + dir(dict) + dir(tuple) + dir(float) + dir(int)
)


def missing(source, torch):
    """The first name in source that neither the package nor its Tensor has and that the GPU
    chapter does not need; None when the expression should work."""
    owners = [torch.Tensor, torch.Size, torch.device, torch.dtype]
    if hasattr(torch, "Generator"):
        owners.append(torch.Generator)
    if hasattr(torch, "utils"):
        owners.append(torch.utils.data)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute) or node.attr in NEEDED:
            continue
        name = node.attr
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            if not hasattr(torch, name):
                return f"torch.{name}"
        elif isinstance(node.value, ast.Name) and node.value.id in ("numpy", "math"):
            continue
        elif not any(hasattr(owner, name) for owner in owners) and not (
            name in OTHER_OWNERS
            or name
            in ("nonsense", "is_nonsense", "values", "indices", "is_floating_point")
            or name in ("itemsize", "set_device", "current_device")
        ):
            return f".{name}"
    return None
