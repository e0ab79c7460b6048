"""Programs of several processes, for the tests of torch.distributed."""

import os
import subprocess
import sys
from dataclasses import dataclass
from textwrap import dedent

HEAD = """
import os, sys, time
import pydevtensor as torch
import pydevtensor.distributed as dist
from pydevtensor import nn
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FILE = os.environ["MEETING"]
def begin(**given):
    dist.init_process_group(
        os.environ.get("BACKEND", "gloo"), init_method="file://" + FILE, rank=rank, world_size=size, **given)
"""

# A network with what makes sharding hard: a weight of two layers, blocks that take more
# than a tensor, a parameter that is not used, and one layer that may be frozen.
NETWORK = """
class Block(nn.Module):
    def __init__(self, norm, unused):
        super().__init__()
        self.norm, self.up, self.down = norm(7), nn.Linear(7, 18), nn.Linear(18, 7)
        self.unused = nn.Parameter(torch.ones(unused))
    def forward(self, x, scale=1.0):
        return x + scale * self.down(torch.tanh(self.up(self.norm(x))))
class Net(nn.Module):
    def __init__(self, norm, unused):
        super().__init__()
        self.embed = nn.Embedding(11, 7)
        self.blocks = nn.ModuleList([Block(norm, unused), Block(norm, unused)])
        self.head = nn.Linear(7, 11, bias=False)
        self.head.weight = self.embed.weight
        self.frozen = nn.Linear(7, 7)
    def forward(self, x):
        x = self.frozen(self.embed(x))
        for i, block in enumerate(self.blocks):
            x = block(x, scale=0.5 + i)
        return self.head(x)
"""


@dataclass
class Ended:
    """How a rank has ended."""

    status: int
    printed: str
    errors: str


def start(folder, size, code, **environment):
    """The processes of `size` ranks that run code after HEAD."""
    program = folder / "program.py"
    program.write_text(HEAD + dedent(code))
    meeting = folder / "meeting"
    meeting.unlink(missing_ok=True)
    return [
        subprocess.Popen(
            [sys.executable, str(program)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
                "MEETING": str(meeting),
                "PYDEVTENSOR_NUM_THREADS": "1",
                **environment,
            },
        )
        for rank in range(size)
    ]


def end(processes, seconds=120):
    """How each has ended; none is left."""
    try:
        found = [each.communicate(timeout=seconds) for each in processes]
    finally:
        for each in processes:
            each.kill()
    return [
        Ended(each.returncode, *texts)
        for each, texts in zip(processes, found, strict=True)
    ]


def run(folder, size, code, **environment):
    """What each rank has printed; all have ended well."""
    return printed(start(folder, size, code, **environment))


def printed(processes):
    """What each has printed; all have ended well."""
    ended = end(processes)
    for rank, each in enumerate(ended):
        assert each.status == 0, f"rank {rank}: {each.printed}{each.errors}"
    return [each.printed for each in ended]
