"""Averages of models beyond the golden cases: launches, devices, history."""

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.optim import swa_utils


def filled(value, device, parts=3):
    net = nn.Sequential(*(nn.Linear(3, 3) for _ in range(parts))).to(device)
    for p in net.parameters():
        p.data.fill_(value)
    return net


AVERAGES = {
    "mean": swa_utils.get_swa_multi_avg_fn(),
    "moving": swa_utils.get_ema_multi_avg_fn(0.5),
}


@pytest.mark.parametrize("name", AVERAGES)
def test_an_average_is_one_launch_and_no_wait(name, gpu):
    if not torch.cuda.is_simulated():
        pytest.skip("counts what simulated GPUs do")
    kept, new = (
        [torch.full((n,), value, device=gpu) for n in (3, 5000, 700, 1) * 20]
        for value in (1.0, 3.0)
    )
    torch.cuda.synchronize(gpu)
    before = torch.cuda.sim_counters(gpu)["launches"]
    with torch.cuda.transfers() as seen:
        AVERAGES[name](kept, new, 1)
    assert torch.cuda.sim_counters(gpu)["launches"] - before == 1
    assert seen.waits == 0
    assert {v for t in kept for v in t.tolist()} == {2.0}


def test_an_average_may_be_on_another_device(device):
    net = filled(1.0, device)
    averaged = swa_utils.AveragedModel(net, device="cpu")
    assert {str(p.device) for p in averaged.parameters()} == {"cpu"}
    assert str(averaged.n_averaged.device) == "cpu"
    averaged.update_parameters(net)
    averaged.update_parameters(filled(4.0, device))
    assert {v for p in averaged.parameters() for v in p.flatten().tolist()} == {2.5}


def test_parts_on_several_devices(two_gpus):
    net = filled(1.0, "cpu")
    net[1].to(two_gpus[0])
    net[2].to(two_gpus[1]).double()
    log = []

    def average(kept, new, count):
        log.append((str(kept[0].device), str(count.device), len(kept), kept[0].dtype))
        for k, n in zip(kept, new, strict=True):
            k.add_(n).add_(count)

    for options in ({}, {"multi_avg_fn": average}):
        averaged = swa_utils.AveragedModel(net, **options)
        for _ in range(2):
            averaged.update_parameters(net)
        values = {v for p in averaged.parameters() for v in p.flatten().tolist()}
        assert values == ({3.0} if options else {1.0})
    first, second = two_gpus
    assert log == [
        ("cpu", "cpu", 2, torch.float32),
        (first, first, 2, torch.float32),
        (second, second, 2, torch.float64),
    ]


def test_an_average_leaves_no_history(device):
    net = filled(1.0, device)
    averaged = swa_utils.AveragedModel(net)
    before = [p._version for p in averaged.parameters()]
    for _ in range(2):
        averaged.update_parameters(net)
    assert all(p.is_leaf and p.requires_grad for p in averaged.parameters())
    assert all(
        p._version > v for p, v in zip(averaged.parameters(), before, strict=True)
    )


def test_shapes_that_differ_are_named(device):
    averaged = swa_utils.AveragedModel(nn.Linear(3, 2).to(device))
    averaged.update_parameters(nn.Linear(3, 2).to(device))
    with pytest.raises(RuntimeError, match="shape"):
        averaged.update_parameters(nn.Linear(4, 2).to(device))
