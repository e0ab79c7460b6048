"""The settings of PYTORCH_ALLOC_CONF: their text, and what they change."""

import pytest
from cases import Cases
from isolated import python

import pydevtensor as torch

MiB = 1 << 20
change = torch._C._accelerator_setAllocatorSettings

# What PyTorch 2.13 takes, and the exception that it raises for the others.
ACCEPTED = [
    "",
    "expandable_segments:True",
    "expandable_segments:False",
    "max_split_size_mb:20",
    "max_split_size_mb:64x",
    "max_split_size_mb:-5",
    "max_split_size_mb:64.5",
    " max_split_size_mb : 64 , ",
    ",max_split_size_mb:64",
    "max_split_size_mb:64,,expandable_segments:False",
    "garbage_collection_threshold:0.5",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[256:1,512:2,>:4]",
    "roundup_power2_divisions:[256:0]",
    "roundup_power2_divisions:[]",
    "roundup_power2_divisions:[256:1,]",
    "max_non_split_rounding_mb:20",
    "large_segment_size_mb:20",
    "pinned_use_background_threads:True",
    "pinned_max_round_threshold_mb:5,pinned_max_cached_size_mb:50",
    "pinned_reserve_segment_size_mb:5",
    "pinned_num_register_threads:8",
    "pinned_use_cuda_host_register:True",
    "release_lock_on_cudamalloc:True",
    "throw_on_cudamalloc_oom:True",
    "graph_capture_record_stream_reuse:True",
    "backend:native",
    "backend:cudaMallocAsync",
    "expandable_segments:True,expandable_segments:False",
    "expand able_segments:Fal se",
]
REFUSED = {
    "expandable_segments:true": ValueError,
    "expandable_segments:[True]": ValueError,
    "expandable_segments": RuntimeError,
    "expandable_segments:": RuntimeError,
    "max_split_size_mb:19": ValueError,
    "max_split_size_mb:0x40": ValueError,
    "max_split_size_mb:abc": ValueError,
    "max_split_size_mb:[64]": ValueError,
    "max_split_size_mb:": RuntimeError,
    "max_split_size_mb=64": RuntimeError,
    "max_split_size_mb:64 expandable_segments:True": RuntimeError,
    "max_split_size_mb:99999999999999999999999": IndexError,
    "max_non_split_rounding_mb:19": ValueError,
    "large_segment_size_mb:10": ValueError,
    "garbage_collection_threshold:0": ValueError,
    "garbage_collection_threshold:1": ValueError,
    "garbage_collection_threshold:x": ValueError,
    "per_process_memory_fraction:1.5": ValueError,
    "roundup_power2_divisions:3": ValueError,
    "roundup_power2_divisions:0": ValueError,
    "roundup_power2_divisions:[255:1]": ValueError,
    "roundup_power2_divisions:[256:3]": ValueError,
    "roundup_power2_divisions:[256:1 512:2]": ValueError,
    "roundup_power2_divisions:[256:1": RuntimeError,
    "roundup_power2_divisions:[256]": RuntimeError,
    "pinned_num_register_threads:3": ValueError,
    "backend:other": ValueError,
    "EXPANDABLE_SEGMENTS:True": ValueError,
    "unknown:1": ValueError,
    "[": RuntimeError,
}


@pytest.fixture(autouse=True)
def defaults():
    yield
    change("expandable_segments:False,large_segment_size_mb:20")


def divisions():
    settings = torch.cuda.memory._snapshot()["allocator_settings"]
    return list(settings["roundup_power2_divisions"].values())


def test_texts():
    with Cases() as case:
        for text in ACCEPTED:
            with case(text):
                change(text)
                assert torch._C._accelerator_getAllocatorSettings() == text
        for text, error in REFUSED.items():
            with case(text):
                before = torch.cuda.memory._snapshot()["allocator_settings"]
                with pytest.raises(error, match="allocator") as caught:
                    change(text)
                assert type(caught.value) is error
                assert torch.cuda.memory._snapshot()["allocator_settings"] == before
        for wrong in (None, 3, b"backend:native"):
            with case(repr(wrong)), pytest.raises(TypeError, match="str"):
                change(wrong)


def test_the_older_name_warns():
    with pytest.warns(FutureWarning, match="_accelerator_setAllocatorSettings"):
        torch.cuda.memory._set_allocator_settings("backend:native")
    assert torch.cuda.get_allocator_backend() == "native"


def test_some_settings_last_and_some_do_not():
    change("expandable_segments:True,max_split_size_mb:64")
    settings = torch.cuda.memory._snapshot()["allocator_settings"]
    assert settings["max_split_size"] == 64 * MiB
    change("garbage_collection_threshold:0.5")
    settings = torch.cuda.memory._snapshot()["allocator_settings"]
    assert settings["expandable_segments"] is True
    assert settings["max_split_size"] == -1
    assert settings["garbage_collection_threshold"] == 0.5
    assert settings["PYTORCH_CUDA_ALLOC_CONF"] == "garbage_collection_threshold:0.5"


def test_ranges_of_divisions():
    change("roundup_power2_divisions:[4:2,16:8,>:1]")
    assert divisions() == [2, 2, 2, 0, 8] + [1] * 11
    change("roundup_power2_divisions:8")
    assert divisions() == [8] * 16
    change("")
    assert divisions() == [0] * 16


FIRST_USE = """
import pydevtensor as torch
torch.cuda.simulate(1)
try:
    torch.ones(3, device="cuda")
    print(torch._C._accelerator_getAllocatorSettings())
except Exception as error:
    print(type(error).__name__, error)
    torch._C._accelerator_setAllocatorSettings("")
    print(torch.ones(3, device="cuda").sum().item())
"""


def test_the_environment():
    """PYTORCH_CUDA_ALLOC_CONF comes first. A wrong text is found at the first allocation."""
    both = {
        "PYTORCH_ALLOC_CONF": "max_split_size_mb:64",
        "PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:65",
    }
    assert python(FIRST_USE, **both) == "max_split_size_mb:65\n"
    del both["PYTORCH_CUDA_ALLOC_CONF"]
    assert python(FIRST_USE, **both) == "max_split_size_mb:64\n"
    said, after = python(FIRST_USE, PYTORCH_ALLOC_CONF="max_split_size_mb:1").split(
        "\n", 1
    )
    assert said.startswith("ValueError") and "max_split_size_mb is '1'" in said
    assert "PYTORCH_ALLOC_CONF" in said and after == "3.0\n"


# --- what they change ------------------------------------------------------------------


def held(gpu, count):
    before = torch.cuda.memory_allocated(gpu)
    x = torch.empty(count, dtype=torch.uint8, device=gpu)
    return torch.cuda.memory_allocated(gpu) - before, x


def test_rounding_up_to_parts_of_powers_of_two(gpu):
    change("roundup_power2_divisions:4")
    for asked, taken in {
        1: 512,
        2048: 2048,
        2049: 2560,
        5 * 4096: 5 * 4096,
        5 * 4096 + 1: 6 * 4096,
        100 * 4096 + 1: 112 * 4096,
        128 * 4096: 128 * 4096,
    }.items():
        assert held(gpu, asked)[0] == taken, asked


def test_large_blocks_are_not_split(gpu):
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    change("max_split_size_mb:20")
    held(gpu, 48 * MiB)
    reserved = torch.cuda.memory_reserved(gpu)
    kept = held(gpu, 12 * MiB)[1]  # not from the large block
    assert torch.cuda.memory_reserved(gpu) == reserved + 12 * MiB
    more, large = held(gpu, 40 * MiB)  # which is whole for this
    assert more == 48 * MiB and torch.cuda.memory_reserved(gpu) == reserved + 12 * MiB
    del kept, large
    larger = held(gpu, 22 * MiB)[1]  # it would waste 26 MiB
    assert torch.cuda.memory_reserved(gpu) == reserved + 34 * MiB
    del larger
    torch.cuda.empty_cache()


def test_what_is_free_for_long_goes_first(gpu):
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info(gpu)[1]
    part = total // 8 // (2 * MiB) * 2 * MiB
    base = torch.cuda.memory_reserved(gpu)
    x, y, z = (held(gpu, part + i * 2 * MiB)[1] for i in range(3))
    del y, x, z
    change(f"garbage_collection_threshold:{(base + 2.5 * part) / total:.6f}")
    held(gpu, part * 2)
    sizes = {s["total_size"] - part for s in torch.cuda.memory_snapshot()}
    # y and x made room: two parts are left, and the new one.
    assert 4 * MiB in sizes and 2 * MiB not in sizes
    change("")
    torch.cuda.empty_cache()


def test_segments_of_another_size(gpu):
    torch.cuda.synchronize(gpu)
    torch.cuda.empty_cache()
    change("large_segment_size_mb:32")
    before = torch.cuda.memory_reserved(gpu)
    x = held(gpu, 2 * MiB)[1]
    assert torch.cuda.memory_reserved(gpu) == before + 32 * MiB
    del x
    torch.cuda.empty_cache()


def test_a_fraction_of_the_memory():
    said = python(
        """
import pydevtensor as torch
torch.cuda.simulate(1, memory="64M")
print(torch.cuda.get_per_process_memory_fraction())
try:
    torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    print("allows 32.00 MiB" in str(error))
torch.cuda.set_per_process_memory_fraction(1.0)
torch.empty(40 << 20, dtype=torch.uint8, device="cuda")
""",
        PYTORCH_ALLOC_CONF="per_process_memory_fraction:0.5",
    )
    assert said == "0.5\nTrue\n"
