"""Pinned memory: which tensors have it, and that it is kept while a copy reads it."""

import textwrap

import pytest
from isolated import python

import pydevtensor as torch
from pydevtensor.utils.data import DataLoader, TensorDataset


def isolated(code, **chosen):
    python(textwrap.dedent(code), **chosen)


def test_pinning_copies_once(gpu):
    x = torch.arange(6.0).reshape(2, 3)
    pinned = x.pin_memory()
    assert pinned.tolist() == x.tolist() and pinned.device.type == "cpu"
    assert pinned.is_pinned() and not x.is_pinned() and not pinned.to(gpu).is_pinned()
    assert pinned.pin_memory() is pinned
    assert pinned[0].is_pinned() and pinned.T.is_pinned()
    assert not (pinned + 1).is_pinned() and not pinned.clone().is_pinned()
    pinned[0, 0] = 7
    assert x[0, 0].item() == 0 and pinned[0].tolist() == [7, 1, 2]


def test_layouts(gpu):
    x = torch.arange(24.0).reshape(2, 3, 4)
    for part in (
        x.permute(2, 0, 1),
        x[:, 1:],
        x[:, :1].expand(2, 3, 4),
        x[0, 0, 0],
        x[:0],
    ):
        pinned = part.pin_memory()
        assert pinned.is_pinned() and pinned.tolist() == part.tolist()
    assert x.permute(2, 0, 1).pin_memory().stride() == x.permute(2, 0, 1).stride()


def test_factories(gpu):
    for made in (
        torch.empty(2, pin_memory=True),
        torch.zeros(2, 3, pin_memory=True),
        torch.full((2,), 3.0, pin_memory=True),
        torch.arange(4, pin_memory=True),
        torch.tensor([1.0], pin_memory=True),
        torch.rand(5, pin_memory=True),
        torch.randperm(5, pin_memory=True),
        torch.eye(2, pin_memory=True),
        torch.zeros_like(torch.ones(2), pin_memory=True),
        torch.ones(1).new_tensor([1, 2], pin_memory=True),
    ):
        assert made.is_pinned()
    assert torch.full((2,), 3.0, pin_memory=True).tolist() == [3, 3]
    leaf = torch.ones(2, pin_memory=True, requires_grad=True)
    assert leaf.is_pinned() and leaf.is_leaf and leaf.requires_grad


def test_only_the_cpus_memory(gpu):
    with pytest.raises(RuntimeError, match=f"{gpu}.*only memory of the CPU"):
        torch.ones(2, device=gpu).pin_memory()
    with pytest.raises(RuntimeError, match="only memory of the CPU"):
        torch.zeros(2, device=gpu, pin_memory=True)


def test_gradients_go_through(gpu):
    x = torch.ones(3, requires_grad=True)
    pinned = x.pin_memory()
    assert pinned.grad_fn.name() == "PinMemoryBackward0"
    (pinned.to(gpu, non_blocking=True) * 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


@pytest.mark.parametrize("numel", [3, 1 << 18])
def test_a_copy_that_nobody_waits_for(gpu, numel):
    pinned = torch.arange(numel, dtype=torch.float32).pin_memory()
    target = torch.zeros(numel, device=gpu)
    with torch.cuda.transfers() as seen:
        there = pinned.to(gpu, non_blocking=True)
        target.copy_(pinned, non_blocking=True)
        part = pinned[1:].cuda(gpu, non_blocking=True)
    assert (seen.host_to_device, seen.waits) == (3, 0)
    assert seen.host_to_device_bytes == 4 * (3 * numel - 1)
    for found in (there, target):
        assert (found.cpu() == pinned).all()
    assert part.cpu()[-1].item() == numel - 1


def test_memory_is_not_handed_out_while_a_copy_reads_it():
    """On a schedule that puts everything off, the copy runs after the tensor is gone."""
    isolated(
        """
        import pydevtensor as torch
        source = torch.full((1000,), 5.0).pin_memory()
        place = source.data_ptr()
        there = source.cuda(non_blocking=True)
        del source
        others = [torch.zeros(1000).pin_memory() for _ in range(3)]
        assert place not in [other.data_ptr() for other in others]
        assert there.tolist() == [5.0] * 1000
        # Now it is over, and the block serves again.
        assert torch.zeros(1000).pin_memory().data_ptr() == place
        """,
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
    )


def test_memory_is_not_handed_out_while_copies_of_two_gpus_read_it():
    isolated(
        """
        import pydevtensor as torch
        source = torch.full((1000,), 5.0).pin_memory()
        place = source.data_ptr()
        there = [source.cuda(gpu, non_blocking=True) for gpu in range(2)]
        del source
        torch.cuda.synchronize(0)
        other = torch.zeros(1000).pin_memory()
        assert other.data_ptr() != place
        assert there[1].tolist() == [5.0] * 1000
        assert torch.zeros(1000).pin_memory().data_ptr() == place
        """,
        PYDEVTENSOR_SIM_GPUS="2",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
    )


def test_empty_cache_gives_it_back():
    isolated(
        """
        import pydevtensor as torch
        kept, gone = (torch.ones(1 << 22).pin_memory() for _ in range(2))
        there = gone.cuda(non_blocking=True)
        del gone
        torch.cuda.empty_cache()
        assert torch.cuda.sim_counters()["host_frees"] == 1
        assert there.sum().item() == kept.sum().item() == 1 << 22
        """,
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
    )


def test_a_copy_waits_unless_it_is_told_not_to():
    isolated(
        """
        import pydevtensor as torch
        source = torch.full((100000,), 5.0).pin_memory()
        there = source.cuda()
        source.zero_()
        assert there.sum().item() == 500000
        later = source.cuda(non_blocking=True)
        source.fill_(1)   # too early, and so it is seen
        assert later.sum().item() == 100000
        """,
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
    )


def test_a_copy_to_page_locked_memory_waits_for_nobody():
    isolated(
        """
        import pydevtensor as torch
        source = torch.full((1000,), 5.0, device="cuda")
        here = torch.zeros(1000, pin_memory=True)
        torch.cuda.synchronize()
        with torch.cuda.transfers() as transfers:
            assert here.copy_(source, non_blocking=True) is here
        counts = transfers.counts()
        assert counts["device_to_host"] == 1 and counts["waits"] == 0, counts
        assert here.sum().item() == 0   # too early
        event = torch.cuda.Event()
        event.record()
        source.zero_()                  # behind the copy in the stream
        event.synchronize()
        assert here.sum().item() == 5000
        # What cannot be queued waits, and so does who does not ask.
        for target in (torch.zeros(1000), torch.zeros(1000, pin_memory=True).double(),
                       torch.zeros(2, 1000, pin_memory=True),
                       torch.zeros(1000, 2, pin_memory=True)[:, 0]):
            source = torch.ones(1000, device="cuda")
            target.copy_(source, non_blocking=True)
            assert target.sum().item() == target.numel()
        here.copy_(source)
        assert here.sum().item() == 1000
        assert source.to("cpu", non_blocking=True).sum().item() == 1000
        """,
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
    )


def test_memory_is_not_handed_out_while_a_copy_writes_it():
    isolated(
        """
        import pydevtensor as torch
        source = torch.full((1000,), 5.0, device="cuda")
        here = torch.zeros(1000, pin_memory=True)
        torch.cuda.synchronize()
        place = here.data_ptr()
        here.copy_(source, non_blocking=True)
        del here, source
        other = torch.zeros(1000, pin_memory=True)  # asking for more lets work go on
        assert place != other.data_ptr()
        torch.cuda.synchronize()
        assert other.sum().item() == 0
        assert torch.zeros(1000, pin_memory=True).data_ptr() == place
        """,
        PYDEVTENSOR_SIM_GPUS="1",
        PYDEVTENSOR_SIM_SCHEDULE="lazy",
    )


def test_without_a_gpu():
    isolated(
        """
        import warnings
        import pydevtensor as torch
        from pydevtensor.utils.data import DataLoader, TensorDataset
        assert torch.ones(2).is_pinned() is False
        for call in (
            lambda: torch.ones(2).pin_memory(),
            lambda: torch.empty(2, pin_memory=True),
            lambda: torch.tensor([1], pin_memory=True),
        ):
            try:
                call()
            except RuntimeError as error:
                assert "no GPU" in str(error)
            else:
                raise AssertionError
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            batches = list(DataLoader(TensorDataset(torch.ones(4)), pin_memory=True))
        assert len(batches) == 4 and "pin_memory" in str(caught[0].message)
        """,
        PYDEVTENSOR_SIM_GPUS="0",
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_loader(gpu, workers):
    data = TensorDataset(torch.arange(4.0), torch.arange(4))
    loader = DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers)
    total = 0
    for x, y in loader:
        assert x.is_pinned() and y.is_pinned()
        total += (x.to(gpu, non_blocking=True) * y.to(gpu, non_blocking=True)).sum()
    assert total.item() == 14


def test_loader_pins_what_containers_hold(gpu):
    class Pair:
        def __init__(self, x):
            self.x = x

        def pin_memory(self):
            return Pair(self.x.pin_memory())

    def collate(samples):
        return {
            "x": torch.tensor(samples),
            "s": "text",
            "t": (torch.ones(1), 3),
            "p": Pair(torch.ones(1)),
        }

    (batch,) = DataLoader([1, 2], batch_size=2, pin_memory=True, collate_fn=collate)
    assert (
        batch["x"].is_pinned()
        and batch["t"][0].is_pinned()
        and batch["p"].x.is_pinned()
    )
    assert batch["s"] == "text" and batch["t"][1] == 3
