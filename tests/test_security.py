"""What docs/security.md says of files: loaders run nothing, write nothing, and take no more
memory than the file's size explains."""

import io
import json
import os
import pickle
import stat
import struct
import tracemalloc
import zipfile

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor import _archive

GOOD = b"\x80\x02K\x01."
BIG = 1 << 60


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def archive(*records, **options):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as new:
        for name, data in records:
            new.writestr(name, data)
    return file.getvalue()


def pickled(data, *records):
    return archive(("a/data.pkl", b"\x80\x04" + data + b"."), *records)


def called(module, name, *arguments):
    """A pickle that calls a function by name."""
    words = b"".join(map(text, arguments))
    return pickled(f"c{module}\n{name}\n(".encode() + words + b"tR")


def rebuilt(key="0", location="cpu", numel=2, kind="FloatStorage"):
    """A tensor whose persistent id says what it wants of a storage."""
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(("
        + text("storage")
        + f"ctorch\n{kind}\n".encode()
        + text(key)
        + text(location)
        + b"\x8a\x09"
        + numel.to_bytes(9, "little", signed=True)
        + b"tQK\0K\2\x85K\1\x85\x89ccollections\nOrderedDict\n)RtR"
    )


def stored(*tensors):
    return pickled(b"0".join(tensors), ("a/data/0", bytes(8)))


def declared(size):
    """A zip file whose directory says that its record has another size."""
    data = bytearray(archive(("a/data.pkl", GOOD), ("a/data/0", bytes(8))))
    end = data.rindex(b"PK\1\2")
    struct.pack_into("<II", data, end + 20, size, size)
    return bytes(data)


def tensors(header, data=b"", length=None):
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(body) if length is None else length
    return length.to_bytes(8, "little") + body + data


def entry(shape, end, dtype="U8"):
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}}


CHECKPOINTS = {
    # names that are not in the list
    "os.system": called("os", "system", "touch made"),
    "posix.system": called("posix", "system", "touch made"),
    "nt.system": called("nt", "system", "touch made"),
    "subprocess": called("subprocess", "check_output", "touch made"),
    "eval": called("builtins", "eval", "open('made', 'w')"),
    "exec": called("__builtin__", "exec", "open('made', 'w')"),
    "getattr": called("builtins", "getattr", "a", "upper"),
    "import": called("importlib", "import_module", "antigravity"),
    "open": called("io", "open", "made", "w"),
    "own function": called("pydevtensor", "save", "a", "made"),
    "torch.save": called("torch", "save", "a", "made"),
    "torch.hub": called("torch.hub", "load", "a/b", "c"),
    "dotted": pickled(text("collections") + text("OrderedDict.__init__") + b"\x93)R"),
    "dtype by attribute": pickled(b"ctorch\n__dict__\n"),
    "by stack": pickled(text("os") + text("system") + b"\x93" + text("ls") + b"\x85R"),
    "instance": pickled(b"(" + text("ls") + b"ios\nsystem\n"),
    "object": pickled(b"(cos\nsystem\n" + text("ls") + b"o"),
    "new": pickled(b"cos\nsystem\n" + text("ls") + b"\x85\x81"),
    "extension": pickled(b"\x82\1"),
    "state": pickled(
        b"ccollections\nOrderedDict\n)R}"
        + text("__class__")
        + b"ccollections\nCounter\nsb"
    ),
    "attribute": pickled(b"ccollections\nOrderedDict\n}" + text("call") + b"K\1sb"),
    "in a key": pickled(b"}ctorch\nFloatStorage\nK\1s"),
    # persistent ids that lie
    "key": stored(rebuilt(key="../0")),
    "absolute key": stored(rebuilt(key="/etc/passwd")),
    "location": stored(rebuilt(location="../../x")),
    "other location": stored(rebuilt(location="cuda:4096")),
    "more elements": stored(rebuilt(numel=3)),
    "too many elements": stored(rebuilt(numel=BIG)),
    "fewer than none": stored(rebuilt(numel=-2)),
    "wider elements": stored(rebuilt(kind="DoubleStorage")),
    "unknown elements": stored(rebuilt(kind="QInt8Storage")),
    "two types": stored(rebuilt(), rebuilt(kind="IntStorage")),
    "two places": stored(rebuilt(), rebuilt(location="cuda:0")),
    "no storage": pickled(b"K\1Q"),
    "text as storage": pickled(text("storage") + b"Q"),
    # sizes that nothing stands behind
    "bytes": pickled(b"\x8e" + b"\xff" * 7 + b"\x3f"),
    "bytearray": pickled(b"\x96" + b"\xff" * 7 + b"\x3f"),
    "str": pickled(b"\x8d" + b"\xff" * 7 + b"\x3f"),
    "int": pickled(b"\x8b\xff\xff\xff\x7f"),
    "memo": pickled(b"K\1r\xff\xff\xff\xff0j\xfe\xff\xff\xff"),
    "frame": pickled(b"\x95" + b"\xff" * 7 + b"\x3f" + b"N" * 9 + b"Q"),
    "record": declared(0xFFFFFFFE),
    "record of 4 GB": declared(0xF0000000),
    "compressed": archive(("a/data.pkl", GOOD), ("a/x", bytes(1 << 24)), compression=8),
    # names that are paths
    "climbing": archive(("../../made/data.pkl", GOOD)),
    "absolute": archive(("/made/data.pkl", GOOD)),
    "inside": archive(("a/../data.pkl", GOOD)),
}
TENSORS = {
    "header of 2**60 bytes": tensors({}, length=BIG),
    "header of 2**64 - 1 bytes": tensors({}, length=2**64 - 1),
    "header of 90 MB": tensors({}, length=90_000_000),
    "shape of 2**60 bytes": tensors(entry([BIG], BIG)),
    "shape and no data": tensors(entry([BIG], 0)),
    "shape that overflows": tensors(entry([1 << 32, 1 << 32], 0)),
    "overlapping": tensors({**entry([4], 4), "y": entry([4], 4)["x"]}, bytes(4)),
    "deep": tensors(b'{"x":' + b"[" * 1_000_000),
    "huge number": tensors(b'{"x":' + b"9" * 1_000_000 + b"}"),
    "another file": tensors({"x": {**entry([4], 4)["x"], "file": "../x"}}, bytes(4)),
}

# Loads each file of a folder, given what it may have of memory. Prints what Python did
# meanwhile besides reading the file and naming the error.
LOADER = """
import os, resource, sys
import pydevtensor as torch
from pydevtensor import safetensors
from pickle import UnpicklingError

(folder,) = sys.argv[1:]
seen, watching = set(), False
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

def watch(event, arguments):
    if watching and event not in ("builtins.id", "object.__getattr__"):
        reads = event == "open" and arguments[0] == path and not arguments[2] & WRITES
        if not reads:
            seen.add((event, str(arguments)))

def load(path):
    return safetensors.load_file(path) if path.endswith("safetensors") else torch.load(path)

for path in ("good.pt", "good.safetensors"):
    load(path)  # imports what loading needs
sys.addaudithook(watch)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
for name in sorted(os.listdir(folder)):
    path = os.path.join(folder, name)
    watching = True
    try:
        said = "loaded", load(path)
    except Exception as error:
        said = type(error).__name__, str(error)
        del error
    watching = False
    print([name, *said, sorted(seen)])
    seen.clear()
"""


def test_loaders_run_and_write_nothing_and_take_little_memory(tmp_path):
    hostile, here = tmp_path / "hostile", tmp_path / "here"
    for folder in (hostile, here):
        folder.mkdir()
    for suffix, files in (("pt", CHECKPOINTS), ("safetensors", TENSORS)):
        for name, data in files.items():
            (hostile / f"{name}.{suffix}").write_bytes(data)
    x = torch.nn.Parameter(torch.ones(2))
    torch.save({"x": x}, here / "good.pt")
    torch.safetensors.save_file({"x": x.detach()}, here / "good.safetensors")
    before = {p: p.stat() for p in (tmp_path, *tmp_path.rglob("*"))}
    script = tmp_path.parent / f"{tmp_path.name}.py"
    script.write_text(f"import os\nos.chdir({str(here)!r})\n{LOADER}")
    said = python(None, arguments=["-B", str(script), str(hostile)])
    rows = {name: rest for name, *rest in map(eval, said.splitlines())}
    assert len(rows) == len(CHECKPOINTS) + len(TENSORS)
    for name, (error, message, events) in rows.items():
        assert events == [], (name, events)
        assert error in ("UnpicklingError", "RuntimeError", "SafetensorError"), (
            name,
            error,
        )
        assert message.startswith(("load(): ", "load_file(): ")), (name, message)
    after = {p: p.stat() for p in (tmp_path, *tmp_path.rglob("*"))}
    assert after.keys() == before.keys()
    for path in before:
        assert after[path].st_mtime_ns == before[path].st_mtime_ns, path


@pytest.mark.parametrize(
    "piece",
    [b"]", b"}", b"\x8f", b"(", b"h\0)R", b"h\1)R", b"h\2\x85R", b"G" + bytes(8)],
    ids=[
        "lists",
        "dicts",
        "sets",
        "marks",
        "OrderedDicts",
        "Counters",
        "copies",
        "floats",
    ],
)
def test_memory_is_a_multiple_of_the_file(piece):
    head = b"ccollections\nOrderedDict\nq\0ccollections\nCounter\nq\1"
    head += b"](" + b"K\1" * 1000 + b"eq\2cbuiltins\nset\n"
    data = pickled(head + piece * (100_000 // len(piece)))
    tracemalloc.start()
    with pytest.raises(pickle.UnpicklingError, match="damaged"):
        torch.load(io.BytesIO(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300 * len(data) + (1 << 20)


def test_a_file_that_is_saved_again_stays_as_private(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(1, path)
    path.chmod(0o600)
    with _archive.replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"new")
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_saving_follows_no_link_that_waits_for_it(tmp_path, monkeypatch):
    """Whoever guesses the temporary name cannot have another file overwritten."""
    monkeypatch.setattr(os, "urandom", lambda n: bytes(n))
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".x.pt.{bytes(6).hex()}.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        torch.save(1, tmp_path / "x.pt")
    assert victim.read_text() == "precious" and not (tmp_path / "x.pt").exists()


def test_a_pickled_tensor_names_one_function():
    """pickle itself calls what a pickle names; a tensor's names this package only."""
    import pickletools

    data = pickle.dumps([torch.ones(2), torch.nn.Parameter(torch.ones(2))], 2)
    named = {arg for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"}
    assert {name.split(".")[0].split()[0] for name in named} <= {
        "pydevtensor",
        "torch",
        "_codecs",
    }
