"""Options of FullyShardedDataParallel: policies, and wrong ones, in one process."""

import pytest

import pydevtensor as torch
from pydevtensor import nn
from pydevtensor.distributed.fsdp import wrap


@pytest.fixture
def alone():
    dist = torch.distributed
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield torch.distributed.fsdp
    dist.destroy_process_group()


def units(model):
    """The paths of a model's units."""
    kind = torch.distributed.fsdp.FullyShardedDataParallel
    names = [name for name, m in model.named_modules() if isinstance(m, kind)]
    return [name.replace("_fsdp_wrapped_module.", "") for name in names]


def model():
    block = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    return nn.Sequential(
        nn.ModuleList([block, nn.Linear(4, 4)]), nn.Linear(4, 2), block
    )


def test_policies(alone):
    from functools import partial

    fsdp = alone.FullyShardedDataParallel
    layers = {nn.Linear}
    cases = {
        wrap.always_wrap_policy: ["", "0", "0.0", "0.0.0", "0.0.1", "0.1", "1"],
        wrap.ModuleWrapPolicy(layers): ["", "0.0.0", "0.1", "1"],
        partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls=layers): [
            *("", "0.0.0", "0.1", "1")
        ],
        partial(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: type(m) is nn.Tanh): [
            *("", "0.0.1")
        ],
        partial(wrap.size_based_auto_wrap_policy, min_num_params=20): [
            *("", "0.0.0", "0.1")
        ],
        partial(wrap.size_based_auto_wrap_policy, min_num_params=21): [""],
        partial(
            wrap.size_based_auto_wrap_policy,
            min_num_params=15,
            force_leaf_modules={nn.ModuleList},
            exclude_wrap_modules={nn.ModuleDict},
        ): ["", "0.0.0"],
        partial(
            wrap.size_based_auto_wrap_policy,
            min_num_params=15,
            force_leaf_modules={nn.Sequential},
        ): [""],
    }
    for policy, expected in cases.items():
        made = fsdp(model(), auto_wrap_policy=policy)
        assert units(made) == expected, policy
        # one module under two names is one unit
        assert made[2] is made[0][0]
    strategy = alone.ShardingStrategy.SHARD_GRAD_OP
    policy = wrap.CustomPolicy(
        lambda m: {"sharding_strategy": strategy} if type(m) is nn.Tanh else False
    )
    made = fsdp(model(), auto_wrap_policy=policy)
    assert units(made) == ["", "0.0.1"] and made[0][0][1]._reshards is False
    made = fsdp(model(), auto_wrap_policy=wrap.ModuleWrapPolicy(layers))
    assert len(fsdp.fsdp_modules(made)) == 4
    assert fsdp.fsdp_modules(nn.Sequential(made), root_only=True) == [made]
    skipped = model()
    made = fsdp(
        skipped,
        auto_wrap_policy=wrap.ModuleWrapPolicy(layers),
        ignored_modules=[skipped[0]],
        ignored_states=[skipped[1].bias],
    )
    assert units(made) == ["", "1"]
    assert made[1].bias.shape == (2,) and made[1].weight is None
    assert len([*made.state_dict()]) == 8
    with wrap.enable_wrap(wrapper_cls=fsdp, use_orig_params=True):
        made = wrap.wrap(nn.Linear(2, 2), use_orig_params=False)
        assert len([*made.parameters()]) == 1
        assert len([*wrap.wrap(nn.Linear(2, 2)).parameters()]) == 2
    assert isinstance(wrap.wrap(made), fsdp) and repr(made).count("Linear") == 1


def tied(fsdp):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    return fsdp.FullyShardedDataParallel(
        net, auto_wrap_policy=wrap.ModuleWrapPolicy({nn.Linear})
    )


def mixed(fsdp, **given):
    net = nn.Linear(2, 2)
    for name, change in given.items():
        setattr(net, name, nn.Parameter(*change))
    return fsdp.FullyShardedDataParallel(net)


class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2, device="meta"))


WRONG = {
    "tied": (tied, ValueError, "weight of Linear is tied to one of a module"),
    "types": (
        lambda f: mixed(f, bias=[torch.ones(2, dtype=torch.float64)]),
        ValueError,
        "uniform dtype but got torch.float32 and torch.float64; wrap modules",
    ),
    "frozen": (
        lambda f: mixed(f, bias=[torch.ones(2), False]),
        ValueError,
        "give use_orig_params=True",
    ),
    "strategy": (
        lambda f: f.FullyShardedDataParallel(nn.Linear(1, 1), sharding_strategy=1),
        TypeError,
        "sharding_strategy is 1; give one of ShardingStrategy.FULL_SHARD",
    ),
    "hybrid": (
        lambda f: f.FullyShardedDataParallel(
            nn.Linear(1, 1), sharding_strategy=f.ShardingStrategy.HYBRID_SHARD
        ),
        ValueError,
        "device_mesh of 2 dimensions; give device_mesh=",
    ),
    "two groups": (
        lambda f: f.FullyShardedDataParallel(
            nn.Linear(1, 1),
            torch.distributed.group.WORLD,
            device_mesh=torch.distributed.init_device_mesh("cpu", (1,)),
        ),
        ValueError,
        "either process_group or device_mesh",
    ),
    "types of gradients": (
        lambda f: f.FullyShardedDataParallel(
            nn.Linear(1, 1),
            mixed_precision=f.MixedPrecision(keep_low_precision_grads=True),
        ),
        NotImplementedError,
        "leave it out: gradients have the parameter's type",
    ),
    "rank 0 writes": (
        lambda f: f.FullyShardedDataParallel.summon_full_params(
            nn.Linear(1, 1), rank0_only=True
        ).__enter__(),
        NotImplementedError,
        "give writeback=False",
    ),
    "config": (
        lambda f: f.FullyShardedDataParallel.set_state_dict_type(
            nn.Linear(1, 1), f.StateDictType.FULL_STATE_DICT, f.StateDictConfig()
        ),
        TypeError,
        "goes with a FullStateDictConfig, not with a StateDictConfig",
    ),
    "meta": (
        lambda f: f.FullyShardedDataParallel(Bare()),
        ValueError,
        "give param_init_fn",
    ),
    "assign": (
        lambda f: f.FullyShardedDataParallel(nn.Linear(1, 1)).load_state_dict(
            nn.Linear(1, 1).state_dict(), assign=True
        ),
        RuntimeError,
        "assign=True would replace this rank's part; leave it out",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_say_what_to_give(alone, case):
    make, error, text = WRONG[case]
    with pytest.raises(error, match=text.replace("(", r"\(")):
        make(alone)


def test_a_process_group_and_an_attribute(alone):
    group = torch.distributed.new_group([0])
    made = alone.FullyShardedDataParallel(nn.Linear(3, 2), group)
    assert made.out_features == 2 and made.module.in_features == 3
    assert made._shards.mesh.get_group() is group
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        _ = made.no_such
    with pytest.raises(KeyError, match="mine"):
        made.register_forward_pre_hook(lambda m, x: {}["mine"])
        made(torch.ones(1, 3))


def test_an_error_in_forward_leaves_the_parts(alone):
    class Fails(nn.Linear):
        def forward(self, x):
            raise KeyError("mine")

    made = alone.FullyShardedDataParallel(Fails(2, 2), use_orig_params=True)
    with pytest.raises(KeyError, match="mine"):
        made(torch.ones(1, 2))
    assert made.weight.shape == (4,)
