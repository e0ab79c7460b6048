"""Coverage-guided fuzzing of what reads foreign bytes and texts, with atheris.

    python tools/fuzz/coverage.py TARGET [-max_total_time=600] [CORPUS...]

TARGET is one of the functions below. `make fuzz TARGET=pt` builds the extension with
clang's coverage counters and AddressSanitizer and runs this in that build. A target
takes any bytes: it returns, or raises what users are told of; anything else is a
finding, which libFuzzer writes to a file, and which belongs into tests/test_fuzz.py.
"""

import base64
import contextlib
import functools
import io
import itertools
import json
import pickle
import struct
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np

import pydevtensor as torch

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden/checkpoints.json"
# What a call may raise; a target of files also these.
CALLS = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError)
CALLS += (OverflowError, BufferError)
FILES = (*CALLS, EOFError, pickle.UnpicklingError)


def archive(pickled):
    """A .pt file with these bytes in place of its pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out:
        out.writestr("a/data.pkl", pickled)
        out.writestr("a/byteorder", b"little")
        out.writestr("a/data/0", bytes(range(24)))
        out.writestr("a/version", b"3\n")
    file.seek(0)
    return file


def rewritten(data):
    """A .pt file whose parts are changed, cut, doubled or gone, as the data says, in a
    zip that is right: random changes of a whole file seldom get past its checksums."""
    data = bytearray(data)
    parts = members()[data.pop() % len(members())] if data else members()[0]
    parts = [(name, bytearray(content)) for name, content in parts]
    while len(data) > 3 and parts:
        kind, which, place, byte = (data.pop() for _ in range(4))
        name, content = parts[which % len(parts)]
        at = place % (len(content) + 1)
        if kind < 200:
            content[at : at + 1] = bytes([byte])
        elif kind < 220:
            content[at : at + byte % 9] = b""
        elif kind < 235:
            content[at:at] = bytes(data[: byte % 9])
        elif kind < 240:
            parts.append((name, content[:at]))
        elif kind < 245:
            parts.append((name.replace("0", str(byte)), content))
        else:
            parts.remove((name, content))
    file = io.BytesIO()
    with (
        warnings.catch_warnings(action="ignore"),  # of names that occur twice
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as out,
    ):
        for name, content in parts:
            out.writestr(name, bytes(content))
    file.seek(0)
    return file


def golden():
    """PyTorch's own files."""
    rows = json.loads(GOLDEN.read_text())["files"]
    return [base64.b64decode(row["file"]) for row in rows]


@functools.cache
def members():
    """The parts of PyTorch's files, by file."""
    archives = [zipfile.ZipFile(io.BytesIO(file)) for file in golden()]
    return [[(name, a.read(name)) for name in a.namelist()] for a in archives]


def pt(data):
    """A .pt file: a zip of any bytes, or a right one with other parts."""
    raw = data[:1] < b"\x20"
    with contextlib.suppress(FILES):
        repr(torch.load(io.BytesIO(data[1:]) if raw else rewritten(data[1:])))


def pickled(data):
    """The pickle inside a .pt file."""
    with contextlib.suppress(FILES):
        repr(torch.load(archive(data)))


NUMBERS = (0, 1, 2, 3, 4, 6, 8, 16, 24, 2**31, 2**32, 2**62, 2**63 - 1, 2**64, -1)
NAMES = (*"abcdefghij", "__metadata__", "", "\ud800")
TYPES = [
    "F32",
    "BOOL",
    "U8",
    "I8",
    "I16",
    "F16",
    "BF16",
    "I32",
    "F64",
    "I64",
    "U64",
    "F8_E4M3",
    "C64",
    "f32",
]


def header(data):
    """The header of a safetensors file, and how many bytes its data should have."""
    entries = {}
    end = 0
    while data and len(entries) < 5:
        kind = data.pop()
        shape = [
            pick(data, NUMBERS[: 6 if kind < 200 else None]) for _ in range(kind % 4)
        ]
        entry = {"dtype": pick(data, TYPES[: 10 if kind < 220 else None])}
        size = {"6": 8, "3": 4, "1": 2}.get(entry["dtype"][-2:-1], 1)
        begin, end = end, end + min(abs(int(np.prod(shape, dtype=object))), 64) * size
        entry |= {"shape": shape, "data_offsets": [begin, end]}
        if kind > 240:
            entry[pick(data, (*entry, "more"))] = pick(
                data, (*NUMBERS, None, "a", [], 1.5)
            )
        entries[pick(data, NAMES)] = entry
    return json.dumps(entries).encode(), end


def pick(data, choices):
    return choices[data.pop() % len(choices) if data else 0]


def safetensors(data):
    """A safetensors file of any bytes, or with a header as the data describes it. The
    length before any bytes, which only one number fits, is mostly given by one."""
    if data[:1] > b"\xf0":
        data = data[1:]
    elif data[:1] > b"\x80" and len(data) > 9:
        data = struct.pack("<Q", min(len(data) - 8, data[1] * 8)) + data[9:]
    else:
        data = bytearray(data[1:])
        text, size = header(data)
        size += pick(data, (0, 0, 0, 1, 8))
        data = struct.pack("<Q", len(text)) + text + bytes(data[:size]).ljust(size)
    with contextlib.suppress(FILES):
        repr(torch.safetensors.load(data))


def value(data, depth=0):
    """A Python value written in few bytes: what a hostile caller may pass."""
    kind = data.pop() if data and depth < 50 else 0
    if kind < 60:
        return kind % 9 - 4
    if kind < 100:
        return slice(*(value(data, depth + 1) for _ in range(kind % 3 + 1)))
    if kind < 120:
        return None
    if kind < 140:
        return ...
    if kind < 160:
        return [value(data, depth + 1) for _ in range(kind % 5)]
    if kind < 170:
        return tuple(value(data, depth + 1) for _ in range(kind % 5))
    if kind < 180:
        return kind % 2 == 0
    if kind < 200:
        shape = [data.pop() % 4 if data else 1 for _ in range(kind % 3)]
        n = int(np.prod(shape))
        numbers = torch.arange(n) % (data.pop() % 6 + 1 if data else 1) - kind % 2
        return numbers.reshape(shape)
    if kind < 215:
        shape = [data.pop() % 5 if data else 1 for _ in range(kind % 4)]
        return (torch.arange(int(np.prod(shape))) % 2 == 0).reshape(shape)
    if kind < 225:
        return np.arange(kind % 4)
    if kind < 235:
        return np.array([True, False, True])
    return (2**63, -(2**63), 2**100, 1.5, "a", b"x", 2**31, np.int8(1))[kind % 8]


def index(data):
    """x[key] and x[key] = value for all kinds of keys."""
    data = bytearray(data)
    shape = [data.pop() % 4 + 1 if data else 2 for _ in range(3)]
    x = torch.arange(int(np.prod(shape))).reshape(shape)
    key = value(data)
    if data and data[-1] % 2:
        key = tuple(value(data) for _ in range(data.pop() % 6))
    try:
        part = x[key]
        assert part.numel() <= 1 << 20
        x[key] = part
        x[key] = value(data)
    except CALLS:
        pass
    x.sum().item()


def einsum(data):
    """The equation, with operands of 0 to 3 dimensions."""
    data = bytearray(data)
    operands = []
    for _ in range(data.pop() % 3 + 1 if data else 1):
        shape = [
            data.pop() % 3 + 1 for _ in range(data.pop() % 4 if data else 0) if data
        ]
        operands.append(torch.ones(shape))
    with contextlib.suppress(CALLS):
        torch.einsum(bytes(data).decode("latin-1"), *operands)


def names(data):
    """Strings where devices, dtypes, reductions and layouts are named."""
    text = data.decode("utf-8", "replace")
    calls = (
        lambda: torch.device(text),
        lambda: torch.zeros(1, device=text),
        lambda: torch.zeros(1, dtype=text),
        lambda: torch.zeros(1).to(text),
        lambda: torch.zeros(1).type(text),
        lambda: torch.norm(torch.ones(2), text),
        # A width of many digits takes Python's own memory.
        lambda: format(torch.tensor(1.5), text[:5]),
        lambda: torch.div(torch.ones(2), 2, rounding_mode=text),
        lambda: torch.cuda.sim_schedule(text),
    )
    for call in calls:
        with contextlib.suppress(CALLS):
            call()


class Producer:
    """A buffer as numpy's array interface describes it, wrong in any way."""

    def __init__(self, interface):
        self.__array_interface__ = interface


def buffer(data):
    """Buffers and arrays of all kinds, and what frombuffer() is told of them."""
    data = bytearray(data)
    numbers = [data.pop() if data else 0 for _ in range(6)]
    kinds = (*"bBhHiIlLqQfde?cnNFDgx", "3s")
    kind = kinds[numbers[0] % len(kinds)]
    try:
        raw = memoryview(bytes(data))
        raw = raw.cast(kind) if len(data) % struct.calcsize(kind) == 0 else raw
        step = numbers[1] % 7 - 3
        raw = raw[:: step or 1]
    except (TypeError, ValueError, struct.error):
        raw = bytes(data)
    dtypes = [torch.float32, torch.int8, torch.bool, torch.bfloat16, torch.int64]
    dtype = dtypes[numbers[2] % 5]
    calls = (
        lambda: torch.frombuffer(
            raw, dtype=dtype, count=numbers[3] - 9, offset=numbers[4] - 3
        ),
        lambda: torch.tensor(raw),
        lambda: torch.as_tensor(np.asarray(raw)),
        lambda: torch.from_numpy(np.asarray(raw)),
        lambda: torch.tensor([raw, raw]),
    )
    for call in calls:
        with contextlib.suppress(CALLS):
            repr(call())


def dlpack_capsule():
    """capsules.py is beside this file, which runs as a program and as a module."""
    if __package__:
        from .capsules import Capsule
    else:
        sys.path.append(str(Path(__file__).parent))  # -P leaves it out
        from capsules import Capsule
    return Capsule


def dlpack(data):
    """Capsules whose fields are anything (but for the memory, which is there)."""
    Capsule = dlpack_capsule()

    producer = Capsule(data)
    try:
        x = torch.from_dlpack(producer)
    except CALLS:
        assert producer.deleted <= 1
        return
    if producer.honest:
        repr(x)
        x.sum()
    del x
    assert producer.deleted <= 1


TARGETS = (pt, pickled, safetensors, index, einsum, names, buffer, dlpack)


def seeds(target):
    """Inputs to start from: those that a campaign found to reach different code, or
    valid ones where few random bytes would be."""
    corpus = Path(__file__).with_name("corpus") / f"{target.__name__}.txt"
    if corpus.exists():
        return [base64.b64decode(line) for line in corpus.read_text().split()]
    if target is pt:
        files = [b"\0" + file for file in golden()]
        return files + [bytes([99, number]) for number in range(len(files))]
    if target is pickled:
        parts = itertools.chain(*members())
        return [content for name, content in parts if name.endswith("data.pkl")]
    if target is safetensors:
        rows = (
            {"a": torch.ones(2, 3)},
            {"b": torch.arange(3), "c": torch.ones(1).half()},
        )
        files = [torch.safetensors.save(row) for row in rows]
        described = [b"\0", bytes([0, 7, 1, 0, 2, 3, 0, 1, 2])]
        return described + [bytes([200, file[0] // 8]) + file[1:] for file in files]
    if target is names:
        texts = "cpu cuda:0 torch.FloatTensor fro trunc .2f random:1 lazy inf"
        return [text.encode() for text in texts.split()]
    raise FileNotFoundError(corpus)


def main():
    import atheris

    found = {target.__name__: target for target in TARGETS}
    if len(sys.argv) < 2 or sys.argv[1] not in found:
        sys.exit(f"{__doc__}\nTARGET is one of {', '.join(found)}.")
    target = found[sys.argv.pop(1)]
    warnings.simplefilter("ignore")
    for each in sorted(sys.modules):
        if each.startswith("pydevtensor.") and hasattr(sys.modules[each], "__file__"):
            for name, function in vars(sys.modules[each]).items():
                if type(function) is type(main):
                    setattr(sys.modules[each], name, atheris.instrument_func(function))
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds(target)):
            (Path(folder) / str(number)).write_bytes(seed)
        atheris.Setup([*sys.argv, folder], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
