"""Random programs, hostile arguments and mutated bytes (tools/fuzz), and what these have
found."""

import random
from types import SimpleNamespace

import pytest
from conftest import DEVICES
from fuzz import campaign, coverage, play
from fuzz.machines import Ours
from fuzz.shrink import shrink


def options(calls, **chosen):
    common = {
        "against": "numpy",
        "hostile": False,
        "failures": 1,
        "length": 12,
        "seed": 0,
    }
    devices = ",".join(DEVICES)
    return SimpleNamespace(
        calls=calls, seconds=1e9, devices=devices, **{**common, **chosen}
    )


# --- programs


@pytest.mark.parametrize("hostile", [False, True], ids=["valid", "hostile"])
def test_random_programs(hostile, capfd):
    assert campaign.campaign(options(2000, hostile=hostile)) == 0, (
        capfd.readouterr().out
    )


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
