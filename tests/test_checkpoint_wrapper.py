"""Blocks of a model that run again in the backward pass, by FSDP programs' names."""

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
)


class Block(nn.Module):
    runs = 0

    def __init__(self):
        super().__init__()
        self.up, self.width = nn.Linear(3, 3), 3

    def forward(self, x, scale=1.0):
        Block.runs += 1
        return x + scale * torch.tanh(self.up(x))


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), Block(), Block())


@pytest.mark.parametrize("how", [*CheckpointImpl])
def test_blocks_run_again_and_names_stay(how):
    plain, wrapped = model(), model()
    apply_activation_checkpointing(
        wrapped,
        checkpoint_wrapper_fn=lambda m: checkpoint_wrapper(m, checkpoint_impl=how),
        check_fn=lambda m: isinstance(m, Block),
    )
    assert [type(m) for m in wrapped] == [nn.Linear] + [CheckpointWrapper] * 2
    assert wrapped[1].width == 3
    names = [name for name, _ in plain.named_parameters()]
    assert [*wrapped.state_dict()] == names
    assert [name for name, _ in wrapped[1].named_parameters()] == [
        "up.weight",
        "up.bias",
    ]
    Block.runs = 0
    x = torch.ones(2, 3)
    wrapped(x).sum().backward()
    assert Block.runs == 4
    plain(x).sum().backward()
    for one, other in zip(plain.parameters(), wrapped.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)
    with torch.no_grad():
        for p in wrapped.parameters():
            p.zero_()
    wrapped.load_state_dict(plain.state_dict())
    plain.load_state_dict(wrapped.state_dict())
    assert torch.equal(plain(x), wrapped(x))


def test_a_function_in_place_of_checkpoint():
    seen = []

    def run(module, *args, **kwargs):
        seen.append(kwargs.pop("word"))
        return module(*args, **kwargs)

    block = checkpoint_wrapper(Block(), checkpoint_fn=run, word="mine")
    assert torch.equal(block(torch.ones(1, 3), scale=0.0), torch.ones(1, 3))
    assert seen == ["mine"]


def test_a_policy_says_which():
    from pydevtensor.distributed.fsdp.wrap import ModuleWrapPolicy

    net = model()
    apply_activation_checkpointing(net, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
    assert [type(m) for m in net] == [CheckpointWrapper, Block, Block]
    assert isinstance(net[1].up, CheckpointWrapper)


SHARDED = """
from pydevtensor.distributed.fsdp import FullyShardedDataParallel, fully_shard
from pydevtensor.distributed.fsdp.wrap import ModuleWrapPolicy
from pydevtensor.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl, apply_activation_checkpointing, checkpoint_wrapper)
begin()
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(6, 6)
    def forward(self, x):
        return x + torch.tanh(self.up(x))
def make():
    torch.manual_seed(0)
    return nn.Sequential(Block(), Block(), nn.Linear(6, 1))
def checkpointed(net, how):
    wrap = lambda module: checkpoint_wrapper(module, checkpoint_impl=how)
    apply_activation_checkpointing(net, wrap, lambda module: isinstance(module, Block))
torch.manual_seed(1)
x = torch.randn(4, 6)
plain = make()
plain(x).square().mean().backward()
def check(net, grads):
    net(x[2 * rank : 2 * rank + 2].requires_grad_()).square().mean().backward()
    for one, other in zip(plain.parameters(), grads(net), strict=True):
        assert torch.allclose(one.grad.flatten(), other.flatten(), atol=1e-6), how
def of_rows(net):
    return [p.grad.full_tensor() for p in net.parameters()]
def of_units(net):
    with FullyShardedDataParallel.summon_full_params(net, with_grads=True):
        return [p.grad.clone() for p in net.parameters()]
for how in CheckpointImpl:
    for first in (True, False):
        net = make()
        if first:  # the unit is the wrapper
            checkpointed(net, how)
        for block in net[:2]:
            fully_shard(block)
        fully_shard(net)
        if not first:  # the unit is in the wrapper
            checkpointed(net, how)
        check(net, of_rows)
    if how is CheckpointImpl.NO_REENTRANT:
        net = FullyShardedDataParallel(
            make(), auto_wrap_policy=ModuleWrapPolicy({Block}), use_orig_params=True)
        checkpointed(net, how)  # the wrapper is in the unit
        check(net, of_units)
"""


def test_sharded_blocks_are_gathered_again(tmp_path):
    import ranks

    ranks.run(tmp_path, 2, SHARDED)
