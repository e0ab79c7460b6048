"""Data that is not read whole: mapped files, rows of a file, parts of a stream of samples,
and batches that a GPU gets ahead."""

import json

import numpy as np
import pytest
from isolated import T4, python
from ranks import run

import pydevtensor as torch
from pydevtensor.utils.data import DataLoader, TensorDataset


def test_a_mapped_file_is_a_dataset(tmp_path):
    # Far larger than this machine's memory, and nearly all of it was never written.
    mapped = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=(1 << 33, 128))
    rows = [0, 5, (1 << 33) - 1]
    for row in rows:
        mapped[row] = row % 100
    x = torch.from_numpy(mapped)
    assert x.shape == (1 << 33, 128)
    loader = DataLoader(TensorDataset(x), batch_size=2, sampler=rows, num_workers=2)
    found = torch.cat([batch[0] for batch in loader])
    assert found[:, 0].tolist() == found[:, -1].tolist() == [row % 100 for row in rows]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_rows_of_a_file_are_read_by_workers(tmp_path, start):
    rows = torch.arange(6000).view(1000, 6)
    torch.safetensors.save_file({"x": rows, "y": -rows}, tmp_path / "rows.safetensors")
    with torch.safetensors.safe_open(tmp_path / "rows.safetensors", "pt") as file:
        data = file.get_slice("x")
        assert len(data) == 1000 and data[-1].tolist() == rows[-1].tolist()
        assert data[3, 2] == rows[3, 2] and data[2:4].shape == (2, 6)
        with pytest.raises(IndexError):
            data[1000]
        loader = DataLoader(
            data, batch_size=50, num_workers=2, multiprocessing_context=start
        )
        # Processes that read through one file do not disturb each other.
        for number, batch in enumerate(loader):
            assert torch.equal(batch, rows[50 * number : 50 * number + 50])
        assert torch.equal(file.get_tensor("y"), -rows)


def test_ranks_and_their_workers_divide_a_stream(tmp_path):
    code = """
from itertools import islice
from pydevtensor.utils.data import DataLoader, IterableDataset, get_worker_info
class Numbers(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        first = rank * count + number
        return islice(range(103), first, None, size * count)
begin()
mine = [int(x) for x in DataLoader(Numbers(), batch_size=None, num_workers=2)]
parts = [None] * size
dist.all_gather_object(parts, mine)
assert sorted(sum(parts, [])) == list(range(103)), parts
assert 50 <= len(mine) <= 53
print("divided")
"""
    assert run(tmp_path, 2, code) == ["divided\n"] * 2


def test_batches_come_to_the_gpu_whole(gpu):
    batches = [{"x": torch.full((1000,), float(i)), "name": i} for i in range(5)]
    batches[2]["x"] = batches[2]["x"].pin_memory()
    batches[3]["x"] = batches[3]["x"].to(gpu)
    for ahead in (1, 3, 9):
        found = [*torch.cuda.prefetch(batches, gpu, ahead)]
        assert [batch["name"] for batch in found] == [*range(5)]
        for number, batch in enumerate(found):
            assert batch["x"].device == torch.device(gpu)
            assert (batch["x"] == number).all()
    assert [*torch.cuda.prefetch([], gpu)] == []


def test_what_cannot_be_prefetched_is_refused(gpu):
    with pytest.raises(ValueError, match="ahead is 0; give 1 or more"):
        torch.cuda.prefetch([], gpu, 0)
    with pytest.raises((ValueError, RuntimeError), match="cpu"):
        torch.cuda.prefetch([], "cpu")


def test_copies_overlap_with_the_batch_before():
    code = """
import json
import pydevtensor as torch
batches = [torch.ones(1 << 20).pin_memory() for _ in range(8)]
a = torch.ones(512, 512, device="cuda")
def work(batch):
    for _ in range(4):
        a @ a
    return batch.sum()
def timed(batches):
    torch.cuda.synchronize()
    begin = torch.cuda.clock()
    for batch in batches:
        work(batch)
    torch.cuda.synchronize()
    return torch.cuda.clock() - begin
there = [batch.cuda() for batch in batches]
print(json.dumps([
    timed(there),
    timed(b.to("cuda", non_blocking=True) for b in batches),
    timed(torch.cuda.prefetch(batches)),
]))
"""
    computes, copies_too, ahead = json.loads(
        python(code, PYDEVTENSOR_SIM_GPUS="1", **T4)
    )
    assert copies_too > 1.5 * computes
    # All but the first copy, or all but the last batch's work, is hidden.
    assert ahead < max(computes, copies_too - computes) + 0.4 * computes
