"""Memory counters, the caching allocator, and running out of memory."""

import gc

import pytest
from isolated import python

import pydevtensor as torch

MiB = 1 << 20


def test_counters(gpu):
    gc.collect()
    start = torch.cuda.memory_allocated(gpu)
    torch.cuda.reset_peak_memory_stats(gpu)
    x = torch.empty(MiB, device=gpu)
    held = torch.cuda.memory_allocated(gpu) - start
    assert 4 * MiB <= held <= 6 * MiB
    y = x + 1
    assert torch.cuda.memory_allocated(gpu) - start == 2 * held
    del y
    assert torch.cuda.memory_allocated(gpu) - start == held
    assert torch.cuda.max_memory_allocated(gpu) - start == 2 * held
    assert torch.cuda.memory_reserved(gpu) >= torch.cuda.max_memory_allocated(gpu)
    torch.cuda.reset_peak_memory_stats(gpu)
    assert torch.cuda.max_memory_allocated(gpu) - start == held
    del x
    assert torch.cuda.memory_allocated(gpu) == start


def test_counters_are_of_one_device(two_gpus):
    a, b = two_gpus
    before = torch.cuda.memory_allocated(b)
    x = torch.empty(1000, device=a)
    assert torch.cuda.memory_allocated(b) == before
    assert torch.cuda.memory_allocated() == torch.cuda.memory_allocated(a) > 0
    del x


def test_empty_cache(gpu):
    x = torch.empty(8 * MiB, device=gpu)
    del x
    torch.cuda.synchronize(gpu)
    reserved, free = torch.cuda.memory_reserved(gpu), torch.cuda.mem_get_info(gpu)[0]
    assert reserved >= 32 * MiB
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved(gpu) <= reserved - 32 * MiB
    assert torch.cuda.mem_get_info(gpu)[0] >= free + 32 * MiB


def test_stats(gpu):
    x = torch.ones(100, device=gpu)
    stats = torch.cuda.memory_stats(gpu)
    for name in (
        "allocated_bytes",
        "reserved_bytes",
        "requested_bytes",
        "allocation",
        "segment",
    ):
        current, peak, allocated, freed = (
            stats[f"{name}.all.{part}"]
            for part in ("current", "peak", "allocated", "freed")
        )
        assert 0 < current <= peak <= allocated and current == allocated - freed, name
    assert stats["requested_bytes.all.current"] <= stats["allocated_bytes.all.current"]
    assert stats["num_alloc_retries"] >= 0 and stats["num_ooms"] >= 0
    del x


def test_summary(gpu):
    text = torch.cuda.memory_summary(gpu)
    assert (
        text.startswith(f"Memory of {gpu} ")
        and "reserved" in text
        and "segments" in text
    )
    assert "segments" not in torch.cuda.memory_summary(gpu, abbreviated=True)


def test_out_of_memory(gpu):
    ooms = torch.cuda.memory_stats(gpu)["num_ooms"]
    keep = torch.ones(MiB, device=gpu)
    with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
        torch.empty(1 << 38, device=gpu)
    assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)
    assert torch.OutOfMemoryError is torch.cuda.OutOfMemoryError
    assert gpu in str(caught.value)
    assert "4.00 MiB (float32 [1048576])" in str(caught.value)  # what is alive
    assert torch.cuda.memory_stats(gpu)["num_ooms"] == ooms + 1
    assert (keep + 1).sum().item() == 2 * MiB


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random:3"])
def test_without_a_cache(schedule):
    """Each block is an allocation of its own, of the tensor's size, and is freed on release."""
    out = python(
        """
import pydevtensor as torch
torch.cuda.simulate(1)
name = 'cuda:0'
x = torch.arange(1001, device=name).to(torch.int8)
stats = torch.cuda.memory_stats(name)
print(stats['allocated_bytes.all.current'], stats['segment.all.current'])
y, side = x.to(torch.float32), torch.cuda.Stream(name)
with torch.cuda.stream(side):
    z = y * 2 + y.sum()
del x, y
torch.cuda.synchronize()
print(z[5].item() == 10 + sum((i + 128) % 256 - 128 for i in range(1001)))
del z
print(torch.cuda.memory_reserved(name), torch.cuda.memory_allocated(name))
""",
        PYDEVTENSOR_NO_CACHE="1",
        PYDEVTENSOR_SIM_SCHEDULE=schedule,
    )
    assert out.splitlines() == ["1001 1", "True", "0 0"]


def test_out_of_memory_groups_tensors_that_are_alike(gpu):
    alike = [torch.ones(3, MiB, device=gpu) for _ in range(3)]
    other = torch.ones(MiB, 3, device=gpu)
    with pytest.raises(torch.cuda.OutOfMemoryError) as caught:
        torch.empty(1 << 38, device=gpu)
    text = str(caught.value)
    assert "3 times 12.00 MiB (float32 [3, 1048576])" in text
    assert "12.00 MiB (float32 [1048576, 3])" in text
    simulated = torch.cuda.get_device_properties(gpu).simulated
    assert ("torch.cuda.simulate(memory=" in text) == simulated
    del alike, other


# In a process of its own: a library starts once for each device.
STARTED_LATE = """
import pydevtensor as torch
torch.cuda.simulate(1)
square = torch.eye(3, device="cuda")
torch.cuda.synchronize()
torch.cuda.sim_fail("LIBRARY:1+")
try:
    CALL
except RuntimeError as error:
    print(error)
torch.empty(1000, 1000, device="cuda")
kept = torch.cuda.memory_reserved()
torch.cuda.sim_fail("LIBRARY:1")
print((CALL).sum().item(), torch.cuda.memory_reserved() < kept)
"""


@pytest.mark.parametrize(
    ("library", "call", "result", "words"),
    [
        ("cublas", "square @ square", 3.0, "no memory for its workspace"),
        ("cusolver", "torch.linalg.det(square)", 1.0, "cuSOLVER failed while starting"),
    ],
)
def test_a_library_gets_the_memory_of_the_cache(library, call, result, words):
    """Starting that fails for want of memory is tried again without the cache."""
    said = python(STARTED_LATE.replace("LIBRARY", library).replace("CALL", call))
    error, last = said.splitlines()
    assert words in error and last == f"{result} True"


def test_a_small_device_fills_up_and_recovers():
    out = python("""
import pydevtensor as torch
torch.cuda.simulate(2, memory='16M')
kept = []
try:
    while True:
        kept.append(torch.ones(1 << 18, device='cuda:1'))
except torch.cuda.OutOfMemoryError as error:
    text = str(error)
n = len(kept)
print(4 <= n <= 16, f'{n} times 1.00 MiB (float32 [262144])' in text, 'cuda:1' in text)
print(torch.ones(1 << 18, device='cuda:0').sum().item())
del kept[0]
kept.append(torch.ones(1 << 18, device='cuda:1'))
print(len(kept) == n)
kept.clear()
print(torch.ones(1 << 20, device='cuda:1').sum().item(), torch.cuda.memory_allocated(1))
""")
    assert out.splitlines() == ["True True True", "262144.0", "True", "1048576.0 0"]


def test_empty_views_have_no_address(device):
    """Their offset may lead beyond their memory; a kernel on a GPU would get that."""
    for x in (
        torch.zeros(0, 3, dtype=torch.int32, device=device)[:, 1:],
        torch.ones(128, 1, dtype=torch.int32, device=device)[128:],
    ):
        flat = x.flatten()
        assert torch.dot(flat, flat).item() == 0 and (x.T @ x).sum().item() == 0
        assert torch.cat([x, x]).shape[0] == 2 * x.shape[0]
        assert x.sort(0).values.shape == x.cumsum(0).shape == x.shape
        assert x.data_ptr() == 0 and x.cpu().numpy().shape == tuple(x.shape)


def test_a_part_of_the_memory(gpu):
    """More than the process may have is refused, after the cache was given up."""
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info(gpu)[1]
    part = torch.cuda.memory_reserved(gpu) / total + 0.25
    assert torch.cuda.get_per_process_memory_fraction(gpu) == 1.0
    torch.cuda.set_per_process_memory_fraction(part, gpu)
    try:
        assert torch.cuda.get_per_process_memory_fraction(gpu) == part
        x = torch.empty(total // 5, dtype=torch.uint8, device=gpu)
        del x
        y = torch.empty(total // 6, dtype=torch.uint8, device=gpu)
        with pytest.raises(torch.OutOfMemoryError, match=r"memory_fraction.* allows"):
            torch.empty(total // 6, dtype=torch.uint8, device=gpu)
        del y
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, gpu)
    torch.empty(total // 2, dtype=torch.uint8, device=gpu)
    torch.cuda.empty_cache()
    with pytest.raises(TypeError, match="fraction is 1;"):
        torch.cuda.set_per_process_memory_fraction(1)
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="fraction is"):
            torch.cuda.set_per_process_memory_fraction(wrong)
