"""Loading of data: files larger than memory, and small JPEGs, beside PyTorch.

    python benchmarks/bench_data.py [interpreter of the others] [rounds] [MiB]

The interpreter has torchvision, for the JPEGs, and may be left out. A file is read from
the disk each time: its pages are dropped from the system's cache before. Each way runs
in a process of its own, one after the other; the table has the best of the rounds, and
in brackets the processors' time.
"""

import mmap
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROW = 4096  # float32 of a row: 16 KiB
BATCH = 64  # rows, 1 MiB
IMAGES, SIDE = 4000, 64


def read(path):
    """Read the file with system calls alone: the least time that any way takes.

    The memory is aligned to a page, to which systems copy faster than elsewhere.
    """
    into = memoryview(mmap.mmap(-1, 4 * ROW * BATCH))
    with open(path, "rb", buffering=0) as file:
        while file.readinto(into):
            pass


def loop(loader):
    for _ in loader:
        pass


def rows_of(torch, workers, shuffle=False):
    def run(path):
        import numpy as np

        rows = np.memmap(path, np.float32, "r").reshape(-1, ROW)
        data = torch.utils.data.TensorDataset(torch.from_numpy(rows))
        loop(torch.utils.data.DataLoader(data, BATCH, shuffle, num_workers=workers))

    return run


def stream_of(torch, workers):
    """Batches that the dataset reads itself, divided among the workers."""

    class Batches(torch.utils.data.IterableDataset):
        def __init__(self, path):
            self.path = path

        def __iter__(self):
            worker = torch.utils.data.get_worker_info()
            number, count = (worker.id, worker.num_workers) if worker else (0, 1)
            size = 4 * ROW * BATCH
            with open(self.path, "rb", buffering=0) as file:
                for at in range(
                    number * size, os.path.getsize(self.path), count * size
                ):
                    x = torch.empty(BATCH, ROW)
                    file.seek(at)
                    file.readinto(x.numpy())
                    yield x

    def run(path):
        loop(torch.utils.data.DataLoader(Batches(path), None, num_workers=workers))

    return run


def images_of(torch, workers):
    """A folder of JPEGs as batches of normalised tensors."""

    def run(path):
        if torch.__name__ == "torch":
            from torchvision import datasets, transforms
        else:
            from pydevtensor.vision import datasets, transforms
        ways = transforms.Compose(
            [
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
            ]
        )
        data = datasets.ImageFolder(path, ways)
        loop(torch.utils.data.DataLoader(data, BATCH, True, num_workers=workers))

    return run


CASES = {
    "mapped rows, 0 workers": (rows_of, 0, "rows"),
    "mapped rows, 2 workers": (rows_of, 2, "rows"),
    "a stream of batches, 0 workers": (stream_of, 0, "rows"),
    "a stream of batches, 2 workers": (stream_of, 2, "rows"),
    "JPEGs, 0 workers": (images_of, 0, "images"),
    "JPEGs, 2 workers": (images_of, 2, "images"),
}


def make(folder, mib):
    with open(folder / "rows", "wb") as file:
        for _ in range(mib):
            file.write(os.urandom(4096) * 256)
        os.fsync(file.fileno())
    try:
        from PIL import Image
    except ImportError:
        return
    for i in range(IMAGES):
        into = folder / "images" / f"class{i % 4}"
        into.mkdir(parents=True, exist_ok=True)
        small = Image.frombytes("RGB", (8, 8), os.urandom(192))
        small.resize((SIDE, SIDE), Image.Resampling.BICUBIC).save(into / f"{i}.jpg")


def run(library, name, path):
    """Prints the seconds, and those of the processors with workers' ones."""
    if name == "read":
        way = read
    else:
        import importlib

        importlib.import_module("numpy")  # whose first use is not the loader's time
        torch = importlib.import_module(library)
        importlib.import_module(f"{library}.utils.data")
        make_way, workers, _ = CASES[name]
        way = make_way(torch, workers)
    if os.path.isfile(path):
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
    before, start = processors(), time.perf_counter()
    way(path)
    print(time.perf_counter() - start, processors() - before)


def processors():
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    times = [resource.getrusage(kind) for kind in kinds]
    return sum(each.ru_utime + each.ru_stime for each in times)


def seconds(python, library, name, path):
    script = [python, "-P", __file__, "--run", library, name, str(path)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    return [*map(float, done.stdout.split())] if done.returncode == 0 else None


def main():
    python = shutil.which(sys.argv[1]) if len(sys.argv) > 1 else None
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    mib = int(sys.argv[3]) if len(sys.argv) > 3 else 1024
    with tempfile.TemporaryDirectory(dir=os.environ.get("DATA_FOLDER")) as made:
        folder = Path(made)
        make(folder, mib)
        ways = [("read", sys.executable, "pydevtensor")]
        for name in CASES:
            ways.append((name, sys.executable, "pydevtensor"))
            if python:
                ways.append((name, python, "torch"))
        best = {}
        for _ in range(times):
            for name, with_python, library in ways:
                path = folder / (CASES[name][2] if name in CASES else "rows")
                took = seconds(with_python, library, name, path)
                if took is not None:
                    key = name, library
                    known = best.get(key, took)
                    best[key] = [min(pair) for pair in zip(known, took, strict=True)]
    least, busy = best["read", "pydevtensor"]
    rate = mib * 2**20 / least / 1e9
    print(f"reading {mib} MiB: {least:.2f} s, of the processors {busy:.2f} s")
    print(f"that is {rate:.2f} GB/s")
    for name in CASES:
        row = f"{name:32}"
        for library in ("pydevtensor", "torch"):
            if (name, library) in best:
                row += "  {} {:6.2f} s ({:5.2f})".format(library, *best[name, library])
        ours = best.get((name, "pydevtensor"))
        if ours and CASES[name][2] == "rows":
            row += f"   ours / reading {ours[0] / least:.2f}"
        if ours and (name, "torch") in best:
            row += f"   ours / torch {ours[0] / best[name, 'torch'][0]:.2f}"
        print(row)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:])
    else:
        main()
