"""Random programs, hostile arguments and mutated bytes (tools/fuzz), and what these have
found."""

import random
from types import SimpleNamespace

import pytest
from conftest import DEVICES, SIMULATED
from fuzz import campaign, coverage, generate, known, play
from fuzz.machines import Ours
from fuzz.shrink import shrink

import pydevtensor as torch


def options(calls, **chosen):
    common = {
        "against": "numpy",
        "hostile": False,
        "gradients": False,
        "failures": 1,
        "length": 12,
        "seed": 0,
    }
    common["devices"] = ",".join(DEVICES)
    return SimpleNamespace(calls=calls, seconds=1e9, **{**common, **chosen})


# --- programs


@pytest.mark.parametrize("hostile", [False, True], ids=["valid", "hostile"])
def test_random_programs(hostile, capfd):
    assert campaign.campaign(options(2000, hostile=hostile)) == 0, (
        capfd.readouterr().out
    )


def test_random_gradients(capfd):
    """Beside backward(), and finite differences in float64."""
    chosen = options(1500, gradients=True, devices="cpu")
    assert campaign.campaign(chosen) == 0, capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("hostile", [False, True], ids=["valid", "hostile"])
def test_many_random_programs(hostile, capfd):
    chosen = options(20000, hostile=hostile, seed=10**6)
    assert campaign.campaign(chosen) == 0, capfd.readouterr().out


class Wrong(Ours):
    """pydevtensor with a fault: it transposes a sum's result, or says a wrong type."""

    def __init__(self, fault):
        super().__init__("cpu")
        self.fault = fault

    def read(self, name):
        found = super().read(name)
        return self.fault(found) if hasattr(found, "array") else found


def wrong_values(found):
    if found.dtype == "torch.int64" and found.array.size > 2:
        found.array = found.array + 1
    return found


def wrong_types(found):
    if found.dtype == "torch.bool":
        found.dtype = "torch.uint8"
    return found


@pytest.mark.parametrize(
    ("fault", "kind"), [(wrong_values, "value"), (wrong_types, "dtype")]
)
def test_a_fault_is_found_and_shrunk(fault, kind):
    def session():
        return play.Session([Wrong(fault)])

    for seed in range(200):
        played = session()
        try:
            play.generate(seed, played, 12)
        except play.Mismatch as found:
            failure = found
            break
    assert failure.kind == kind

    def fails(candidate):
        again = play.replay(candidate, session())
        return again is not None and again.key == failure.key

    small = shrink(played.statements, fails)
    assert fails(small) and len(small) <= 2
    # What is printed runs as it is.
    exec(campaign.text_of(small), {})


def test_a_program_is_its_seed_alone():
    def written(seed):
        session = play.Session()
        play.generate(seed, session, 12)
        return session.statements

    programs = [written(seed) for seed in range(20)]
    assert programs == [written(seed) for seed in range(20)]
    assert sum(map(len, programs)) > 100 and len({tuple(p) for p in programs}) == 20


def test_a_new_function_changes_few_programs():
    calls = list(generate.callables())
    new = SimpleNamespace(name="a_new_one", method=False, parameters=[])
    for at in (0, len(calls) // 2, len(calls)):
        old, more = generate.Ring(calls), generate.Ring([*calls[:at], new, *calls[at:]])
        pairs = [
            (old.choose(random.Random(seed)), more.choose(random.Random(seed)))
            for seed in range(5000)
        ]
        changed = [b for a, b in pairs if a is not b]
        assert all(b is new for b in changed) and len(changed) < 30


def test_a_program_names_the_device_on_which_it_fails(two_gpus, capfd, monkeypatch):
    """Which of several values is written to one element is open, so it stands for a fault."""
    statements = [
        "t1 = torch.tensor(0)",
        "t2 = torch.tensor([0] * 25)",
        "t3 = torch.arange(25)",
        "t4 = t1.put(t2, t3)",
    ]
    chosen = options(1, against="none")
    assert play.replay(statements, campaign.session_of(chosen, 0)) is None
    monkeypatch.setattr(known, "is_open", lambda *_: False)
    failure = play.replay(statements, campaign.session_of(chosen, 0))
    campaign.report(chosen, 0, statements, failure)
    program = capfd.readouterr().out
    assert str(failure.device) in DEVICES[1:]
    assert f"torch.set_default_device('{failure.device}')\n" in program
    assert ("torch.cuda.sim_schedule('lazy')\n" in program) == SIMULATED
    exec(program, {})
    torch.set_default_device(None)


# --- bytes and texts, as far as that goes without coverage


@pytest.mark.filterwarnings("ignore:.*read-only")
@pytest.mark.parametrize("target", coverage.TARGETS, ids=lambda t: t.__name__)
def test_random_bytes(target):
    """What coverage-guided runs have kept, and this with a few bytes changed."""
    rng = random.Random(target.__name__)
    seeds = coverage.seeds(target)
    for turn, seed in enumerate(seeds + rng.choices(seeds, k=300)):
        data = bytearray(seed)
        for _ in range(turn % 4 if turn >= len(seeds) else 0):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        target(bytes(data))
