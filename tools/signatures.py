"""The signatures of the extension's functions, and valid arguments for each.

The signatures are those by which the extension binds calls, so a new function is
covered as soon as it exists. VALID has the arguments that a type alone does not tell.
"""

import functools
import re

import numpy as np

import pydevtensor as torch

# These change the whole process.
PROCESS_WIDE = {
    "set_default_device",
    "set_default_dtype",
    "set_num_threads",
    "set_printoptions",
}

# The modules of the package whose functions the extension binds.
NAMESPACES = ("", "fft", "linalg", "masked", "nn.functional", "special")

PARAMETER = re.compile(r"(\*?)(\w+): (\w+)(\??)(?: = (.+))?$")


class Parameter:
    def __init__(self, text, keyword):
        found = PARAMETER.match(text)
        assert found, f"a signature with {text!r} in it"
        self.rest, self.name, self.word, none, self.default = found.groups()
        self.required = self.default is None
        self.none = none or self.default == "None"  # whether None is taken
        self.keyword = keyword


def parameters(form):
    """The parameters of one form of a signature."""
    form = form.split(" -> ")[0]
    inner = form[form.index("(") + 1 : form.rindex(")")]
    keyword, found = False, []
    for part in filter(None, re.split(r", (?![^(]*\))", inner)):  # none inside ( )
        if part == "*":
            keyword = True
        else:
            found.append(Parameter(part, keyword))
    return found


def bound():
    """Each public function: its name, such as linalg.det, and the forms of a call."""
    for space in NAMESPACES:
        for name, text, is_function, _ in torch._C._signatures(space):
            if is_function and not name.startswith("_"):
                yield f"{space}.{name}".lstrip("."), text.split(" | ")


def function_of(name):
    """The function that a name such as linalg.det means."""
    return functools.reduce(getattr, name.split("."), torch)


def floats(*shape):
    n = int(np.prod(shape))
    return (torch.arange(n, dtype=torch.float32) % 5 / 4 + 0.25).reshape(shape)


def index(*numbers):
    return torch.tensor(numbers)


# Valid arguments by the parameter's name, where its type does not tell enough.
BY_NAME = {
    "mask": lambda: floats(2, 3) > 1,
    "condition": lambda: floats(2, 3) > 1,
    "index": lambda: index(0, 1, 0).reshape(1, 3),
    "indices": lambda: index(0, 1, 0).reshape(1, 3),
    "n": lambda: 2,
    "steps": lambda: 3,
    "k": lambda: 1,
    "chunks": lambda: 2,
    "split_size_or_sections": lambda: 1,
    "indices_or_sections": lambda: 1,
    "length": lambda: 1,
    "size": lambda: (2, 3),
    "shape": lambda: (2, 3),
    "dims": lambda: (0, 1),
    "sizes": lambda: (2, 3),
    "repeats": lambda: 2,
    "dim0": lambda: 0,
    "dim1": lambda: 1,
    "source": lambda: 0,
    "destination": lambda: 1,
    "end": lambda: 3,
    "num_samples": lambda: 1,
    "high": lambda: 5,
    "dtype": lambda: torch.float64,
    "fill_value": lambda: 1,
    "tensors": lambda: [floats(2, 3), floats(2, 3)],
    "data": lambda: [1, 2],
    "obj": lambda: floats(2),
    "ndarray": lambda: np.ones(2),
    "ext_tensor": lambda: np.ones(2),
    "buffer": lambda: bytearray(8),
    "device": lambda: "cpu",
    "exponent": lambda: 2,
    "weight": lambda: 0.5,
}
V, M, N, S = (lambda: floats(3)), (lambda: floats(2, 3)), (lambda: floats(3, 4)), None
S, B, C = (lambda: floats(3, 3)), (lambda: floats(2, 2, 3)), (lambda: floats(2, 3, 4))
D = lambda: torch.eye(3) * 2
STARTS, INNER = (lambda: [0, 1, 3]), (lambda: [1, 0, 2])
VALID = {
    "mm": {"input": M, "mat2": N},
    "view_as_complex": {"input": lambda: torch.ones(3, 2)},
    "scalar_tensor": {"s": lambda: 1.5},
    "view_as_real": {"input": lambda: torch.tensor([1 + 2j, 3 - 1j])},
    "stft": {
        "input": lambda: torch.ones(8, dtype=torch.complex64),
        "n_fft": lambda: 4,
    },
    "istft": {
        "input": lambda: torch.ones(3, 3, dtype=torch.complex64),
        "n_fft": lambda: 4,
    },
    "matmul": {"input": M, "other": N},
    "mv": {"input": M, "vec": V},
    "spmm": {"input": M, "mat2": N},
    "sparse_coo_tensor": {"indices": lambda: (2, 3)},
    "sparse_csr_tensor": {"crow_indices": STARTS, "col_indices": INNER, "values": V},
    "sparse_csc_tensor": {"ccol_indices": STARTS, "row_indices": INNER, "values": V},
    "sparse_mask": {"mask": lambda: torch.eye(3)[:2].to_sparse()},
    "dot": {"input": V, "tensor": V},
    "vdot": {"input": V, "other": V},
    "bmm": {"input": B, "mat2": C},
    "addmm": {"input": lambda: floats(2, 4), "mat1": M, "mat2": N},
    "addmv": {"input": lambda: floats(2), "mat": M, "vec": V},
    "addr": {"input": M, "vec1": lambda: floats(2), "vec2": V},
    "addbmm": {"input": lambda: floats(2, 4), "batch1": B, "batch2": C},
    "baddbmm": {"input": lambda: floats(2, 2, 4), "batch1": B, "batch2": C},
    "outer": {"input": V, "vec2": V},
    "linspace": {"start": lambda: 0.0, "end": lambda: 1.0},
    "logspace": {"start": lambda: 0.0, "end": lambda: 1.0},
    "ger": {"input": V, "vec2": V},
    "clamp": {"min": lambda: 0},
    "clip": {"min": lambda: 0},
    "select": {"index": lambda: 0},
    "select_copy": {"index": lambda: 0},
    "as_strided_copy": {"size": lambda: (2, 2), "stride": lambda: (1, 1)},
    "split_copy": {"split_size": lambda: 1},
    "split_with_sizes_copy": {"split_sizes": lambda: (1, 1)},
    "unfold_copy": {"size": lambda: 2, "step": lambda: 1},
    "view_as_complex_copy": {"input": lambda: torch.ones(2, 2)},
    "native_batch_norm": {
        "input": lambda: torch.ones(2, 2),
        "weight": lambda: None,
        "bias": lambda: None,
        "running_mean": lambda: None,
        "running_var": lambda: None,
        "training": lambda: True,
    },
    "native_group_norm": {
        "input": lambda: torch.ones(2, 2),
        "weight": lambda: None,
        "bias": lambda: None,
        "N": lambda: 2,
        "C": lambda: 2,
        "HxW": lambda: 1,
        "group": lambda: 1,
    },
    "as_strided": {"size": lambda: (2, 2), "stride": lambda: (1, 1)},
    "random_": {"to": lambda: 5},
    "manual_seed": {"seed": lambda: 5},
    "register_hook": {"input": lambda: M().requires_grad_(), "hook": lambda: abs},
    "register_post_accumulate_grad_hook": {
        "input": lambda: M().requires_grad_(),
        "hook": lambda: abs,
    },
    "retain_grad": {"input": lambda: M().requires_grad_() * 1},
    "backward": {"input": lambda: M().requires_grad_().sum()},
    "cross": {"dim": lambda: 1},
    "matrix_power": {"input": S},
    "tensordot": {"a": M, "b": M},
    "cdist": {"x1": M, "x2": M},
    "chain_matmul": {"matrices": lambda: [floats(2, 3), floats(3, 4)]},
    "meshgrid": {"tensors": lambda: [floats(2), floats(3)]},
    "index_select": {"dim": lambda: 1, "index": lambda: index(0, 2)},
    "index_add": {"index": lambda: index(0, 1), "source": M},
    "index_copy": {"index": lambda: index(0, 1), "source": M},
    "index_fill": {"index": lambda: index(0, 1), "value": lambda: 1},
    "index_put": {"indices": lambda: (index(0, 1),), "values": M},
    "scatter": {"src": M, "index": lambda: index(0, 1, 0).reshape(1, 3)},
    "masked_fill": {"value": lambda: 1},
    "masked_scatter": {"source": M},
    "lerp": {"end": M},
    "view": {"size": lambda: (3, 2)},
    "reshape": {"shape": lambda: (3, 2)},
    "expand": {"size": lambda: (2, 3)},
    "permute": {"dims": lambda: (1, 0)},
    "item": {"self": lambda: torch.tensor(1.0)},
    "squeeze": {"dim": lambda: 0},
    "copy_": {"src": M},
    "bernoulli": {"input": lambda: floats(2, 3) / 2},
    "multinomial": {"input": M},
    "bincount": {"input": lambda: index(0, 1, 1)},
    "bucketize": {"boundaries": V},
    "dsplit": {"input": lambda: floats(2, 3, 4)},
    "nanquantile": {"q": lambda: 0.5},
    "quantile": {"q": lambda: 0.5},
    "repeat": {"repeats": lambda: (2, 2)},
    "split_with_sizes": {"split_sizes": lambda: (1, 1)},
    "unflatten": {"dim": lambda: 1, "sizes": lambda: (3, 1)},
    "unfold": {"size": lambda: 2, "step": lambda: 1},
    "slice_scatter": {
        "src": lambda: floats(1, 3),
        "dim": lambda: 0,
        "start": lambda: 0,
        "end": lambda: 1,
    },
    "fill": {"value": lambda: 1},
    "select_scatter": {"src": V, "index": lambda: 0},
    "diagonal_scatter": {"src": lambda: floats(2)},
    "as_strided_scatter": {
        "src": lambda: floats(2, 2),
        "size": lambda: (2, 2),
        "stride": lambda: (2, 1),
    },
    "cartesian_prod": {"tensors": lambda: [floats(2), floats(3)]},
    "combinations": {"input": V, "r": lambda: 2},
    "vander": {"x": V, "N": lambda: 3},
    "unravel_index": {"indices": lambda: index(0, 1), "shape": lambda: (2, 3)},
    "broadcast_shapes": {"shapes": lambda: (2, 3)},
    "tril_indices": {"row": lambda: 2, "col": lambda: 3},
    "triu_indices": {"row": lambda: 2, "col": lambda: 3},
    "empty_strided": {"stride": lambda: (3, 1)},
    "new_empty_strided": {"stride": lambda: (3, 1)},
    "empty_permuted": {"physical_layout": lambda: (1, 0)},
    "asarray": {"obj": lambda: [1, 2]},
    "scatter_reduce": {
        "src": M,
        "index": lambda: index(0, 1, 0).reshape(1, 3),
        "reduce": lambda: "sum",
    },
    "index_reduce": {
        "index": lambda: index(0, 1),
        "source": M,
        "reduce": lambda: "prod",
    },
    "put": {"index": lambda: index(0, 3), "source": lambda: floats(2)},
    "trapezoid": {"y": M},
    "cumulative_trapezoid": {"y": M},
    "gradient": {"input": S},
    "histogram": {"input": M, "bins": lambda: 3},
    "as_subclass": {"cls": lambda: torch.Tensor},
    "histogramdd": {"input": M, "bins": lambda: 3},
    "unsafe_split": {"split_size": lambda: 2},
    "renorm": {"p": lambda: 2, "dim": lambda: 0, "maxnorm": lambda: 1},
    "geometric_": {"p": lambda: 0.5},
    **{
        f"{name}_window": {"window_length": lambda: 4}
        for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")
    },
    **{
        f"conv{kind}{n}d": {
            "input": lambda n=n: floats(1, 2, *[5] * n),
            "weight": lambda n=n: floats(2, 2, *[3] * n),
            "bias": lambda: floats(2),
        }
        for n in (1, 2, 3)
        for kind in ("", "_transpose")
    },
    "convolution": {
        "input": lambda: floats(1, 2, 5),
        "weight": lambda: floats(2, 2, 3),
        "bias": lambda: floats(2),
        "stride": lambda: (1,),
        "padding": lambda: (0,),
        "dilation": lambda: (1,),
        "transposed": lambda: False,
        "output_padding": lambda: (0,),
        "groups": lambda: 1,
    },
    **{
        name: {
            "input": lambda n=n: floats(1, 2, *[4] * n),
            "kernel_size": lambda: 2,
            "stride": lambda: 2,
            "padding": lambda: 0,
            "dilation": lambda: 1,
        }
        for name, n in (
            *(("avg_pool1d", 1), ("max_pool1d", 1), ("max_pool1d_with_indices", 1)),
            *(("max_pool2d", 2), ("max_pool3d", 3)),
        )
    },
    "channel_shuffle": {"input": lambda: floats(1, 4, 2, 2), "groups": lambda: 2},
    "pixel_shuffle": {
        "input": lambda: floats(1, 4, 2, 2),
        "upscale_factor": lambda: 2,
    },
    "pixel_unshuffle": {
        "input": lambda: floats(1, 1, 4, 4),
        "downscale_factor": lambda: 2,
    },
    "grid_sampler": {
        "input": lambda: floats(1, 1, 3, 3),
        "grid": lambda: floats(1, 2, 2, 2),
    },
    "group_norm": {
        "input": lambda: floats(1, 4, 2),
        "num_groups": lambda: 2,
        "weight": lambda: floats(4),
        "bias": lambda: floats(4),
    },
    "instance_norm": {
        "input": lambda: floats(1, 3, 2),
        "weight": V,
        "bias": V,
        "running_mean": V,
        "running_var": V,
        "use_input_stats": lambda: True,
    },
    "prelu": {"weight": lambda: floats(1)},
    "mvlgamma": {"input": lambda: floats(2, 3) + 2, "p": lambda: 2},
    **{
        name: {"input": D}
        for name in (
            *("cholesky", "cholesky_inverse", "det", "inverse", "logdet"),
            *("matrix_exp", "slogdet"),
        )
    },
    "cholesky_solve": {"input": S, "input2": D},
    "triangular_solve": {"input": S, "A": D},
    "lu_solve": {
        "input": S,
        "LU_data": D,
        "LU_pivots": lambda: torch.tensor([1, 2, 3], dtype=torch.int32),
    },
    **{
        name: {
            "input": lambda: floats(2, 1, 3),
            "hx": lambda name=name: (
                [floats(1, 1, 4), floats(1, 1, 4)]
                if name == "lstm"
                else floats(1, 1, 4)
            ),
            "params": lambda rows=rows: [floats(rows, 3), floats(rows, 4)],
            "has_biases": lambda: False,
            "num_layers": lambda: 1,
            "dropout": lambda: 0.0,
            "train": lambda: False,
            "bidirectional": lambda: False,
            "batch_first": lambda: False,
        }
        for name, rows in (("lstm", 16), ("gru", 12), ("rnn_tanh", 4), ("rnn_relu", 4))
    },
    **{
        f"{name}_cell": {
            "input": lambda: floats(2, 3),
            "hx": lambda name=name: (
                [floats(2, 4), floats(2, 4)] if name == "lstm" else floats(2, 4)
            ),
            "w_ih": lambda rows=rows: floats(rows, 3),
            "w_hh": lambda rows=rows: floats(rows, 4),
            "b_ih": lambda rows=rows: floats(rows),
            "b_hh": lambda rows=rows: floats(rows),
        }
        for name, rows in (("lstm", 16), ("gru", 12), ("rnn_tanh", 4), ("rnn_relu", 4))
    },
    "apply_": {"callable": lambda: abs},
    "map_": {"tensor": M, "callable": lambda: max},
    "map2_": {"x": M, "y": M, "callable": lambda: max},
    "conv_tbc": {
        "input": lambda: floats(4, 1, 2),
        "weight": lambda: floats(2, 2, 3),
        "bias": V,
    },
    "nonzero_static": {"size": lambda: 2},
    "is_nonzero": {"input": lambda: floats(1)},
    "repeat_interleave": {"repeats": lambda: index(2)},
    "affine_grid_generator": {"theta": B, "size": lambda: (2, 1, 2, 3)},
    "grid_sampler_2d": {
        "input": lambda: floats(1, 1, 3, 3),
        "grid": lambda: floats(1, 2, 2, 2),
    },
    "grid_sampler_3d": {
        "input": lambda: floats(1, 1, 3, 3, 3),
        "grid": lambda: floats(1, 2, 2, 2, 3),
    },
    "lu_unpack": {
        "LU_data": S,
        "LU_pivots": lambda: torch.tensor([1, 2, 3], dtype=torch.int32),
    },
    "batch_norm": {"weight": V, "bias": V, "running_mean": V, "running_var": V},
}
VALID |= {
    f"linalg.{name}": {"A": D}
    for name in (
        *("cholesky", "cholesky_ex", "det", "eig", "eigh", "eigvals", "eigvalsh"),
        *("inv", "inv_ex", "matrix_exp", "matrix_power", "slogdet"),
    )
}
VALID |= {f"linalg.{name}": {"A": D, "B": D} for name in ("solve", "solve_ex", "lstsq")}
VALID |= {
    "linalg.solve_triangular": {"A": D, "B": D, "upper": lambda: True},
    "linalg.lu_solve": {
        "LU": D,
        "B": D,
        "pivots": lambda: torch.tensor([1, 2, 3], dtype=torch.int32),
    },
    "linalg.householder_product": {"input": D, "tau": V},
    "orgqr": {"input": D, "tau": V},
    "ormqr": {"input": D, "tau": V, "other": D},
    "linalg.multi_dot": {"tensors": lambda: [floats(2, 3), floats(3, 4)]},
    "linalg.tensorinv": {"A": D, "ind": lambda: 1},
    "linalg.tensorsolve": {"A": D, "B": V},
    "affine_grid": {
        "theta": lambda: floats(1, 2, 3),
        "size": lambda: (1, 1, 2, 2),
        "align_corners": lambda: True,
    },
    "bilinear": {
        "input1": M,
        "input2": M,
        "weight": lambda: floats(2, 3, 3),
        "bias": lambda: floats(2),
    },
    "binary_cross_entropy": {
        "input": lambda: floats(2, 3) / 2,
        "target": lambda: floats(2, 3) / 2,
    },
    "cosine_embedding_loss": {
        "input1": M,
        "input2": M,
        "target": lambda: torch.tensor([1.0, -1.0]),
    },
    "ctc_loss": {
        "log_probs": lambda: floats(4, 1, 3).log(),
        "targets": lambda: index(1, 2).reshape(1, 2),
        "input_lengths": lambda: (4,),
        "target_lengths": lambda: (2,),
    },
    "embedding": {"input": lambda: index(0, 1), "weight": M},
    "embedding_bag": {
        "input": lambda: index(0, 1),
        "weight": M,
        "offsets": lambda: index(0, 1),
    },
    "fold": {
        "input": lambda: floats(4, 2),
        "output_size": lambda: (2, 3),
        "kernel_size": lambda: 2,
    },
    "nn.functional.unfold": {
        "input": lambda: floats(1, 3, 3),
        "kernel_size": lambda: 2,
    },
    "glu": {"input": lambda: floats(2, 4)},
    "grid_sample": {
        "input": lambda: floats(1, 1, 3, 3),
        "grid": lambda: floats(1, 2, 2, 2),
    },
    "local_response_norm": {"input": lambda: floats(1, 3, 2), "size": lambda: 2},
    "multi_head_attention_forward": {
        "query": lambda: floats(2, 1, 4),
        "key": lambda: floats(2, 1, 4),
        "value": lambda: floats(2, 1, 4),
        "embed_dim_to_check": lambda: 4,
        "num_heads": lambda: 2,
        "in_proj_weight": lambda: floats(12, 4),
        "in_proj_bias": lambda: floats(12),
        "bias_k": lambda: None,
        "bias_v": lambda: None,
        "out_proj_weight": lambda: floats(4, 4),
        "out_proj_bias": lambda: floats(4),
    },
    "multi_margin_loss": {"target": lambda: index(0, 1)},
    "multilabel_margin_loss": {"target": lambda: index(0, 1, -1, 1, -1, 0).view(2, 3)},
    "nll_loss": {"target": lambda: index(0, 1)},
    "one_hot": {"tensor": lambda: index(0, 1), "num_classes": lambda: 3},
    "native_channel_shuffle": VALID["channel_shuffle"],
}
for n in (1, 2, 3):
    image = {"input": lambda n=n: floats(1, 2, *[5] * n)}
    window = image | {"kernel_size": lambda: 2}
    windows = (f"avg_pool{n}d", f"max_pool{n}d", f"max_pool{n}d_with_indices")
    VALID |= {f"nn.functional.{name}": window for name in windows}
    VALID[f"lp_pool{n}d"] = window | {"norm_type": lambda: 2}
    for name in ("avg_pool", "max_pool"):
        for end in ("", "_with_indices"):
            VALID[f"adaptive_{name}{n}d{end}"] = image | {"output_size": lambda: 2}
    for end in ("", "_with_indices"):
        VALID[f"fractional_max_pool{n}d{end}"] = window | {"output_size": lambda: 2}
    VALID[f"max_unpool{n}d"] = window | {
        "input": lambda n=n: floats(1, 1, *[1] * n),
        "indices": lambda n=n: torch.zeros((1, 1, *[1] * n), dtype=torch.int64),
    }
for each in ("interpolate", "upsample", "upsample_nearest", "upsample_bilinear"):
    VALID[each] = {"input": lambda: floats(1, 1, 2, 2), "size": lambda: (3, 3)}
# Rows of ops/elementwise.def that take no floats.
OF_INTEGERS = {
    name
    for name, _, kind, _, _, (_, _, floats_too, _), _ in torch._C._operations()
    if kind != "CHOICE" and not floats_too
}

BY_WORD = {
    "Tensor": lambda: floats(2, 3),
    "Tensors": lambda: [floats(2, 3), floats(2, 3)],
    "Value": lambda: floats(2, 3),
    "Number": lambda: 1,
    "Scalar": lambda: 1,
    "float": lambda: 0.5,
    "int": lambda: 0,
    "bool": lambda: False,
    "Truth": lambda: False,
    "str": lambda: "ij",
    "Order": lambda: 2,
    "Dims": lambda: 0,
    "Lengths": lambda: 2,
    "Sizes": lambda: (2, 3),
    "Ints": lambda: (1, 0, 0, 1),
    "Dtype": lambda: torch.float32,
    "Device": lambda: "cpu",
    "Generator": lambda: None,
    "Layout": lambda: torch.strided,
    "Format": lambda: torch.contiguous_format,
    "Any": lambda: None,
}


def on(value, device):
    if isinstance(value, list):
        return [on(each, device) for each in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value


def known(name):
    """The entry of VALID, which functions of several namespaces and in place share."""
    last = name.rpartition(".")[2]
    keys = (name, last, last.removesuffix("_"))
    return next((VALID[key] for key in keys if key in VALID), {})


def valid(name, parameter, device):
    """A valid value for a parameter; each call makes a new one."""
    make = known(name).get(parameter.name)
    of_integers = name.removesuffix("_") in OF_INTEGERS
    if make is None and of_integers and parameter.word in ("Tensor", "Value"):
        make = lambda: index(1, 2)
    if make is None and parameter.word != "Tensor":
        make = BY_NAME.get(parameter.name)
    if make is None and parameter.name in ("mask", "condition", "index", "indices"):
        make = BY_NAME[parameter.name]
    if parameter.name == "device":
        return device
    return on((make or BY_WORD[parameter.word])(), device)
