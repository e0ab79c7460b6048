"""How PyTorch prints tensors, sizes, dtypes and devices."""

import math
import random

from describe import dtype_name, flat, number

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
DTYPES = ("bool",) + INTEGERS + FLOATS

# Numbers that sit at each of the choices that the form of a float depends on.
FLOAT_SETS = {
    "whole": [1, 2, 3],
    "whole, negative": [-1, 0, 12],
    "whole, ratio 1000": [1, 1000],
    "whole, ratio above 1000": [1, 1001],
    "whole, large": [1e8, 99999999],
    "whole, above 1e8": [1e8, 2e8],
    "fractions": [0.5, 0.25, 0.1],
    "mixed": [1.5, -2.25, 100.0, 0.0],
    "smallest fixed": [0.0001, 0.05],
    "below 1e-4": [0.00009, 0.0123],
    "ratio 1000": [0.001, 1.0],
    "ratio above 1000": [0.001, 1.5],
    "rounds up in width": [9.99996, 1.0],
    "rounds up in exponent": [9.99996e5, 1.0],
    "large": [123456789.5, 1.0],
    "huge": [3e38, 1e-38],
    "zeros": [0.0, -0.0, 0.0],
    "one zero": [0.0],
    "nan": [math.nan],
    "infinite": [math.inf, -math.inf],
    "whole with nan": [1.0, math.nan, -3.0],
    "whole with inf": [1.0, math.inf, -math.inf],
    "fraction with inf": [0.5, math.inf, -math.inf, math.nan],
    "only zero, nan, inf": [0.0, math.nan, -math.inf],
    "negative zero": [-0.0, 1.0],
    "wide infinity": [math.inf, -math.inf, 1.0, 2.0],
    "scientific with nan": [1e-9, math.nan, -1e9, math.inf, 0.0],
    "thirds": [1 / 3, 2 / 3, -4 / 3],
    "three-digit exponents": [1e-200, -1e150, 1.0],
    "smallest": [5e-324, 1e-45, 6e-8],
}
# fmt: off
SHAPES = [
    [], [1], [2], [3], [10], [11], [12], [25], [1, 1], [1, 5], [5, 1], [2, 3], [3, 4],
    [2, 12], [2, 13], [1, 1, 1], [2, 2, 2], [2, 3, 4], [1, 2, 1, 2], [2, 1, 2, 2],
]
# fmt: on
EMPTY_SHAPES = [[0], [0, 3], [3, 0], [2, 0, 3], [1, 0]]
# Every size around the threshold, and each way in which dimensions can be cut or not.
# fmt: off
LARGE_SHAPES = [
    [1000], [1001], [2000], [40, 25], [7, 143], [6, 167], [1001, 1], [1, 1001], [8, 126],
    [10, 101], [3, 400], [400, 3], [11, 11, 11], [2, 3, 200], [200, 3, 2], [7, 6, 7, 6],
    [8, 8, 8, 8],
]
OPTIONS = [
    {"precision": 0}, {"precision": 2}, {"precision": 8}, {"precision": 16},
    {"threshold": 5}, {"threshold": 0}, {"threshold": 5, "edgeitems": 1},
    {"threshold": 5, "edgeitems": 2}, {"threshold": 0, "edgeitems": 0},
    {"threshold": 3, "edgeitems": 6}, {"linewidth": 20}, {"linewidth": 40},
    {"linewidth": 1}, {"linewidth": 120}, {"sci_mode": True}, {"sci_mode": False},
    {"sci_mode": True, "precision": 1}, {"profile": "short"}, {"profile": "full"},
    {"profile": "default"}, {"profile": "short", "precision": 6},
    {"edgeitems": 0},
]
OBJECTS = [
    "torch.Size([])", "torch.Size([3])", "torch.Size([2, 3])", "torch.Size([0, 3])",
    "torch.zeros(2, 3).shape", "torch.zeros(()).shape", "torch.zeros(4).size()",
    "torch.Size([2, 3])[1]", "torch.Size([2, 3])[:1]", "torch.Size([2, 3]) + (4,)",
    "tuple(torch.Size([2, 3]))", "list(torch.Size([2, 3]))",
    "torch.device('cpu')", "torch.device('cpu', 0)", "torch.device('cuda')",
    "torch.device('cuda:1')", "torch.device('cuda', 3)", "torch.device(type='cuda')",
    "torch.device(type='cuda', index=2)", "[torch.device('cpu'), torch.device('cuda:0')]",
    "torch.float32", "torch.float", "torch.float64", "torch.double", "torch.int64",
    "torch.long", "torch.int32", "torch.int", "torch.int16", "torch.short", "torch.int8",
    "torch.uint8", "torch.bool", "torch.ones(2).dtype", "torch.ones(2).device",
    "[torch.ones(1), torch.zeros(2)]", "(torch.ones(1),)", "{'a': torch.tensor(1)}",
    "torch.max(torch.tensor([[1., 3.], [4., 2.]]), dim=1)",
    "torch.tensor([[1, 3], [4, 2]]).min(0)",
]
FORMATS = [
    (2.5, "float32", [], ".3f"), (3.14159, "float32", [], ".3f"), (2.5, "float32", [], ""),
    (0.1, "float32", [], ""), (0.1, "float64", [], ""), (1e-7, "float32", [], "g"),
    (1e10, "float32", [], "e"), (0.256, "float64", [], ".1%"), (7, "int64", [], "d"),
    (7, "int64", [], "05d"), (7, "int32", [], ""), (7, "int64", [], ".2f"),
    (True, "bool", [], ""), (True, "bool", [], "d"), (255, "uint8", [], "x"),
    (math.inf, "float32", [], ".2f"), (math.nan, "float32", [], ""),
    (1.5, "float32", [1], ""), (1.5, "float32", [2, 2], ""), (1.5, "float32", [], ">10"),
    (1.5, "float32", [], "10.3f"), (1.5, "float32", [1], ".3f"), (2, "int64", [2], "d"),
    (2.0, "float32", [], "d"), (2.0, "float32", [], "!"),
]
# fmt: on


def make(torch):
    maker = Maker(torch)
    for dtype in DTYPES:
        maker.shapes(dtype)
        if dtype in FLOATS:
            maker.floats(dtype)
        else:
            maker.integers(dtype)
        maker.options(dtype)
        maker.layouts(dtype)
    maker.large()
    maker.notes()
    names = {"torch": torch}
    return {
        "tensors": maker.cases,
        "notes": maker.noted,
        "objects": [[source, str(eval(source, names))] for source in OBJECTS],
        "objects_repr": [[source, repr(eval(source, names))] for source in OBJECTS],
        "formats": [maker.format(*row) for row in FORMATS],
    }


class Maker:
    def __init__(self, torch):
        self.torch = torch
        self.random = random.Random(20130)
        self.cases = []
        self.noted = []

    def build(self, dtype, shape, values):
        """The tensor, and its values as the dtype holds them, so that a test starts there."""
        dtype = getattr(self.torch, dtype)
        tensor = self.torch.tensor(values, dtype=dtype).reshape(shape)
        return tensor, [number(each) for each in flat(tensor.tolist())]

    def print(self, tensor, options):
        self.torch.set_printoptions(profile="default")
        self.torch.set_printoptions(**options)
        text = repr(tensor)
        self.torch.set_printoptions(profile="default")
        if str(tensor) != repr(tensor):
            raise AssertionError("str and repr of a tensor differ")
        return text

    def add(self, dtype, shape, values, view="x", options=None):
        tensor, values = self.build(dtype, shape, values)
        tensor = eval(view, {"x": tensor})
        case = {"dtype": dtype, "shape": shape, "values": values}
        if view != "x":
            case["view"] = view
        if options:
            case["options"] = options
        case["text"] = self.print(tensor, options or {})
        self.cases.append(case)

    def add_range(self, dtype, shape, start, step, view="x", options=None):
        """As add, for many values: element i is start + i * step, stored as the rule."""
        values = [start + i * step for i in range(math.prod(shape))]
        self.add(dtype, shape, values, view, options)
        del self.cases[-1]["values"]
        self.cases[-1]["range"] = [start, step]

    def numbers(self, dtype, count):
        pick = self.random
        if dtype == "bool":
            return [pick.random() < 0.5 for _ in range(count)]
        if dtype in INTEGERS:
            low, high = (0, 200) if dtype == "uint8" else (-99, 99)
            return [pick.randint(low, high) for _ in range(count)]
        return [round(pick.uniform(-20, 20), 3) for _ in range(count)]

    def shapes(self, dtype):
        for shape in SHAPES:
            self.add(dtype, shape, self.numbers(dtype, math.prod(shape)))
        for shape in EMPTY_SHAPES:
            self.add(dtype, shape, [])

    def integers(self, dtype):
        if dtype == "bool":
            for values in ([True], [False], [True, True], [False, True, False]):
                self.add(dtype, [len(values)], values)
            return
        limits = self.torch.iinfo(getattr(self.torch, dtype))
        for values in ([0], [limits.min, limits.max], [limits.min] * 2, [1, 10, 100]):
            self.add(dtype, [len(values)], values)
        self.add(dtype, [], [limits.max])

    def floats(self, dtype):
        largest = self.torch.finfo(getattr(self.torch, dtype)).max
        for values in FLOAT_SETS.values():
            # Beyond the largest number of a small type is infinity, which is no new case.
            values = [
                each for each in values if abs(each) <= largest or each - each != 0
            ]
            self.add(dtype, [len(values)], values)
            if len(values) > 1:
                self.add(dtype, [], values[:1])

    def options(self, dtype):
        if dtype not in ("bool", "int64", "float32", "float64"):
            return
        for options in OPTIONS:
            self.add(dtype, [3, 4], self.numbers(dtype, 12), options=options)
            self.add(dtype, [9], self.numbers(dtype, 9), options=options)
            if dtype == "float32":
                self.add(dtype, [], [1.25], options=options)
                self.add(dtype, [0, 2], [], options=options)
                self.add(dtype, [4], [1.0, 2.0, -3.0, math.inf], options=options)
                self.add(dtype, [3], [1e-6, 1.0, math.nan], options=options)
                self.add(dtype, [2, 2, 3], self.numbers(dtype, 12), options=options)

    def layouts(self, dtype):
        if dtype not in ("int64", "float32"):
            return
        for shape, view in [
            ([3, 4], "x.t()"),
            ([3, 4], "x[:, 1]"),
            ([3, 4], "x[::2, ::3]"),
            ([2, 3, 4], "x.transpose(0, 2)"),
            ([2, 3, 4], "x.permute(1, 2, 0)"),
            ([1, 3], "x.expand(4, 3)"),
            ([10], "x[3:7]"),
            ([10], "x[::3]"),
            ([10], "x[2]"),
            ([3, 4], "x[1:1]"),
        ]:
            self.add(dtype, shape, self.numbers(dtype, math.prod(shape)), view)

    def large(self):
        for shape in LARGE_SHAPES:
            self.add_range("int64", shape, 0, 1)
            self.add_range("float32", shape, 0, 1)
        for dtype, start, step in [
            ("float32", -3.25, 0.125),
            ("float64", 0.001, 0.5),
            ("float64", -1e9, 1e7),
            ("int32", -5000, 7),
            ("float16", 0, 0.25),
            ("bfloat16", 0, 1),
        ]:
            self.add_range(dtype, [1200], start, step)
            self.add_range(dtype, [35, 36], start, step)
        self.add_range("float32", [35, 36], 0, 0.5, "x.t()")
        self.add_range("float32", [2500], 0, 0.5, "x[::2]")
        self.add_range("float32", [12, 11, 10], 0, 1, "x.permute(2, 0, 1)")
        self.add_range("int64", [1, 40], 0, 1, "x.expand(30, 40)")
        self.add_range("float32", [40], 0, 0.5, "x.expand(2, 30, 40)")
        # What is not shown has no say in the form: a single odd number in the middle.
        for odd in (0.5, 1e10, math.nan, -1e-7):
            values = [1.0] * 500 + [odd] + [2.0] * 600
            self.add("float32", [1101], values)
            del self.cases[-1]["values"]
            self.cases[-1]["middle"] = number(odd)
        for options in OPTIONS:
            if options.get("profile") != "full":
                self.add_range("float32", [30, 40], 0, 0.5, options=options)
                self.add_range("int64", [1100], 0, 1, options=options)
        self.add_range("int64", [20, 60], 0, 1, options={"profile": "full"})
        self.add_range("int64", [1100], 0, 1, options={"threshold": 1100})

    def notes(self):
        """Texts with a device, requires_grad and grad_fn.

        PyTorch's build for the CPU has no tensor on a GPU. Its printing asks a tensor for its
        device and grad_fn, so a subclass answers as such a tensor would; its name is the
        word that repr begins with, so that the columns fall as for a tensor itself.
        """
        torch = self.torch

        def wear(tensor, device, needs_grad, node):
            answers = {"device": property(lambda self: torch.device(device))}
            if node:
                answers["grad_fn"] = property(lambda self: type(node, (), {})())
            if needs_grad:
                answers["requires_grad"] = property(lambda self: True)
            kind = type("tensor", (torch.Tensor,), answers)
            return tensor.as_subclass(kind)

        for dtype, shape in [
            ("float32", []),
            ("float32", [3]),
            ("float32", [2, 3]),
            ("float32", [7]),
            ("float32", [8]),
            ("float32", [9]),
            ("float32", [0]),
            ("float32", [0, 3]),
            ("float64", [2]),
            ("float64", [2, 8]),
            ("int64", [4]),
            ("int32", [4]),
            ("int32", [14]),
            ("int32", [16]),
            ("bool", [2]),
            ("float16", [2]),
        ]:
            values = self.numbers(dtype, math.prod(shape))
            tensor, stored = self.build(dtype, shape, values)
            for device in ("cpu", "cuda:0", "cuda:1"):
                for needs_grad, node in [
                    (False, None),
                    (True, None),
                    (True, "AddmmBackward0"),
                    (True, "UnsafeViewBackward0"),
                ]:
                    if needs_grad and not dtype.startswith("float"):
                        continue
                    worn = wear(tensor, device, needs_grad, node)
                    self.noted.append(
                        {
                            "dtype": dtype,
                            "shape": shape,
                            "values": stored,
                            "device": device,
                            "requires_grad": needs_grad,
                            "grad_fn": node,
                            "text": self.print(worn, {}),
                        }
                    )
        large = torch.arange(1200.0).reshape(30, 40)
        for device in ("cuda:0", "cuda:1"):
            self.noted.append(
                {
                    "dtype": dtype_name(large.dtype),
                    "shape": [30, 40],
                    "range": [0.0, 1.0],
                    "device": device,
                    "requires_grad": False,
                    "grad_fn": None,
                    "text": self.print(wear(large, device, False, None), {}),
                }
            )

    def format(self, value, dtype, shape, spec):
        tensor = self.torch.full(shape, value, dtype=getattr(self.torch, dtype))
        case = {"dtype": dtype, "shape": shape, "value": number(value), "spec": spec}
        try:
            case["text"] = format(tensor, spec)
        except (TypeError, ValueError) as error:
            case["raises"] = type(error).__name__
        return case
