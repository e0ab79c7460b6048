"""PyTorch's own database of operations: its sample inputs and its wrong inputs, run by
both libraries in one process.

PyTorch 2.13 and the installed package have to be in one environment:

    python -m venv /tmp/both && /tmp/both/bin/pip install torch==2.13.0 numpy .
    /tmp/both/bin/python -P tools/fuzz --against opdb
    /tmp/both/bin/python -P tools/fuzz --against opdb --ops 'nn.functional.*pool' -v

Each operation that pydevtensor has is called as a function, as a method, in place and
with out=, in each type of DTYPES that the database says it takes. Compared are types,
shapes, values, exceptions, and the first and second derivatives. It is run by hand: a
test of this repository never needs PyTorch."""

from __future__ import annotations

import collections
import functools
import operator
import re
import types
import warnings

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import pydevtensor

from .known import DATABASE
from .machines import Ours, Torch, difference

DTYPES = (torch.float64, torch.float32, torch.float16, torch.int64, torch.bool)
DTYPES += (torch.complex128, torch.complex64)
METHODS = 8  # samples of a type that are called as a method: its code is the function's


class Absent(Exception):
    """pydevtensor has no function of the name."""


def find(path, *roots):
    """What a dotted name means in the first module or class that has it."""
    for root in roots:
        try:
            return operator.attrgetter(path)(root)
        except AttributeError:
            continue
    raise Absent(path)


def seeded(function, *args, **kwargs):
    """The database's wrapper_set_seed, for our generator."""
    pydevtensor.manual_seed(42)
    return function(*args, **kwargs)


def counterpart(function, name):
    """Our function for one of PyTorch's; the database's own functions with our modules
    in the place of PyTorch's."""
    if isinstance(function, functools.partial):
        inner = counterpart(function.func, name)
        keywords = {key: ours(each) for key, each in function.keywords.items()}
        return functools.partial(inner, *map(ours, function.args), **keywords)
    if not isinstance(function, types.FunctionType) or not re.match(
        r"torch\.testing", function.__module__
    ):
        return find(name, pydevtensor, pydevtensor.Tensor)
    words = {"torch": pydevtensor, "wrapper_set_seed": seeded}
    names = {**function.__globals__, **words, "F": pydevtensor.nn.functional}
    closure = function.__closure__ and tuple(
        types.CellType(ours(cell.cell_contents)) for cell in function.__closure__
    )
    rebound = types.FunctionType(
        function.__code__, names, name, function.__defaults__, closure
    )
    rebound.__kwdefaults__ = function.__kwdefaults__
    return rebound


def is_ours(op):
    for name in (op.name, op.name + "_"):
        try:
            find(name, pydevtensor, pydevtensor.Tensor)
            return True
        except Absent:
            continue
    return False


def copied(x):
    """A tensor of ours with the elements and the layout of PyTorch's."""
    if x.is_sparse or x.layout != torch.strided or x.device.type == "meta":
        raise Absent(f"tensors of {x.layout} on {x.device}")
    plain = x.detach()
    if plain.is_conj() or plain.is_neg():
        raise Absent("a Tensor that is computed when it is read")
    dtype = ours(plain.dtype)
    flat = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
    if plain.dtype == torch.bfloat16:
        flat = flat.view(torch.int16)
    found = pydevtensor.from_numpy(flat.numpy().copy())
    if plain.dtype == torch.bfloat16:
        found = found.view(dtype)
    found = found.as_strided(x.shape, x.stride(), x.storage_offset())
    return found.requires_grad_(x.requires_grad)


def ours(value):
    """A value of PyTorch's as one of ours."""
    if isinstance(value, torch.Tensor):
        return copied(value)
    if isinstance(value, torch.Size):
        return pydevtensor.Size(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return find(str(value).removeprefix("torch."), pydevtensor)
    if isinstance(value, torch.device):
        return pydevtensor.device(str(value))
    if isinstance(value, torch.Generator):
        return pydevtensor.Generator()
    if isinstance(value, dict):
        return {key: ours(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(map(ours, value))
    if isinstance(value, torch.nn.Module):
        raise Absent(f"{type(value).__name__}, a module of PyTorch's")
    if isinstance(value, types.FunctionType):
        return counterpart(value, value.__name__)
    return value


def theirs(value):
    """A copy of a value, so that calls in place do not meet each other."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.device.type == "meta":
            raise Absent(f"tensors of {value.layout} on {value.device}")
        flat = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        at = (value.shape, value.stride(), value.storage_offset())
        return flat.clone().as_strided(*at).requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: theirs(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)(map(theirs, value))
    return value


def leaves(value, kind):
    """The tensors in a value."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [leaf for each in value for leaf in leaves(each, kind)]


def described(value):
    if isinstance(value, torch.Tensor):
        text = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return f"{text}={value.tolist()}" if value.ndim == 0 else text
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return f"({', '.join(map(described, value))})"
    return repr(value)


def label_of(op):
    return f"{op.name} {op.variant_test_name}".strip()


class Sample:
    """A sample of the database: copies of it for a call of each library."""

    def __init__(self, sample):
        self.sample = sample

    def __str__(self):
        values = (self.sample.input, *self.sample.args)
        words = [f"{key}={described(v)}" for key, v in self.sample.kwargs.items()]
        return ", ".join([*map(described, values), *words])

    def arguments(self, convert):
        sample = self.sample
        return convert([sample.input, *sample.args]), convert(dict(sample.kwargs))


class Side:
    """One library: how it calls, differentiates and shows results."""

    def __init__(self, module, machine, convert):
        self.module, self.machine, self.convert = module, machine, convert

    def numbers(self, like, seed):
        """A constant of a tensor's shape and type, the same in both libraries."""
        shape = tuple(like.shape)
        draw = np.random.RandomState(seed).uniform
        array = draw(-1, 1, shape)
        if like.is_complex():
            array = array + 1j * draw(-1, 1, shape)
        return self.module.tensor(array).to(like.dtype)

    def derivatives(self, outputs, inputs, order):
        """Which outputs record, and the gradients of each order up to it, of random
        sums of what comes before; 0 where there is none."""
        found = [[x.requires_grad for x in outputs]]
        for k in range(order):
            chosen = [
                (x, self.numbers(x, 7 * k + i))
                for i, x in enumerate(outputs)
                if x is not None and x.requires_grad
            ]
            outputs, weights = [x for x, _ in chosen], [w for _, w in chosen]
            grads = [None] * len(inputs)
            if outputs:
                grads = self.module.autograd.grad(
                    outputs,
                    inputs,
                    weights,
                    allow_unused=True,
                    create_graph=k + 1 < order,
                )
            pairs = zip(inputs, grads, strict=True)
            found.append(
                [
                    self.module.zeros_like(x) if g is None else g.detach()
                    for x, g in pairs
                ]
            )
            outputs = grads
        return found

    def outcome(self, function, sample, order=0, process=None, prepare=None):
        """(results, None) of a call, or (None, the exception)."""
        try:
            args, words = sample.arguments(self.convert)
            if prepare:
                prepare(self.convert, words)
            self.module.manual_seed(1)
            result = function(*args, **words)
            if order:
                outputs = process(result) if process else result
                outputs = leaves(outputs, self.module.Tensor)
                inputs = leaves([args, words], self.module.Tensor)
                inputs = [x for x in inputs if x.requires_grad]
                result = self.derivatives(outputs, inputs, order)
            return self.machine.look(result), None
        except Absent:
            raise
        except Exception as error:
            return None, error.with_traceback(None)


def nearest(error):
    """The class of Python's own that an exception belongs to."""
    return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


def compared(found, expected):
    """(kind, sentence) where two outcomes differ."""
    (result, error), (answer, raised) = found, expected
    if error and raised:
        if isinstance(error, nearest(raised)):
            return None
        left, right = type(error).__name__, type(raised).__name__
        return "error type", f"{left} for {right}: {error} / {raised}"
    if error:
        return "refused", f"{type(error).__name__}: {error}"
    if raised:
        return "taken", f"{type(raised).__name__}: {raised}"
    return difference(result, answer, list, floor=1e-13)


class Report:
    """The differences of each operation."""

    def __init__(self, verbose):
        self.verbose, self.calls = verbose, 0
        self.known, self.open = collections.Counter(), {}

    def add(self, op, variant, sample, found):
        self.calls += 1
        if found is None:
            return
        kind, sentence = found
        sentence = " ".join(sentence.split())
        text = f"{op} {variant} {kind}: {sentence}"
        for pattern, why in DATABASE.items():
            if re.search(pattern, text):
                self.known[why] += 1
                return
        table = self.open.setdefault(op, collections.OrderedDict())
        key = (variant.split(",")[0], kind)
        table.setdefault(key, []).append((variant, str(sample), sentence))

    def show(self, op):
        for (_, kind), cases in self.open.get(op, {}).items():
            shown = cases if self.verbose else cases[:1]
            for variant, sample, sentence in shown:
                text = f"  {op}({sample})  [{variant}] {kind}: {sentence}"
                print(text[:600], flush=True)
            if len(cases) > len(shown):
                print(f"    and {len(cases) - len(shown)} more")


class Database:
    """Runs operations and compares."""

    def __init__(self, report):
        self.report = report
        self.ours = Side(pydevtensor, Ours("cpu"), ours)
        self.theirs = Side(torch, Torch(), theirs)

    def both(self, label, variant, functions, sample, **options):
        """Calls both libraries; gives PyTorch's outcome."""
        mine, original = functions
        wanted = self.theirs.outcome(original, sample, **options)
        process = options.get("process")
        if process:
            options["process"] = counterpart(process, "process")
        found = compared(self.ours.outcome(mine, sample, **options), wanted)
        self.report.add(label, variant, sample, found)
        return wanted

    def forms(self, op):
        """The ways to call an operation, each as (name, (ours, PyTorch's))."""
        for form, function, suffix in (
            ("function", op.op, ""),
            ("method", op.method_variant, ""),
            ("in place", op.inplace_variant, "_"),
        ):
            if function is None:
                continue
            name = op.name.split(".")[-1] if form != "function" else op.name
            if form == "in place" and not name.endswith("_"):
                name = getattr(function, "__name__", name + suffix)
            roots = (pydevtensor.Tensor,) if form != "function" else ()
            try:
                if roots and not isinstance(function, types.FunctionType):
                    yield form, (find(name, *roots), function)
                else:
                    yield form, (counterpart(function, name), function)
            except Absent:
                continue

    def samples(self, op, dtype, gradient):
        for sample in op.sample_inputs("cpu", dtype, requires_grad=gradient):
            yield Sample(sample)

    def run(self, op):
        label = label_of(op)
        forms = list(self.forms(op))
        for dtype in DTYPES:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            self.values(op, label, forms, dtype)
            backward = dtype in op.supported_backward_dtypes("cpu")
            analog = dtype.is_floating_point or dtype.is_complex
            if op.supports_autograd and backward and analog:
                self.gradients(op, label, forms[0][1], dtype)
        if op.error_inputs_func is not None:
            for wrong in op.error_inputs("cpu"):
                sample = Sample(wrong.sample_input)
                for form, functions in forms:
                    if form == "function":
                        try:
                            self.both(label, "wrong input", functions, sample)
                        except Absent:
                            continue

    def values(self, op, label, forms, dtype):
        name = str(dtype).removeprefix("torch.")
        for number, sample in enumerate(self.samples(op, dtype, False)):
            try:
                for form, functions in forms:
                    if form == "method" and number >= METHODS:
                        continue
                    if form == "in place" and not isinstance(
                        sample.sample.input, torch.Tensor
                    ):
                        continue
                    variant = f"{form}, {name}"
                    result = self.both(label, variant, functions, sample)
                    if form == "function" and op.supports_out and result[0] is not None:
                        self.out(label, name, functions, sample)
            except Absent:
                continue

    def out(self, label, name, functions, sample):
        """The call with out=, which has the result's shape and type."""
        args, words = sample.arguments(theirs)
        torch.manual_seed(1)
        result = functions[1](*args, **words)
        if not leaves(result, torch.Tensor):
            return

        def prepare(convert, words):
            tensors = [torch.zeros_like(x) for x in leaves(result, torch.Tensor)]
            out = tensors[0] if isinstance(result, torch.Tensor) else tuple(tensors)
            words["out"] = convert(out)

        self.both(label, f"out, {name}", functions, sample, prepare=prepare)

    def gradients(self, op, label, functions, dtype):
        name = str(dtype).removeprefix("torch.")
        wide = dtype in (torch.float64, torch.complex128)
        order = 2 if op.supports_gradgrad and wide else 1
        for sample in self.samples(op, dtype, True):
            process = sample.sample.output_process_fn_grad
            options = {"order": order, "process": process}
            try:
                self.both(label, f"gradient, {name}", functions, sample, **options)
            except Absent:
                continue


def campaign(pattern, verbose):
    """Runs the operations whose names match; gives the number that differ."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    report = Report(verbose)
    database = Database(report)
    chosen = [op for op in op_db if re.search(pattern, op.name)]
    have = [op for op in chosen if is_ours(op)]
    for op in have:
        database.run(op)
        report.show(label_of(op))
    for why, count in report.known.most_common():
        print(f"{count} known: {why}")
    wrong = len(report.open)
    print(
        f"{len(have)} of {len(chosen)} operations are here: {len(have) - wrong} agree, "
        f"{wrong} differ; {report.calls} comparisons"
    )
    return wrong
