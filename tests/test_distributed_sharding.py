"""Training of which each rank has a share: of the optimizer's states."""

import ranks

ZERO = """
from pydevtensor.distributed.optim import ZeroRedundancyOptimizer
begin()
device = os.environ["DEVICE"].format(rank=rank)
def net():
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3), nn.Tanh(), nn.Linear(3, 1))
    return made.to(device)
def groups(net):
    return [{"params": [*net[0].parameters()]}, {"params": [*net[2].parameters(), *net[4].parameters()], "lr": 0.02}]
def train(net, optimizer, schedule, steps):
    for step in steps:
        torch.manual_seed(step)
        optimizer.zero_grad()
        net(torch.randn(8, 5).to(device)).square().mean().backward()
        optimizer.step()
        schedule.step()
def check(mine, other):
    for a, b in zip(mine.parameters(), other.parameters()):
        assert torch.equal(a, b), (a, b)
for views in (False, True):
    whole, parts = net(), net()
    one = torch.optim.Adam(groups(whole), lr=0.1)
    zero = ZeroRedundancyOptimizer(
        groups(parts), torch.optim.Adam, parameters_as_bucket_view=views, lr=0.1)
    assert [g["lr"] for g in zero.param_groups] == [0.1, 0.02]
    assert zero.param_groups[0]["betas"] == (0.9, 0.999)
    schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (one, zero)]
    train(whole, one, schedules[0], range(3))
    train(parts, zero, schedules[1], range(3))
    check(whole, parts)
    # each parameter's state is on one rank
    counts = [None] * size
    dist.all_gather_object(counts, len(zero.optim.state))
    assert sum(counts) == 6 and min(counts) >= 1, counts
    elements = [None] * size
    dist.all_gather_object(elements, sum(s["exp_avg"].numel() for s in zero.optim.state.values()))
    assert sum(elements) == 70 and max(elements) < 50, elements
    try:
        zero.state_dict()
    except RuntimeError as error:
        assert f"consolidate_state_dict(to={rank})" in str(error)
    else:
        assert False
    zero.consolidate_state_dict(to=1)
    expected = one.state_dict()
    if rank == 1:
        found = zero.state_dict()
        assert [*found["state"]] == [*range(6)]
        assert found["param_groups"] == expected["param_groups"]
        for i, kept in expected["state"].items():
            for name, value in kept.items():
                assert torch.equal(found["state"][i][name], value.cpu())
    # states of one process go on in many, and the other way round
    again = net()
    again.load_state_dict(whole.state_dict())
    zero = ZeroRedundancyOptimizer(groups(again), torch.optim.Adam, lr=0.7)
    zero.load_state_dict(expected)
    schedule = torch.optim.lr_scheduler.StepLR(zero, 2, 0.5)
    schedule.load_state_dict(schedules[0].state_dict())
    train(whole, one, schedules[0], range(3, 5))
    train(again, zero, schedule, range(3, 5))
    check(whole, again)
zero.add_param_group({"params": [nn.Parameter(torch.ones(3, device=device))], "lr": 1.0})
assert zero.param_groups[2]["lr"] == 1.0 and len(zero.optim.param_groups) == 3
zero.step()
try:
    ZeroRedundancyOptimizer(net().parameters(), torch.optim.SGD, overlap_with_ddp=True)
except NotImplementedError as error:
    assert "call step() after backward()" in str(error)
else:
    assert False
"""


def test_states_of_an_optimizer_by_shares(tmp_path):
    ranks.run(tmp_path, 2, ZERO, DEVICE="cpu")
    ranks.run(tmp_path, 4, ZERO, DEVICE="cpu")


def test_states_of_an_optimizer_by_shares_on_gpus(tmp_path):
    given = {"DEVICE": "cuda:{rank}", "PYDEVTENSOR_SIM_GPUS": "2"}
    ranks.run(tmp_path, 2, ZERO, **given)
