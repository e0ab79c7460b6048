"""Random programs of calls over tensors, as text that runs in any of the machines.

The calls come from the extension's own signatures (tools/signatures.py): a new function
is covered as soon as it exists. A program is a list of statements; the generator runs
each one as it writes it, so that it knows the tensors that the next one may use.
"""

from __future__ import annotations

import bisect
import collections
import math
import random
import zlib
from types import SimpleNamespace

import signatures

import pydevtensor as torch

from . import hostile

DTYPES = (
    *("float32",) * 6,
    *("float64", "int64") * 3,
    *("bool", "uint8", "int8", "int16", "int32", "float16", "bfloat16"),
)
# What no second run or no other library can answer alike: memory that nobody wrote,
# addresses, devices, random numbers (most of their functions have a parameter
# `generator`), sparse tensors.
UNCOMPARABLE = {
    *("data_ptr", "record_stream", "pin_memory", "is_pinned", "cpu", "cuda", "type"),
    *("to_device", "storage", "untyped_storage", "is_shared", "share_memory_"),
    *("get_device", "seed", "initial_seed", "manual_seed", "frombuffer", "from_numpy"),
    *("from_dlpack", "to_dlpack", "numpy", "get_default_dtype", "get_default_device"),
    *("get_num_threads", "is_tensor", "typename", "register_hook", "retain_grad"),
    *("detach_", "requires_grad_", "backward", "set_", "is_inference"),
    *("sparse_mask", "to_sparse", "to_sparse_coo", "to_sparse_csc", "to_sparse_csr"),
    *("sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor"),
    *("svd_lowrank", "pca_lowrank"),
}
SPECIAL = ("nan", "inf", "-inf", "-0.0", "1e30", "1e-30", "65504.0")
WORDS = {
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"),
    "rounding_mode": ("trunc", "floor"),
    "interpolation": ("linear", "lower", "higher", "nearest", "midpoint"),
    "indexing": ("ij", "xy"),
    "side": ("left", "right"),
    "reduction": ("mean", "sum", "none"),
}
BINARY = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "@",
    "&",
    "|",
    "^",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
]


def callables(every=False):
    """The functions and methods, those that can be compared or every one."""
    for name, text, is_function, is_method in torch._C._signatures():
        if name.startswith("_") or name in signatures.PROCESS_WIDE:
            continue
        # XTensor() makes tensors on the CPU, whatever the default device is.
        parts = ("empty", "rand", "Tensor", "dropout", "rrelu", "resize")
        apart = any(part in name for part in parts)
        if not every and (apart or "generator" in text or name in UNCOMPARABLE):
            continue
        for form in text.split(" | "):
            for method in (False,) * is_function + (True,) * is_method:
                yield SimpleNamespace(
                    name=name, method=method, parameters=signatures.parameters(form)
                )


class Ring:
    """Chooses among calls. Each has points of its own on a ring, made from its name; a
    random point belongs to the next one. So a new function changes the programs that it
    appears in and no others, and a seed goes on meaning the same program."""

    POINTS = 16

    def __init__(self, calls):
        self.points = sorted(
            (zlib.crc32(f"{number} {text}".encode()), text, call)
            for text, call in self.named(calls)
            for number in range(self.POINTS)
        )
        self.numbers = [number for number, *_ in self.points]

    @staticmethod
    def named(calls):
        seen = collections.Counter()
        for call in calls:
            text = f"{'Tensor' if call.method else 'torch'}.{call.name}"
            seen[text] += 1
            yield f"{text} {seen[text]}", call

    def choose(self, rng):
        at = bisect.bisect(self.numbers, rng.randrange(1 << 32))
        return self.points[at % len(self.points)][-1]


CALLS = Ring(callables())
EVERY = Ring(callables(every=True))


def nested(values, shape):
    """The text of a nested list."""
    if not shape:
        return values.pop(0)
    return "[" + ", ".join(nested(values, shape[1:]) for _ in range(shape[0])) + "]"


class Generator:
    """Writes statements; run(text) executes one in namespace and returns its error."""

    def __init__(self, seed, namespace, run, *, spoils=False):
        self.rng = random.Random(seed)
        self.namespace = namespace
        self.run = run
        self.names: list[str] = []
        self.count = 0
        self.gradients = self.rng.random() < 0.4
        self.hostile, self.spares = spoils, 0
        self.dtype = "float32"  # of an example's tensors

    # --- what is there

    def value(self, name):
        return self.namespace[name]

    def flip(self, probability=0.5):
        return self.rng.random() < probability

    def emit(self, expression, target=None, prefix="t"):
        """Runs a statement; gives the name of its result if that is a tensor."""
        if target is None:
            self.count += 1
            target = f"{prefix}{self.count}"
        if self.run(f"{target} = {expression}") is not None:
            return None
        found = self.namespace[target]
        if isinstance(found, torch.Tensor):
            self.names.append(target)
            return target
        if isinstance(found, (tuple, list)) and not isinstance(found, torch.Size):
            tensors = [i for i, v in enumerate(found) if isinstance(v, torch.Tensor)]
            if tensors:
                return self.emit(f"{target}[{self.rng.choice(tensors)}]")
        return None

    # --- tensors

    def size(self):
        return self.rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5))

    def shape(self, ndim=None):
        if ndim is None:
            ndim = self.rng.choice((0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5))
        shape = [self.size() for _ in range(ndim)]
        if ndim in (1, 2) and self.flip(0.06):
            shape[-1] = self.rng.choice((17, 33, 64, 70, 257, 1030))
        return tuple(shape)

    def literal(self, shape, dtype, low=None, high=None):
        """The text of a new tensor; low and high bound its numbers."""
        rng, n = self.rng, math.prod(shape)
        kind = f"dtype=torch.{dtype}"
        if n == 0:
            return f"torch.zeros({tuple(shape)}, {kind})"
        bounded = low is not None
        low = low if bounded else 0 if dtype in ("uint8", "bool") else -4
        high = high if bounded else 5
        if n > 40:
            step = rng.choice((1, 3, 7, 11))
            text = f"torch.arange({n}) * {step} % {high - low} + {low}"
            if "float" in dtype:
                text = f"({text}) / {rng.choice((1, 2, 4))}"
            return f"({text}).to(torch.{dtype}).reshape{tuple(shape)}"
        if dtype == "bool":
            values = [str(self.flip()) for _ in range(n)]
        elif "int" in dtype:
            values = [str(rng.randrange(low, high)) for _ in range(n)]
            if not bounded and self.flip(0.05):
                values[0] = str(torch.iinfo(getattr(torch, dtype)).max)
        else:
            values = [str(rng.randrange(low * 4, high * 4) / 4) for _ in range(n)]
            if not bounded and self.flip(0.1):
                values[rng.randrange(n)] = f"float({rng.choice(SPECIAL)!r})"
        return f"torch.tensor({nested(values, tuple(shape))}, {kind})"

    def fresh(self, shape=None, dtype=None, **bounds):
        """A new tensor of that shape, dense or as a view of a larger one."""
        rng = self.rng
        shape = self.shape() if shape is None else tuple(shape)
        dtype = dtype or rng.choice(DTYPES)
        layout = rng.randrange(8) if shape else 7
        if layout == 0:
            order = rng.sample(range(len(shape)), len(shape))
            moved = [0] * len(shape)
            for i, d in enumerate(order):
                moved[d] = shape[i]
            text = f"{self.literal(moved, dtype, **bounds)}.permute({order})"
        elif layout == 1:
            d = rng.randrange(len(shape))
            wide = [*shape[:d], 2 * shape[d], *shape[d + 1 :]]
            colons = ":, " * d
            text = f"{self.literal(wide, dtype, **bounds)}[{colons}1::2]"
        elif layout == 2:
            small = [1 if self.flip(0.4) else n for n in shape]
            text = f"{self.literal(small, dtype, **bounds)}.expand({tuple(shape)})"
        elif layout == 3:
            d = rng.randrange(len(shape))
            wide = [*shape[:d], shape[d] + 1, *shape[d + 1 :]]
            text = (
                f"{self.literal(wide, dtype, **bounds)}.narrow({d}, 1, {shape[d]})"
                if shape[d]
                else self.literal(shape, dtype, **bounds)
            )
        elif layout == 4:
            d = rng.randrange(len(shape))
            text = f"{self.literal(shape, dtype, **bounds)}.flip({d})"
        else:
            text = self.literal(shape, dtype, **bounds)
        name = self.emit(text)
        if name and self.gradients and "float" in dtype and self.flip():
            self.run(f"{name}.requires_grad_()")
        return name

    def broadcastable(self, shape):
        """A shape that broadcasts with it; sometimes one that does not."""
        if self.flip(0.03):
            return self.shape()
        small = [1 if self.flip(0.2) else n for n in shape]
        if self.flip(0.2):
            small = small[self.rng.randrange(len(small) + 1) :]
        elif self.flip(0.05) and len(small) < 5:
            small = [self.size(), *small]
        return tuple(small)

    def any_tensor(self):
        if self.names and self.flip(0.85):
            return self.rng.choice(self.names[-8:])
        return self.fresh()

    def beside(self, x):
        """A tensor to compute with together with x."""
        if self.flip(0.4):
            shapes = [n for n in self.names if self.value(n).shape == x.shape]
            if shapes:
                return self.rng.choice(shapes)
        dtype = str(x.dtype)[6:] if self.flip(0.7) else None
        return self.fresh(self.broadcastable(x.shape), dtype)

    # --- arguments

    def number(self):
        return self.rng.choice(
            ("0", "1", "2", "-1", "3", "0.5", "-1.5", "True", "2.0", "float('inf')")
        )

    def dim(self, x):
        n = x.dim() or 1
        return self.rng.randrange(-n, n) if self.flip(0.97) else n

    def dims(self, x):
        n = x.dim()
        count = self.rng.randrange(n + 1)
        some = self.rng.sample(range(n), count)
        return [d - n if self.flip(0.3) else d for d in some]

    def sizes(self, x, call):
        """A Sizes argument: what it means depends on the function."""
        rng, shape = self.rng, tuple(x.shape)
        if "permute" in call.name:
            return tuple(rng.sample(range(len(shape)), len(shape)))
        if call.name in ("flip", "rot90"):
            found = self.dims(x)
            return tuple(found[:2] if call.name == "rot90" else found)
        if call.name in ("repeat", "tile"):
            return tuple(rng.choice((0, 1, 1, 2, 3)) for _ in range(x.dim() or 1))
        if call.name in ("expand", "broadcast_to"):
            more = (self.size(),) if self.flip(0.3) else ()
            return more + tuple(self.size() if n == 1 else n for n in shape)
        if call.name == "sum_to_size":
            return tuple(1 if self.flip(0.3) else n for n in shape)
        if "shape" in call.name or "view" in call.name or call.name == "unflatten":
            return self.factors(x.numel())
        if call.name == "layer_norm":
            return shape[-rng.randint(1, len(shape)) :] if shape else (1,)
        return self.shape(rng.randint(0, 3))

    def factors(self, n):
        """Sizes whose product is n, one of them sometimes -1."""
        found, rest = [], n
        while rest > 1 and len(found) < 3 and self.flip(0.7):
            divisors = [d for d in range(1, min(rest, 64) + 1) if rest % d == 0]
            found.append(self.rng.choice(divisors))
            rest //= found[-1]
        found.append(rest)
        if self.flip(0.3):
            found.append(1)
        self.rng.shuffle(found)
        if self.flip(0.3) and 0 not in found:
            found[self.rng.randrange(len(found))] = -1
        return tuple(found)

    def index_tensor(self, call, p, x, done):
        """Integers in range, with the rank that the function's example has."""
        example = signatures.valid(call.name, p, "cpu")
        d = done.get("dim")
        along = isinstance(d, int) and -x.dim() <= d < x.dim()
        size = x.shape[d] if along else x.numel()
        flat = isinstance(example, torch.Tensor) and example.dim() == 1
        shape = (
            (self.size(),) if flat else [max(1, n - self.flip(0.3)) for n in x.shape]
        )
        if not size:
            shape = (0,)
        low = 0 if self.flip(0.9) or size < 2 else -1
        return self.fresh(shape, "int64", low=low, high=max(size, 1))

    def argument(self, call, p, x, done):
        """The text of an argument of a call whose first tensor is x."""
        rng, word, name = self.rng, p.word, p.name
        if word == "Value" and self.flip(0.4):
            return self.number()
        if word in ("Tensor", "Value"):
            if name in ("mask", "condition"):
                return self.fresh(self.broadcastable(x.shape), "bool")
            if name in ("index", "indices"):
                return self.index_tensor(call, p, x, done)
            if name in ("weight", "bias", "running_mean", "running_var"):
                d = 1 if call.name == "batch_norm" else -1
                size = x.shape[d] if x.dim() > 1 else 1
                return self.fresh((size,), str(x.dtype)[6:])
            if name in ("src", "source") and "index" in done:
                index = self.namespace.get(done["index"])
                if index is not None and index.dim() == x.dim():
                    return self.fresh(index.shape, str(x.dtype)[6:])
            return self.beside(x)
        if word == "Tensors":
            others = [self.beside(x) for _ in range(rng.randrange(3))]
            return f"[{', '.join(filter(None, (*others, done['first'])))}]"
        if word in ("Number", "Scalar", "float"):
            return self.number()
        if word == "bool":
            return str(self.flip())
        if word == "str":
            return repr(rng.choice(WORDS.get(name, ("none",))))
        if word == "Order":
            return rng.choice(("'fro'", "1", "2", "0", "3", "float('inf')", "-1"))
        if word == "Dims":
            found = self.dims(x)
            return rng.choice(("None", str(self.dim(x)), str(found)))
        if word == "Sizes":
            return str(self.sizes(x, call))
        if word == "Ints":
            size, parts = (x.shape[0] if x.dim() else 1), []
            while size > 0 and len(parts) < 3:
                parts.append(rng.randint(0, size))
                size -= parts[-1]
            return str([*parts, max(size, 0)])
        if word == "Dtype":
            return f"torch.{rng.choice(DTYPES)}"
        if word == "Format":
            return rng.choice(("torch.contiguous_format", "torch.preserve_format"))
        if word == "int":
            if any(part in name for part in ("dim", "axis")):
                return str(self.dim(x))
            d = done.get("dim", 0)
            d = d if isinstance(d, int) and -x.dim() <= d < x.dim() else 0
            size = x.shape[d] if x.dim() else 1
            if name in ("index", "start"):
                return str(rng.randrange(-size, size) if size else 0)
            if name in ("k", "length", "size", "end"):
                return str(rng.randint(0, size))
            return str(rng.choice((0, 1, 1, 2, 3, -1)))
        return None  # a value of any kind: what the example has

    def template(self, call):
        """The arguments of the function's example, its sizes replaced by others."""
        swap = {n: self.size() for n in (2, 3, 4)} if self.flip(0.8) else {}
        self.dtype = self.rng.choice(DTYPES) if self.flip(0.3) else "float32"
        positional, keywords = [], []
        known = signatures.known(call.name)
        for p in call.parameters:
            if not (p.required or p.name in known) or p.name == "out":
                continue
            value = signatures.valid(call.name, p, "cpu")
            text = self.example(value, swap, sized=p.word in ("Sizes", "Ints"))
            if text is None:
                return None
            (keywords if p.keyword else positional).append((p.name, text))
        return positional, keywords

    def example(self, value, swap, sized=False):
        if isinstance(value, torch.Tensor):
            shape = [swap.get(n, n) for n in value.shape]
            if value.dtype == torch.int64:
                high = max(1, min([2, *swap.values()]))
                return self.fresh(shape, "int64", low=0, high=high)
            dtype = "bool" if value.dtype == torch.bool else self.dtype
            return self.fresh(shape, dtype if self.flip(0.95) else None)
        if isinstance(value, (list, tuple)):
            if sized:
                return str(tuple(swap.get(n, n) for n in value))
            parts = [self.example(each, swap) for each in value]
            if None in parts:
                return None
            return "[" + ", ".join(parts) + "]"
        if value is None or isinstance(value, (int, float, str, bool)):
            return repr(value)
        if isinstance(value, (torch.dtype, torch.memory_format)):
            return str(value)
        return None

    # --- statements

    def spoil(self, texts):
        """Puts hostile values in place of some arguments."""
        if not self.hostile:
            return texts
        return [
            self.rng.choice(hostile.VALUES)
            if i >= self.spares and self.flip(0.3)
            else text
            for i, text in enumerate(texts)
        ]

    def call(self):
        call = (EVERY if self.hostile else CALLS).choose(self.rng)
        self.spares = call.method
        made = self.template(call) if self.flip(0.3) else self.free(call)
        if made is None:
            return
        positional, keywords = made
        if not self.flip(0.85):  # some by name
            at = self.rng.randrange(len(positional) + 1)
            if not any(p.rest for p in call.parameters):
                keywords = positional[max(at, call.method) :] + keywords
                positional = positional[: max(at, call.method)]
        texts = [text for _, text in positional]
        if call.method and not (texts and texts[0].isidentifier()):
            return
        texts = self.spoil(texts)
        named = self.spoil([text for _, text in keywords])
        words = [f"{n}={v}" for (n, _), v in zip(keywords, named, strict=True)]
        if self.hostile and self.flip(0.2):
            p = self.rng.choice(call.parameters or [SimpleNamespace(name="x")])
            if p.name not in dict(keywords):
                words.append(f"{p.name}={self.rng.choice(hostile.VALUES)}")
        head = f"{texts.pop(0)}.{call.name}" if call.method else f"torch.{call.name}"
        result = self.emit(f"{head}({', '.join(texts + words)})")
        has_out = any(p.name == "out" and p.word == "Tensor" for p in call.parameters)
        if result and has_out and self.flip(0.15):
            out = self.rng.choice((result, self.any_tensor(), "torch.empty(0)"))
            words.append(f"out={out}")
            self.emit(f"{head}({', '.join(texts + words)})")

    def free(self, call):
        """Arguments chosen for a tensor that is there."""
        first = self.any_tensor()
        if first is None:
            return None
        x, done = self.value(first), {"first": first}
        positional, keywords, skipped = [], [], False
        for number, p in enumerate(call.parameters):
            if p.name in ("out", "device", "layout", "pin_memory", "requires_grad"):
                skipped = True
                continue
            if not p.required and not self.flip(0.35):
                skipped = True
                continue
            if number == 0 and p.word in ("Tensor", "Value"):
                text = first
            else:
                text = self.argument(call, p, x, done)
            if text is None:
                if p.required:
                    value = signatures.valid(call.name, p, "cpu")
                    text = self.example(value, {})
                if text is None:
                    return None if p.required else (positional, keywords)
            done[p.name] = int(text) if text.lstrip("-").isdigit() else text
            if p.keyword or skipped:
                keywords.append((p.name, text))
            else:
                positional.append((p.name, text))
        return positional, keywords

    def operator(self):
        a = self.any_tensor()
        if a is None:
            return
        if self.flip(0.1):
            self.emit(f"{self.rng.choice(('-', '~', 'abs', '+'))}({a})")
            return
        b = self.beside(self.value(a)) if self.flip(0.7) else self.number()
        (b,) = self.spoil([b])
        op = self.rng.choice(BINARY)
        if op in ("<", "<=", "==", "!=", ">", ">=") or self.flip(0.7):
            sides = (a, b) if self.flip(0.8) else (b, a)
            self.emit(f"{sides[0]} {op} {sides[1]}")
        else:
            self.run(f"{a} {op}= {b}")

    def item(self, size, room):
        """The text of an index for dimensions from one of that size on, and how many
        it uses; room is how many there are."""
        rng = self.rng
        kind = rng.randrange(12)
        if kind < 3 and size:
            return str(rng.randrange(-size, size)), 1
        if kind < 7:
            bounds = [
                str(rng.randint(-size - 1, size + 1)) if self.flip() else ""
                for _ in range(2)
            ]
            step = str(rng.randint(1, 3)) if self.flip(0.4) else ""
            return f"{bounds[0]}:{bounds[1]}:{step}", 1
        if kind == 7:
            return "None", 0
        if kind == 8 and size:
            chosen = [rng.randrange(-size, size) for _ in range(rng.randint(1, 3))]
            return str(chosen), 1
        if kind == 9 and size:
            shape = self.shape(rng.randint(0, 2))
            low = -size if self.flip(0.3) else 0
            return self.fresh(shape, "int64", low=low, high=size) or ":", 1
        if kind == 10:
            return self.fresh((size,), "bool") or ":", 1
        if kind == 11 and self.flip(0.3):
            return str(self.flip()), 0
        return ":", 1

    def key(self, x):
        """The text of an index expression for x."""
        parts, at, dots = [], 0, False
        if x.dim() and self.flip(0.1):
            mask = self.fresh(x.shape[: self.rng.randint(1, x.dim())], "bool")
            return mask or "..."
        while at < x.dim() and self.flip(0.75):
            if not dots and self.flip(0.1):
                parts.append("...")
                dots = True
                at = self.rng.randint(at, x.dim())
                continue
            text, used = self.item(x.shape[at], x.dim() - at)
            parts.append(text)
            at += used
            if len(parts) > 6:
                break
        parts = self.spoil(parts)
        if self.flip(0.03):
            parts.append(str(self.size()))
        return (
            ", ".join(parts) + ("," if len(parts) == 1 and self.flip(0.1) else "")
            or "..."
        )

    def subscript(self):
        name = self.any_tensor()
        if name is None:
            return
        key = self.key(self.value(name))
        result = self.emit(f"{name}[{key}]")
        if result and self.flip(0.4):
            part = self.value(result)
            if self.flip(0.4):
                value = self.number()
            else:
                value = self.fresh(self.broadcastable(part.shape))
            (value,) = self.spoil([value])
            self.run(f"{name}[{key}] = {value}")

    def differentiate(self):
        names = [n for n in self.names if self.value(n).requires_grad]
        if not names:
            return
        name = self.rng.choice(names)
        x = self.value(name)
        if x.numel() > 5000:
            return
        keep = ", retain_graph=True" if self.flip(0.7) else ""
        if self.flip():
            # Different weights, so that a permuted gradient shows.
            n = x.numel()
            weights = (
                f"(torch.arange({n}) % 5 + 1).reshape({tuple(x.shape)}).to({x.dtype})"
            )
            self.run(f"{name}.backward({weights}{keep})")
        else:
            self.run(f"{name}.sum().backward({keep[2:]})")
        leaves = [
            n
            for n in self.names
            if self.value(n).is_leaf and self.value(n).requires_grad
        ]
        for leaf in leaves[-4:]:
            if self.value(leaf).grad is not None:
                self.emit(f"{leaf}.grad.clone()")

    def step(self):
        kinds = ((self.call, 12), (self.operator, 3), (self.subscript, 4))
        if self.gradients:
            kinds += ((self.differentiate, 2),)
        if not self.names or self.flip(0.08):
            self.fresh()
        steps, weights = zip(*kinds, strict=True)
        self.rng.choices(steps, weights)[0]()
