"""Differences from PyTorch and NumPy that are documented or have no one answer."""

import re

import numpy as np

from .machines import Missing, Value


def any_of(*patterns):
    return re.compile("|".join(patterns))


# Taken here and refused by PyTorch.
MORE = any_of(
    # methods have out=, every elementwise function has an in-place method
    "has no attribute|keyword argument|invalid combination of arguments",
    # numbers serve where PyTorch wants tensors, and the other way round
    r"must be (Tensor|int|tuple|float), not|positional argument|expected Tensor as",
    "element 0 in argument 0|only supports a 0-dimensional value|compute_mode",
    r"value tensor of shape \[1\] cannot|1D tensors expected|Boolean alpha",
    # types promote, and more of them have kernels
    "not implemented for|unsupported operand|could not infer output dtype",
    r"must have the same (scalar type|dtype)|dtypes? must (have|be) the same",
    "topk does not support bool|without overflow|without narrowing",
    "Unsupported input type|input tensor and hist tensor|different dtypes",
    # out= is resized and converted
    r"Trying to resize|[Ff]ound dtype|[Ee]xpected (out|the dtype)",
    r"has dtype \w+ but the|non-boolean outputs|only supports bool tensor|dtype of out",
    # an empty dimension reduces to an empty result; the rest is not checked
    "does not have an identity|Expected reduction dim|Dimension specified as",
    "view size is not compatible|refer to a single memory location|Invalid output_size",
    "Autograd not support dtype|a leaf Variable that requires|support automatic diff",
    "source and destination dtypes match|larger than self|returned an invalid gradient",
    "dx as a real number|must not be a floating point|weights sum to zero",
    "does not match input dtype|Expected the output tensor|inplace version of",
    "can't be cast to the desired|Boolean beta|expected to have the same dtype",
    "dtype is wrong|with a bool tensor|inconsistent with step sign|must match dtype",
    "match the broadcast|the same dimension as input|not supported with sparse",
)
# Refused here with an explanation.
STRICT = any_of(
    "out has shape|give an out of|a leaf Variable that requires grad|share memory",
    "don't support automatic|0 dimensions|has no dimension|of type bool|dtype bool",
    "for torch.bool|for the type bool|give one of input's|give int64|out of range for",
    "the source of type|argument bins is missing|exceeds the storage",
)
# What NumPy does and PyTorch refuses.
REFUSED = any_of(
    "that requires grad|share memory|not defined for bools|condition is of type",
    "the mask has size|convert one of them|give a matrix|does not fit into the type",
    "there are no shifts|sizes were given for a tensor|the batches have",
    "division of integers by zero",
)
# Functions without a derivative: here they record nothing. Integers have no gradient
# either.
FLAT = any_of(
    "histogram",
    r"\.(eq|ne|lt|le|gt|ge|less|less_equal|greater|greater_equal|not_equal)_\(",
    r"\.logical_\w+_\(",
)
# Any of several equal elements may be the answer, or nothing is: k=0 of a tensor
# without dimensions, the median of no integers, a power series at a pole.
# Variances and quantiles of infinities are NaN or not by the order of the elements.
ANY = any_of(
    "kthvalue|median|mode|topk|polygamma|digamma|trapz|trapezoid|unique|sort",
    "(var|std)_mean|quantile",
)
# Checked on the CPU alone, where this costs no synchronization; or computed in another
# order, whose infinities differ.
ON_GPU = any_of("integers by zero|q has elements outside|of the sorter is")


# Writes at index tensors, which replace what is there.
REPLACES = any_of(r"\b(put|index_put|index_copy|scatter)_?\(", r"^\w+\[.*\] = ")
ADDS = any_of("accumulate=True", "reduce", r", True\)")


def repeats(values):
    """Whether integers among the values, or lists of them, name an element twice."""
    for value in values:
        array = value.array if isinstance(value, Value) else np.asarray(value)
        if array.dtype.kind not in "iu" or not array.size:
            continue
        # Numbers below 0 count from the end, wherever that is.
        if np.unique(array).size < array.size or array.min() < 0 <= array.max():
            return True
    return False


def is_open(session, statement):
    """Whether several values are written to one element: a GPU keeps any of them."""
    if not REPLACES.search(statement) or ADDS.search(statement):
        return False
    lists = re.findall(
        r"(?<=[\[ ])\[(-?\d+(?:, -?\d+)+)\]", statement.partition(" = ")[0]
    )
    written = [[int(n) for n in text.split(", ")] for text in lists]
    return repeats([*session.inputs(statement), *written])


def is_known(session, machine, statement, ours, theirs):
    """Whether a difference from a machine is known. ours and theirs are exceptions or
    None, or the two results."""
    name = type(machine).__name__
    if "out of memory" in f"{ours} {theirs}" or isinstance(theirs, MemoryError):
        return True
    if name == "Ours":
        if isinstance(ours, Value) and is_open(session, statement):
            return True
        infinite = "space(" in statement or "_mean(" in statement
        if "svd(" in statement:
            return True  # singular vectors have any sign; GPUs transpose wide matrices
        if "conv_transpose" in statement:
            # The CPU multiplies weights with zeros around the input, which makes
            # infinities NaN; a GPU leaves such products out.
            values = [v for v in session.inputs(statement) if isinstance(v, Value)]
            infinite = not all(np.isfinite(v.array).all() for v in values)
        return infinite or bool(ON_GPU.search(str(ours)))
    if name == "NumPy":
        # NumPy also checks where the result has no elements.
        words = (
            "empty sequence",
            "with size 0",
            "zero-size array",
            "out of bounds for",
            "boolean array indexing assignment requires",
        )
        empty = any(word in str(theirs) for word in words)
        return isinstance(theirs, Missing) or empty or bool(REFUSED.search(str(ours)))
    if ours is None and isinstance(theirs, Exception):
        return bool(MORE.search(str(theirs)))
    if theirs is None and isinstance(ours, Exception):
        # PyTorch checks less where there is no element.
        inputs = session.inputs(statement)
        empty = any(isinstance(v, Value) and not v.array.size for v in inputs)
        return empty or bool(STRICT.search(str(ours)))
    if isinstance(ours, Value) and ours.requires_grad != theirs.requires_grad:
        flat = "float" not in ours.dtype or not ours.array.size
        return flat or bool(FLAT.search(statement))
    if "histogram" in statement:
        return True
    if not ANY.search(statement):
        return False
    if isinstance(ours, tuple) and isinstance(ours[0], Value) and ours[0].array.ndim:
        # Which of equal elements: the values are the same.
        a, b = ours[0].array, theirs[0].array
        return (
            np.array_equal(a, b, equal_nan=a.dtype.kind == "f") or "unique" in statement
        )
    return True


# Differences from PyTorch in its own database of operations (op_database.py): a pattern
# of "operation form, type kind: sentence", and why the difference stays.
DATABASE = {
    r"wrong input refused: RuntimeError: \w+\(\): out has shape": (
        "out= is resized only where it is empty"
    ),
    r"taken: RuntimeError: (Expected out tensor to have|multinomial expects Long)": (
        "out= is converted"
    ),
    r"^__r\w+__ wrong input": "Python itself checks the self of a method",
    r"^(new_)?empty\w* (function|method|out), ": "nobody has written the memory",
    r"^(m?sort|argsort|topk|kthvalue|mode|(nan)?median) ": (
        "any of several equal elements may be the answer"
    ),
    r"^(linalg\.)?svd \w+, \w+ value|^linalg\.eigh ": "vectors have any sign",
    r"^(grid_sampler_\dd|nn\.functional\.grid_sample) \w+, float16 ": (
        "coordinates are computed in float32, PyTorch's in float16"
    ),
    r", float16 value: .* for np\.float64\((inf|nan)\)": (
        "what overflows in PyTorch's float16 on the way is computed in float32"
    ),
    r"^histc \w+, float16 ": "bins are found in float32, PyTorch's in float16",
    r"^nn\.functional\.hardsigmoid gradient, float64": "PyTorch's 1/6 is a float32",
    r"^nn\.functional\.binary_cross_entropy gradient, float64": (
        "PyTorch's second derivative has a least divisor"
    ),
    r"taken: RuntimeError: derivative for aten::\w+_backward is not implemented": (
        "higher derivatives, which PyTorch lacks"
    ),
    r"^matrix_exp \w+, float16 ": "PyTorch's result has no correct digit",
    r"^as_strided_scatter gradient, ": (
        "PyTorch gives the input the gradient of the elements that are replaced"
    ),
    r"^cholesky_(solve|inverse) gradient, ": (
        "the half of a factor that is not read has no gradient"
    ),
    r"^narrow wrong input ": "start is an int; to tell tensors apart slows each call",
    r"^narrow_copy wrong input error type: IndexError": "as of all other functions",
    r"^addbmm in place, \w+ refused: .* does not fit": "PyTorch resizes the tensor",
    r"^logcumsumexp \w+, complex(64|128) value": (
        "imaginary parts differ by multiples of 2 pi: another order"
    ),
}
