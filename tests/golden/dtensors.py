"""Calls with DTensors on two ranks, and what comes of them as JSON."""

import contextlib
import importlib
import json
import math
import os
import pathlib
import tempfile
import warnings

PLACEMENTS = ["Shard(0)", "Shard(1)", "Replicate()", "Partial()"]


def whole(torch, *shape):
    count = math.prod(shape)
    return torch.tensor([(i * 7 % 11) / 2 for i in range(count)]).view(shape)


def names_for(placement, torch, mesh, rank):
    """x of 5 rows, m of 4 columns, e that ranks divide evenly, one of 1 row."""
    home = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    terms = isinstance(placement, home.Partial)

    def made(tensor):
        if terms:
            part = tensor * (0.25 if rank else 0.75)
            return home.DTensor.from_local(part, mesh, [placement])
        return home.distribute_tensor(tensor, mesh, [placement])

    def slope(function, of=None):
        """The gradient of the function, as a whole tensor."""
        given = made(whole(torch, 5, 3, 4) if of is None else of)
        given.requires_grad_()
        function(given).backward()
        return given.grad.full_tensor()

    def after(function):
        given = made(whole(torch, 5, 3, 4))
        function(given)
        return given

    def saved(value):
        with tempfile.TemporaryFile() as file:
            torch.save(value, file)
            file.seek(0)
            return torch.load(file)

    return {
        "torch": torch,
        "x": made(whole(torch, 5, 3, 4)),
        "m": made(whole(torch, 5, 4)),
        "e": made(whole(torch, 6, 2, 4)),
        "whole": whole(torch, 5, 3, 4),
        "mesh": mesh,
        "slope": slope,
        "after": after,
        "saved": saved,
        **{name: getattr(home, name) for name in ("DTensor", "Shard", "Replicate")},
        **{name: getattr(home, name) for name in ("Partial", "distribute_tensor")},
        "home": home,
    }


def number(value):
    return float(f"{value:.5g}") if math.isfinite(value) else str(value)


def described(value, torch):
    if isinstance(value, torch.Tensor):
        found = {}
        if hasattr(value, "placements"):
            found["placements"] = str(value.placements)
            found["stride"] = [*value.stride()]
            found["part"] = [*value.to_local().shape]
            value = value.full_tensor()
        values = value.detach().double().flatten().tolist()
        if len(values) > 12:  # a few, and sums that each of them changes
            sums = sum(values), sum(i * each for i, each in enumerate(values))
            values = [*values[:4], *sums]
        found["values"] = [number(each) for each in values]
        return {
            **found,
            "dtype": str(value.dtype).split(".")[-1],
            "shape": [*value.shape],
        }
    if isinstance(value, tuple | list):
        return [described(each, torch) for each in value]
    return number(value) if isinstance(value, float) else value


def answers(sources, torch, rank):
    """What each source gives for each placement, on a rank of two."""
    dist = torch.distributed
    mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
    found = []
    for source in sources:
        row = {}
        for text in PLACEMENTS:
            home = importlib.import_module(f"{torch.__name__}.distributed.tensor")
            names = names_for(eval(text, vars(home)), torch, mesh, rank)
            try:
                row[text] = described(eval(source, names), torch)
            except Exception as error:
                row[text] = {"raises": type(error).__name__}
        found.append(row)
    return found


def run_rank(rank, folder, name):
    """Run one of two ranks. Rank 0 writes the results."""
    torch = importlib.import_module(name)
    for part in ("distributed.tensor", "distributed.device_mesh"):
        importlib.import_module(f"{name}.{part}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    folder = pathlib.Path(folder)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    sources = json.loads((folder / "sources").read_text())
    with open(os.devnull, "w") as none, contextlib.redirect_stderr(none):
        found = answers(sources, torch, rank)
    if rank == 0:
        (folder / "answers").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()


def ask(sources, torch):
    """The answers of a library, whose two processes this starts."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "sources").write_text(json.dumps(sources))
        spawn = importlib.import_module(f"{torch.__name__}.multiprocessing").spawn
        spawn(run_rank, (folder, torch.__name__), nprocs=2)
        return json.loads((pathlib.Path(folder) / "answers").read_text())
