"""The pytest plugin that comes with pydevtensor; pytest loads it by itself.

pytest --pydevtensor-gpus=2        tests see two simulated GPUs where there are none
pytest --pydevtensor-transfers     the tests that copy and wait most, with the lines

@pytest.mark.gpus(2)               skipped where there are fewer GPUs
@pytest.mark.max_transfers(device_to_host=1, waits=1)    fails above these numbers
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

_COUNTERS = ("host_to_device", "device_to_host", "device_to_device", "waits")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pydevtensor")
    group.addoption(
        "--pydevtensor-gpus",
        type=int,
        metavar="N",
        help="simulate N GPUs where the machine has none",
    )
    group.addoption(
        "--pydevtensor-transfers",
        action="store_true",
        help="show the tests that copy between devices and wait most, by line",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "gpus(n): pydevtensor: skip the test where there are fewer GPUs"
    )
    config.addinivalue_line(
        "markers",
        "max_transfers(host_to_device, device_to_host, device_to_device, waits): "
        "pydevtensor: fail the test if it makes more copies or waits than these",
    )
    wanted = config.getoption("--pydevtensor-gpus")
    if not hasattr(config, "workerinput"):  # that of pytest-xdist's processes
        _check_settings(wanted)
    if wanted is not None and not _gpus("", 0)[0]:
        os.environ["PYDEVTENSOR_SIM_GPUS"] = str(wanted)
    if config.getoption("--pydevtensor-transfers"):
        config.pluginmanager.register(_Report(), "pydevtensor-transfers")


_COUNT = """
import sys
folder, *choice = sys.argv[1:]
sys.path.insert(0, folder)
import pydevtensor as torch
try:
    if choice:
        torch._C._cuda_choose(True, *choice)
    print(torch.cuda.device_count(), torch.cuda.why_unavailable())
except ValueError as error:
    print(0, error)
"""


def _gpus(where: str | None = None, count: int = 0) -> tuple[int, str]:
    """How many GPUs there are, and why none: those of the environment or, if where is
    given, count simulated ones, 0 for real ones.

    Another process counts them, since counting chooses them.
    """
    import subprocess
    import sys

    folder = os.path.dirname(os.path.dirname(__file__))
    choice = [] if where is None else [where, str(count)]
    command = [sys.executable, "-c", _COUNT, folder, *choice]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise pytest.UsageError(f"pydevtensor does not start:\n{done.stderr}")
    number, _, why = done.stdout.partition(" ")
    return int(number), why.strip()


def _check_settings(wanted: int | None) -> None:
    """A usage error where a setting is wrong: tests of GPUs would be skipped."""
    variables = "PYDEVTENSOR_SIM_", "PYDEVTENSOR_VIRTUAL_GPUS"
    if wanted is None and not any(name.startswith(variables) for name in os.environ):
        return
    if wanted is None and os.environ.get("PYDEVTENSOR_SIM_GPUS", "0") not in ("", "0"):
        count, why = _gpus()
    else:  # the other settings are read for a simulated GPU alone
        count, why = _gpus("--pydevtensor-gpus", 1 if wanted in (None, 0) else wanted)
    if not count:
        raise pytest.UsageError(why)


def _limits(item: pytest.Item) -> dict[str, int] | None:
    marker = item.get_closest_marker("max_transfers")
    if marker is None:
        return None
    unknown = set(marker.kwargs) - set(_COUNTERS)
    if marker.args or unknown or not marker.kwargs:
        raise pytest.UsageError(
            f"{item.nodeid}: max_transfers takes {', '.join(_COUNTERS)} by name"
        )
    for name, limit in marker.kwargs.items():
        if type(limit) is not int or limit < 0:
            raise pytest.UsageError(
                f"{item.nodeid}: max_transfers({name}={limit!r}); give a number from "
                "0 on"
            )
    return dict(marker.kwargs)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("gpus")
    if marker is None:
        return
    if len(marker.args) != 1 or marker.kwargs or type(marker.args[0]) is not int:
        raise pytest.UsageError(f"{item.nodeid}: write @pytest.mark.gpus(2)")
    from pydevtensor import cuda

    if cuda.device_count() < marker.args[0]:
        pytest.skip(
            f"needs {marker.args[0]} GPUs and has {cuda.device_count()}; "
            f"--pydevtensor-gpus={marker.args[0]} simulates them"
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    limits = _limits(item)
    if limits is None and not item.config.getoption("--pydevtensor-transfers"):
        return (yield)
    from pydevtensor import cuda, profiler

    profile = profiler.profile(activities=[profiler.ProfilerActivity.CPU])
    with cuda.transfers() as moved, profiler.in_background(profile):
        result = yield
    counts = {name: getattr(moved, name) for name in _COUNTERS}
    table = profile.transfers()
    lines = str(table) if table.rows else "(the test has a profile of its own)"
    if any(counts.values()):
        item.user_properties.append(("transfers", [sum(counts.values()), lines]))
    over = {
        name: f"{counts[name]} {name}, and max_transfers allows {limit}"
        for name, limit in (limits or {}).items()
        if counts[name] > limit
    }
    if over:
        said = "; ".join(over.values())
        pytest.fail(f"{said}\n{table.sources(over)}\n\n{lines}", pytrace=False)
    return result


class _Report:
    """The summary of --pydevtensor-transfers."""

    def __init__(self) -> None:
        self.tables: list[tuple[int, str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == "transfers" and isinstance(value, (list, tuple)):
                self.tables.append((value[0], report.nodeid, value[1]))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("copies and waits by line")
        for _, nodeid, text in sorted(self.tables, key=lambda row: -row[0]):
            terminalreporter.write_line(f"{nodeid}\n{text}\n")
        if not self.tables:
            terminalreporter.write_line("no test copied between devices or waited")
