"""Sparse gradients beyond PyTorch's answers (golden/sparse_gradients.json): clipping, scaling,
second derivatives, hooks, threads, devices, memory, and errors."""

import gc
import weakref

import pytest
import ranks

import pydevtensor as torch
from pydevtensor import nn


def table(device, rows=5, size=2, **options):
    weight = torch.arange(float(rows * size), device=device).reshape(rows, size)
    return nn.Embedding.from_pretrained(weight, False, sparse=True, **options)


def words(device, *numbers):
    return torch.tensor(numbers, device=device)


def test_a_gradient_is_where_its_table_is(device):
    layer = table(device)
    layer(words(device, 1, 3, 1)).sum().backward()
    found = layer.weight.grad
    assert found.is_sparse and str(found.device) == device
    assert found.coalesce().indices().tolist() == [[1, 3]]
    assert found.to_dense().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1], [0, 0]]
    moved = layer.to("cpu")
    assert moved.weight.grad.device.type == "cpu" and moved.weight.grad.is_sparse


def test_a_dense_gradient_takes_a_sparse_one_in_place(device):
    layer = table(device)
    layer.weight.grad = mine = torch.ones(5, 2, device=device)
    layer(words(device, 4)).sum().backward()
    assert layer.weight.grad is mine and mine.sum().item() == 12


def test_clipping_of_the_norm_and_of_values(device):
    layer, other = table(device), nn.Parameter(torch.ones(2, device=device))
    (layer(words(device, 0, 0, 2)).sum() * 3 + (other * 2).sum()).backward()
    dense = torch.cat([layer.weight.grad.to_dense().reshape(-1), other.grad])
    wanted = dense.norm().item()
    norm = nn.utils.clip_grad_norm_([layer.weight, other], 1.0)
    assert norm.item() == pytest.approx(wanted)
    assert layer.weight.grad.is_sparse
    assert torch.allclose(layer.weight.grad.to_dense().reshape(-1), dense[:10] / wanted)
    nn.utils.clip_grad_value_([layer.weight], 0.2)
    assert layer.weight.grad.to_dense().max().item() == pytest.approx(0.2)


def test_a_scaler_unscales_what_a_position_has_in_all(device):
    layer = table(device)
    trainer = torch.optim.SGD(layer.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=8.0)
    scaler.scale(layer(words(device, 2, 2)).sum()).backward()
    scaler.unscale_(trainer)
    assert layer.weight.grad.to_dense()[2].tolist() == [2, 2]
    scaler.step(trainer)
    assert layer.weight[2].tolist() == [2, 3]


def test_second_derivatives(device):
    layer = table(device)
    out = layer(words(device, 1, 1, 3))
    (first,) = torch.autograd.grad(out.pow(3).sum(), layer.weight, create_graph=True)
    first.coalesce().values().sum().backward()
    assert layer.weight.grad.to_dense().tolist() == [
        [0, 0],
        [24, 36],
        [0, 0],
        [36, 42],
        [0, 0],
    ]
    layer.weight.grad = None


def test_a_sum_of_recorded_gradients(device):
    layer = table(device)
    for _ in range(2):
        layer(words(device, 1)).pow(2).sum().backward(create_graph=True)
    assert layer.weight.grad.to_dense()[1].tolist() == [8, 12]
    (layer.weight * layer.weight).sum().backward(create_graph=True)
    assert not layer.weight.grad.is_sparse
    assert layer.weight.grad[1].tolist() == [12, 18]
    layer.weight.grad = None  # which leads to the weight again


def test_nodes_get_a_dense_gradient(device):
    weight = torch.ones(3, 2, device=device, requires_grad=True)
    middle = weight * 2
    middle.retain_grad()
    nn.functional.embedding(words(device, 0, 0), middle, sparse=True).sum().backward()
    assert weight.grad.tolist() == [[4, 4], [0, 0], [0, 0]]
    assert middle.grad.to_dense().tolist() == [[2, 2], [0, 0], [0, 0]]


def test_hooks_may_change_the_kind(device):
    layer = table(device)
    handle = layer.weight.register_hook(lambda gradient: gradient.to_dense())
    layer(words(device, 1)).sum().backward()
    assert layer.weight.grad.tolist()[1] == [1, 1]
    handle.remove()
    layer.weight.grad = None
    layer.weight.register_hook(lambda gradient: 3)
    with pytest.raises(TypeError, match="a hook has to return a Tensor"):
        layer(words(device, 1)).sum().backward()


def test_anomaly_mode_takes_it(device):
    layer = table(device)
    with torch.autograd.detect_anomaly():
        layer(words(device, 1)).sum().backward()
    assert layer.weight.grad.is_sparse


def test_a_function_may_return_one(device):
    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, gradient):
            return torch.eye(2, device=device).to_sparse() * gradient

    x = torch.zeros(2, 2, device=device, requires_grad=True)
    Rows.apply(x).backward()
    assert x.grad.is_sparse and x.grad.to_dense().tolist() == [[1, 0], [0, 1]]
    y = torch.zeros(3, 2, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="shape"):
        Rows.apply(y).backward()


def test_it_is_freed_with_its_parameter(device):
    layer = table(device)
    layer(words(device, 1)).sum().backward()
    seen = weakref.ref(layer.weight.grad)
    assert seen() is not None
    layer.weight.grad = None
    gc.collect()
    assert seen() is None


def test_whole_rows_of_float16(device):
    layer = table(device).half()
    layer(words(device, 3, 3, 3)).sum().backward()
    assert layer.weight.grad.dtype == torch.half
    assert layer.weight.grad.to_dense()[3].tolist() == [3, 3]


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Muon", "Adafactor"])
def test_others_say_which_optimizer_to_use(device, name):
    layer = table(device)
    trainer = getattr(torch.optim, name)(layer.parameters())
    layer(words(device, 1)).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients; use"):
        trainer.step()


def test_lbfgs_makes_them_dense(device):
    layer = table(device).double()
    trainer = torch.optim.LBFGS(layer.parameters(), lr=0.5, max_iter=20)

    def closure():
        trainer.zero_grad()
        loss = (layer(words(device, 1, 2)) - 1).pow(2).sum()
        loss.backward()
        return loss

    trainer.step(closure)
    assert closure().item() < 1e-6


def test_states_of_sparse_adam_are_saved(device):
    def run(layer, trainer, steps):
        for k in steps:
            trainer.zero_grad()
            layer(words(device, k % 5, 2)).pow(2).sum().backward()
            trainer.step()

    whole = table(device)
    run(whole, torch.optim.SparseAdam(whole.parameters(), lr=0.1), range(6))
    layer = table(device)
    trainer = torch.optim.SparseAdam(layer.parameters(), lr=0.1)
    run(layer, trainer, range(3))
    after = torch.optim.SparseAdam(layer.parameters(), lr=0.5)
    after.load_state_dict(trainer.state_dict())
    run(layer, after, range(3, 6))
    assert torch.equal(layer.weight, whole.weight)


def test_data_parallel_refuses_them(tmp_path):
    code = """
        begin()
        net = nn.parallel.DistributedDataParallel(nn.Embedding(3, 2, sparse=True))
        try:
            net(torch.tensor([1])).sum().backward()
        except NotImplementedError as error:
            print(error)
    """
    assert "sparse=False" in "".join(ranks.run(tmp_path, 1, code))
