"""Simulated and virtual GPUs: their number, schedules, faults and clocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pydevtensor import _C
from pydevtensor.cuda import device_count, is_available, synchronize


def _choose(function, n):
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{function}(): n is {n!r}; give the number of GPUs, such as 2")
    _C._cuda_choose(function == "simulate", f"{function}(): n", str(n.__index__()))


def simulate(
    n: int,
    memory: int | str | None = None,
    schedule: str | None = None,
    peer: bool | None = None,
    races: str | None = None,
    card: str | None = None,
    host: str | None = None,
    record_stream: str | None = None,
) -> None:
    """Use n simulated GPUs. Call it before the first use of a device.

    memory    the size of each in bytes, an int or a str such as '64M' (default 1G)
    schedule  when work runs: 'eager', 'lazy' or 'random:SEED' (default 'eager')
    peer      whether they can access each other's memory (default True)
    races     'warn' or 'error': what becomes of accesses to the same memory that no
              stream order, event or wait puts in order (default 'off', not looked for)
    card      a card whose properties and memory they have, such as 'T4' or 'A100 80GB',
              and with it a clock(), which says how long the program would take there:
              docs/clock.md. Several, 't4,h200', have a clock each
    host      the time of the program's own code on that clock: 'measured' (default), or
              'fixed', which gives the same result in every run
    record_stream  'manual': memory that is freed while another stream than its own uses
              it is handed out at once, as by PyTorch on a real GPU, unless the program
              called Tensor.record_stream(); 'automatic' (default): operations record it

    They take as long as the CPU does, so time.time() shows no gain from work that
    overlaps or from a second GPU: choose a card, and take the times of clock(), of
    Event.elapsed_time() or of a profile.

    simulate(0) selects the real GPUs and overrides PYDEVTENSOR_SIM_GPUS.
    """
    if schedule is not None:
        _check_schedule("simulate", schedule)
    if races not in (None, "off", "warn", "error"):
        raise ValueError(f"simulate(): races is {races!r}; give 'warn' or 'error'")
    if memory is not None:
        memory = _bytes(memory)
    if card is not None:
        card = ",".join(cards_named("simulate", card))
    if host not in (None, "measured", "fixed"):
        raise ValueError(f"simulate(): host is {host!r}; give 'measured' or 'fixed'")
    if record_stream not in (None, "automatic", "manual"):
        raise ValueError(
            f"simulate(): record_stream is {record_stream!r}; give 'automatic' or "
            "'manual'"
        )
    _choose("simulate", n)
    # The simulator reads these when it is loaded.
    if memory is not None:
        os.environ["PYDEVTENSOR_SIM_MEMORY"] = str(memory)
    if schedule is not None:
        os.environ["PYDEVTENSOR_SIM_SCHEDULE"] = schedule
    if peer is not None:
        os.environ["PYDEVTENSOR_SIM_PEER"] = str(int(bool(peer)))
    if races is not None:
        os.environ["PYDEVTENSOR_SIM_RACES"] = races
    if card is not None:
        os.environ["PYDEVTENSOR_SIM_CARD"] = card
    if host is not None:
        os.environ["PYDEVTENSOR_SIM_HOST"] = host
    if record_stream is not None:
        os.environ["PYDEVTENSOR_SIM_RECORD_STREAM"] = record_stream


def cards_named(function, text):
    """The names of the cards that text lists."""
    if not isinstance(text, str):
        raise TypeError(
            f"{function}(): card is {text!r}; give a card's name, such as 'T4'"
        )
    names = _C._sim_cards(text)
    if len(names) > 8:
        raise ValueError(f"{function}(): {len(names)} cards; give 8 or fewer")
    return names


def _bytes(memory):
    if isinstance(memory, str) and memory[:-1].isdigit() and memory[-1] in "KMGT":
        memory = int(memory[:-1]) << 10 * ("KMGT".index(memory[-1]) + 1)
    if isinstance(memory, str) and memory.isdigit():
        memory = int(memory)
    if isinstance(memory, bool) or not isinstance(memory, int):
        raise TypeError(
            f"simulate(): memory is {memory!r}; give bytes as an int, or a str such as "
            "'64M'"
        )
    if memory <= 0:
        raise ValueError(f"simulate(): memory is {memory}; give a positive number")
    return memory


def _check_schedule(function, name):
    seed = name[7:] if isinstance(name, str) and name.startswith("random:") else None
    if name not in ("eager", "lazy") and not (seed or "").isdigit():
        raise ValueError(
            f"{function}(): the schedule is {name!r}; give 'eager', 'lazy' or "
            "'random:SEED', such as 'random:1'"
        )


def virtual(n: int) -> None:
    """Use n virtual GPUs that share GPU 0. Call it before the first use of a device."""
    _choose("virtual", n)


def sim_counters(device: Any = None) -> dict[str, int]:
    """The calls, launches, copies, ... of device, a simulated GPU, or of all for None.

    >>> before = torch.cuda.sim_counters()['launches']
    >>> x = torch.ones(2, device='cuda')
    >>> torch.cuda.sim_counters()['launches'] > before
    True
    """
    from json import loads

    index = -1 if device is None else _C._device_index(device)
    return loads(_C._sim_control(f"count {index}"))


def sim_fail(text: str) -> None:
    """Make simulated calls fail.

    text: 'malloc:3', the third allocation from now on, once; 'malloc:3+', also all
    after it; 'copy:1,launch:2', several; '', none.

    >>> torch.cuda.sim_fail('')
    """
    _C._sim_control(f"failures {text}")


def sim_schedule(name: str) -> None:
    """Set when simulated work runs: name is 'eager', 'lazy' or 'random:SEED'.

    >>> torch.cuda.sim_schedule('eager')
    """
    _check_schedule("sim_schedule", name)
    _C._sim_control(f"schedule {name}")


def sim_schedules(seeds: int = 8) -> Iterator[str]:
    """Set one schedule after the other: 'eager', 'lazy', 'random:1', 'random:2', ...

    seeds  the number of random orders

    A program that synchronizes as it has to gives the same results under all of them.
    All GPUs are synchronized before the next schedule and at the end, which restores
    the first one.

    >>> for schedule in torch.cuda.sim_schedules(seeds=2):
    ...     print(schedule, torch.ones(3, device='cuda').sum().item())
    eager 3.0
    lazy 3.0
    random:1 3.0
    random:2 3.0
    """
    if isinstance(seeds, bool) or not hasattr(seeds, "__index__"):
        raise TypeError(
            f"sim_schedules(): seeds is {seeds!r}; give a number, such as 8"
        )
    if (count := seeds.__index__()) < 0:
        raise ValueError(f"sim_schedules(): seeds is {count}; give 0 or more")
    return _schedules(["eager", "lazy", *(f"random:{i + 1}" for i in range(count))])


def _schedules(names):
    before = _C._sim_control("schedule")
    try:
        for name in names:
            sim_schedule(name)
            yield name
            for i in range(device_count()):
                synchronize(i)
    finally:
        sim_schedule(before)


def _clocks():
    from json import loads

    report = _C._sim_control("clock") if is_available() else ""
    if not report:
        raise RuntimeError(
            "clock(): no card is chosen, whose time could be estimated; choose one "
            "before the first use of a device: cuda.simulate(1, card='T4')"
        )
    return loads(report)


def clock(card: str | None = None) -> int:
    """The time on the clock of simulated GPUs, in nanoseconds since their first use.

    It says how long the program would have taken so far on the card of simulate():
    what the host did and waited for. Work that is queued and not waited for
    is not in it; synchronize() first. card is one of several cards, None the first.
    RuntimeError without a card.

    >>> import subprocess, sys
    >>> code = '''
    ... import pydevtensor as torch
    ... torch.cuda.simulate(1, card="T4", host="fixed")
    ... begin = torch.cuda.clock()
    ... x = torch.ones(1000, 1000, device="cuda")
    ... torch.cuda.synchronize()
    ... print(torch.cuda.clock() > begin)
    ... '''
    >>> subprocess.check_output([sys.executable, '-P', '-c', code])
    b'True\\n'
    """
    clocks = _clocks()["cards"]
    if card is None:
        return clocks[0]["now"]
    names = cards_named("clock", card)
    for found in clocks:
        if [found["name"]] == names:
            return found["now"]
    raise ValueError(
        f"clock(): card is {card!r}, which has no clock; give one of "
        f"{', '.join(found['name'] for found in clocks)}"
    )
