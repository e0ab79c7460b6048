"""utils.benchmark: tables of fixed times, and that work on a GPU is in the time.

What sums up fixed times is compared with PyTorch in golden/benchmark.json.
"""

import pytest

import pydevtensor as torch
from pydevtensor.utils import benchmark
from pydevtensor.utils.benchmark import Compare, Measurement, TaskSpec, Timer


def measured(times, row="S", column="D", **options):
    task = TaskSpec("x + y", "pass", "", "L", row, column, **options)
    return Measurement(10, times, task)


STEADY, SLOW = [1e-3] * 5, [2e-3, 2.1e-3, 5e-3, 1e-3, 8e-3]
RESULTS = [
    measured(STEADY),
    measured(SLOW, "S2"),
    measured([2e-3] * 5, "S2", "D2", num_threads=2),
]


def test_a_table():
    lines = str(Compare(RESULTS)).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["|", "D", "|", "D2"],
        ["1", "threads:", lines[2].split()[-1]],
        ["S", "|", "100.0", "|"],
        ["S2", "|", "210.0", "|"],
        ["2", "threads:", lines[5].split()[-1]],
        ["S2", "|", "|", "200.0"],
        [],
        ["Times", "are", "in", "microseconds", "(us)."],
    ]
    assert (
        lines[0].strip("[-] ") == "L" and len({line.find("|") for line in lines}) == 2
    )


def test_tables_by_label():
    other = Measurement(1, [1.0], TaskSpec("z", "pass", label="other"))
    shown = str(Compare([*RESULTS, other]))
    assert shown.index("- L -") < shown.index("- other -")
    assert "Times are in seconds (s)." in shown


def test_digits_colours_and_warnings(capsys):
    table = Compare(RESULTS)
    table.trim_significant_figures()
    assert "100 " in str(table) and "210.0" not in str(table)
    table.highlight_warnings()
    assert "200 (! 143%)" in str(table) and "IQR / median" in str(table)
    table = Compare(RESULTS)
    table.colorize()
    table.print()
    shown = capsys.readouterr().out
    assert "\033[92m\033[1m100.0\033[0m\033[0m" in shown
    assert "\033[2m\033[91m210.0\033[0m" in shown
    table.colorize(rowwise=True)
    assert "\033[92m\033[1m210.0" in str(table)


def test_environments():
    results = [measured(STEADY, env="old"), measured(STEADY, env="new")]
    shown = str(Compare(results))
    assert "(old) S" in shown and "(new) S" in shown


def test_texts():
    assert repr(measured(STEADY)).splitlines()[1:] == [
        *("L: S", "D", "  Median: 100.00 us", "  IQR:    0.00 us (100.00 to 100.00)"),
        "  5 measurements, 10 runs per measurement, 1 thread",
    ]
    assert "WARNING" in repr(measured(SLOW)) and "142.9%" in repr(measured(SLOW))


def test_work_on_the_device_is_in_the_time(device):
    x = torch.ones(8, device=device)
    waits = []

    def clock():
        waits.append(torch.cuda.is_initialized())
        return benchmark.timer()

    found = Timer("x.add_(1)", globals={"x": x}, timer=clock).timeit(4)
    assert found.raw_times[0] > 0 and waits
    assert (x >= 5).all()
    if device != "cpu":
        # Nothing waits any more: the timer has synchronized.
        assert torch.cuda.current_stream(device).query()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Timer("x", language="c++"), "call the C\\+\\+ from a function"),
        (lambda: Timer("x", global_setup="int i;"), "Timer measures Python"),
        (lambda: Timer("x").collect_callgrind(), "run valgrind"),
    ],
)
def test_errors(call, words):
    with pytest.raises(NotImplementedError, match=words):
        call()
