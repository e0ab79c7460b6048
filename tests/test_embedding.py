"""Embeddings: gradients, index errors on GPUs, and tables that are trained."""

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.autograd import gradcheck, gradgradcheck

F = nn.functional


@pytest.mark.parametrize("padding", [None, 0, -1])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_gradients_of_both_orders(device, padding, by_frequency):
    # Without a repeated row, dividing by the frequency changes no gradient.
    numbers = torch.tensor([[1, 2], [3, 0]], device=device)
    if not by_frequency:
        numbers = torch.tensor([[1, 2], [2, 3]], device=device)
    rows = torch.randn(5, 3, dtype=torch.float64, device=device)

    def choose(table):
        return F.embedding(numbers, table, scale_grad_by_freq=by_frequency)

    assert gradcheck(choose, rows.requires_grad_())
    assert gradgradcheck(choose, rows)
    if padding is None:
        return
    F.embedding(numbers, rows, padding).sum().backward()
    counts = F.one_hot(numbers.reshape(-1), 5).sum(0).double()
    counts[padding] = 0
    assert rows.grad.tolist() == [[c] * 3 for c in counts.tolist()]


def test_padding_gets_no_gradient_even_where_it_is_not_finite(device):
    table = torch.ones(3, 2, device=device, requires_grad=True)
    chosen = F.embedding(torch.tensor([0, 1, 1], device=device), table, padding_idx=0)
    chosen.backward(torch.tensor([[float("nan")] * 2, [1, 2], [3, 4]], device=device))
    assert table.grad.tolist() == [[0, 0], [4, 6], [0, 0]]


def test_a_number_out_of_range_is_reported_and_the_device_works_on(gpu):
    table = nn.Embedding(4, 3, device=gpu)
    table(torch.tensor([1, 9, -2], device=gpu))
    with pytest.raises(
        torch.AcceleratorError, match=r"embedding: index (9|-2) .* size 4"
    ):
        torch.cuda.synchronize(gpu)
    F.one_hot(torch.tensor([0, 3], device=gpu), 3)
    with pytest.raises(
        torch.AcceleratorError, match=r"one_hot: index 3 .* size 3; give indices from 0"
    ):
        torch.cuda.synchronize(gpu)
    assert table(torch.tensor([3], device=gpu)).tolist() == [table.weight[3].tolist()]


def test_a_number_out_of_range_says_what_there_is():
    with pytest.raises(
        IndexError, match=r"index 4 .* size 4; give indices from 0 to 3"
    ):
        nn.Embedding(4, 3)(torch.tensor([1, 4]))


def test_table_and_numbers_on_different_devices(gpu):
    table = nn.Embedding(4, 3)
    with pytest.raises(RuntimeError, match=rf"Embedding\(4, 3\).*cpu.*{gpu}"):
        table(torch.tensor([1], device=gpu))
    with pytest.raises(RuntimeError, match=r"embedding.*cpu"):
        F.embedding(torch.tensor([1], device=gpu), table.weight)


def test_choosing_does_not_wait(gpu):
    table, numbers = nn.Embedding(4, 3, device=gpu), torch.tensor([1, 2], device=gpu)
    torch.cuda.synchronize()
    with torch.cuda.transfers() as seen:
        (table(numbers) ** 2).sum().backward()
    assert (seen.host_to_device, seen.device_to_host, seen.waits) == (0, 0, 0)


def test_learns(device):
    """A table finds the vectors that are asked of it; the other rows stay."""
    torch.manual_seed(1)
    wanted = torch.randn(6, 4).to(device)
    table = nn.Embedding(6, 4).to(device)
    still = table.weight[5].tolist()
    optimizer = torch.optim.SGD(table.parameters(), lr=0.4)
    numbers = torch.tensor([0, 1, 2, 3, 4, 0, 2], device=device)
    for _ in range(40):
        optimizer.zero_grad()
        (table(numbers) - wanted[numbers]).square().sum().mul(0.5).backward()
        optimizer.step()
    assert (table.weight[:5] - wanted[:5]).abs().max().item() < 1e-5
    assert table.weight[5].tolist() == still
