"""Eight ranks of a small GPT on simulated GPUs: seconds of a step, memory of a rank.

    python benchmarks/bench_cluster.py [steps]

The ranks are processes of this machine, on two simulated nodes of four H100. Each is
trained on 2 sequences of 128 tokens a step; the model has 4 blocks of 256 numbers, 3.2
million parameters. Seconds are wall time between the ends of steps, after the first,
and the processors' time of a step of all ranks together; memory is the most that a
process has resided in, with libraries and what ranks share.
"""

import os
import resource
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise

WAYS = ("copies", "parts")
WIDTH, HEADS, BLOCKS, TOKENS, LENGTH, BATCH = 256, 4, 4, 96, 128, 2


def block(nn, functional):
    """The class of a block of a GPT."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = (
                nn.Linear(WIDTH, 4 * WIDTH),
                nn.Linear(4 * WIDTH, WIDTH),
            )

        def forward(self, x):
            parts = self.qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norms[1](x))))

    return Block


def train(way, steps):
    """A rank: prints, at rank 0, the seconds of each step and each rank's memory."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    from torch.nn import functional

    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(0)
    kind = block(nn, functional)
    places = torch.arange(LENGTH, device="cuda")

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(TOKENS, WIDTH)
            self.places = nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.Sequential(*[kind() for _ in range(BLOCKS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

        def forward(self, x):
            return self.head(
                self.norm(self.blocks(self.tokens(x) + self.places(places)))
            )

    if way == "parts":
        wrap = partial(
            FullyShardedDataParallel,
            auto_wrap_policy=ModuleWrapPolicy({kind}),
            device_id=torch.device("cuda", torch.cuda.current_device()),
        )
        model = wrap(Network())
    else:
        model = nn.parallel.DistributedDataParallel(Network().cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(dist.get_rank())
    ends = []
    for _ in range(steps + 1):
        x = torch.randint(TOKENS, (BATCH, LENGTH + 1), device="cuda")
        loss = functional.cross_entropy(
            model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        dist.barrier()
        ends.append((time.monotonic(), time.process_time()))
    found = [None] * dist.get_world_size()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    dist.all_gather_object(found, (most, (ends[-1][1] - ends[0][1]) / steps))
    if dist.get_rank() == 0:
        seconds = [b - a for (a, _), (b, _) in pairwise(ends)]
        most, used = zip(*found, strict=True)
        print(
            f"{way:7} {min(seconds):.1f} to {max(seconds):.1f} s a step, "
            f"{sum(used):.1f} s of the processors, {max(most):.0f} MiB of the fullest "
            f"rank, loss {loss.item():.3f}"
        )
    dist.destroy_process_group()


def main(arguments):
    if "RANK" in os.environ:
        return train(arguments[0], int(arguments[1]))
    steps = arguments[0] if arguments else "5"
    cluster = ["--nodes=2", "--gpus=4", "--card=h100", "--link=ib400"]
    launch = [sys.executable, "-m", "pydevtensor", "launch", *cluster]
    for way in WAYS:
        subprocess.run([*launch, os.path.abspath(__file__), way, steps], check=True)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}")


if __name__ == "__main__":
    main(sys.argv[1:])
