"""utils.flop_counter: FLOPs by module, as many as PyTorch counts."""

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.utils.flop_counter import FlopCounterMode


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3)
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


def totals(counter):
    return {name: sum(n.values()) for name, n in counter.get_flop_counts().items()}


def test_a_net(device):
    net, x = Net().to(device), torch.randn(4, 2, 4, 4, device=device)
    with FlopCounterMode(display=False) as counter:
        net(x)
    # What PyTorch 2.13 gives.
    expected = {"Global": 2208, "Net": 2208, "Net.conv": 1728, "Net.fc": 480}
    assert totals(counter) == expected and counter.get_total_flops() == 2208
    with counter:
        net(x).sum().backward()
    expected = {"Global": 4896, "Net": 4896, "Net.conv": 3456, "Net.fc": 1440}
    assert totals(counter) == expected
    with counter:
        pass
    assert counter.get_flop_counts() == {} and counter.get_total_flops() == 0


@pytest.mark.parametrize(
    ("flops", "call"),
    [
        (48, "torch.ones(2, 3) @ torch.ones(3, 4)"),
        (240, "torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4))"),
        (48, "torch.einsum('ij,jk->ik', torch.ones(2, 3), torch.ones(3, 4))"),
        (1040, "nn.MultiheadAttention(4, 2)(*[torch.ones(5, 1, 4)] * 3)"),
        (0, "torch.linalg.qr(torch.eye(3)), torch.ones(3) + 1"),
    ],
)
def test_calls(device, flops, call):
    with torch.device(device), FlopCounterMode(display=False) as counter:
        eval(call)
    assert counter.get_total_flops() == flops


def test_the_table(capsys):
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 4)))
    with FlopCounterMode(depth=1) as counter:
        net(torch.ones(2, 3))
    shown = capsys.readouterr().out
    assert shown == counter.get_table() + "\n" and "Sequential.0" not in shown
    whole = counter.get_table(2).splitlines()
    assert [line.split() for line in whole[:3]] == [
        ["Module", "FLOP", "%", "Total"],
        ["Global", "48", "100.00%"],
        ["-", "matmul", "48", "100.00%"],
    ]
    assert any(line.split()[0] == "Sequential.0" for line in whole)


def test_errors():
    with pytest.raises(NotImplementedError, match="leave custom_mapping out"):
        FlopCounterMode(custom_mapping={"a": len})
    with FlopCounterMode(display=False) as counter:
        with pytest.raises(RuntimeError, match="running"), FlopCounterMode():
            pass
        torch.ones(2, 3) @ torch.ones(3, 4)
    assert counter.get_total_flops() == 48
