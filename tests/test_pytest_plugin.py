"""The pytest plugin that the package installs, in a pytest of its own."""

import re
import textwrap

import pytest
from isolated import python

TESTS = """
import pytest
import pydevtensor as torch

@pytest.mark.gpus(2)
def test_two_gpus():
    assert torch.ones(3, device="cuda:1").sum().item() == 3

@pytest.mark.gpus(3)
def test_three_gpus():
    raise AssertionError("runs without three GPUs")

@pytest.mark.gpus(1)
@pytest.mark.max_transfers(waits=1, device_to_host=2)
def test_many_waits():
    x = torch.ones(3, device="cuda")
    for _ in range(12):
        x.sum().item()  # here

@pytest.mark.gpus(1)
@pytest.mark.max_transfers(host_to_device=0)
def test_one_copy():
    x = torch.ones(3, device="cuda").cpu()
    y = x.to("cuda")  # sent

@pytest.mark.gpus(1)
@pytest.mark.max_transfers(waits=2, host_to_device=0)
def test_few_waits():
    x = torch.ones(3, device="cuda")
    assert x.tolist() == [1, 1, 1]

@pytest.mark.gpus(1)
@pytest.mark.max_transfers(waits=1)
def test_with_a_profile():
    with torch.profiler.profile() as prof:
        x = torch.ones(3, device="cuda")
        x.tolist()
        x.tolist()
    assert sum(row.waits for row in prof.transfers().rows) == 2

def test_without_gpus():
    assert torch.ones(3).sum() == 3
"""


@pytest.fixture
def run(tmp_path):
    def run(*options, text=TESTS, **keywords):
        (tmp_path / "test_it.py").write_text(textwrap.dedent(text))
        plain = ["-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-v"]
        plain += ["-p", "no:hypothesispytest"]  # which imports all of it at the end
        arguments = [*plain, *options, str(tmp_path / "test_it.py")]
        return python("", arguments=arguments, **keywords)

    return run


def outcomes(text):
    words = [line.split() for line in text.splitlines() if "::test_" in line]
    return {w[0].split("::")[1]: w[1] for w in words if len(w) > 1 and w[1].isupper()}


@pytest.mark.slow
def test_gpus_and_limits(run):
    text = run("--pydevtensor-gpus=2", status=1)
    assert outcomes(text) == {
        "test_two_gpus": "PASSED",
        "test_three_gpus": "SKIPPED",
        "test_many_waits": "FAILED",
        "test_one_copy": "FAILED",
        "test_few_waits": "PASSED",
        "test_with_a_profile": "FAILED",
        "test_without_gpus": "PASSED",
    }
    assert "12 waits, and max_transfers allows 1" in text
    assert "12 device_to_host, and max_transfers allows 2" in text
    for limited, source in {
        "12 waits": "x.sum().item()  # here",
        "1 host_to_device": 'y = x.to("cuda")  # sent',
    }.items():
        line = TESTS[: TESTS.index(source)].count("\n") + 1
        assert re.search(
            rf"test_it.py:{line}: .*{limited}.*\n    {re.escape(source)}\n", text
        )
    assert "the test has a profile of its own" in text


def test_without_gpus_the_marked_tests_are_skipped(run):
    text = run("-rs")
    found = outcomes(text)
    assert found.pop("test_without_gpus") == "PASSED"
    assert set(found.values()) == {"SKIPPED"}
    assert "--pydevtensor-gpus=3 simulates them" in text


def test_the_report_has_the_worst_test_first(run):
    text = run("--pydevtensor-gpus=1", "--pydevtensor-transfers", status=1)
    report = text[text.index("copies and waits by line") :]
    assert report.index("::test_many_waits") < report.index("::test_few_waits")
    line = TESTS[: TESTS.index("# here")].count("\n") + 1
    assert f"test_it.py:{line}" in report and "::test_without_gpus\n" not in report


@pytest.mark.parametrize(
    "gpus", [("--pydevtensor-gpus=1",), pytest.param((), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("SIM_RACES", "erorr", "off, warn or error"),
        ("SIM_SCHEDULE", "lasy", "eager, lazy or random:SEED"),
        ("SIM_MEMORY", "lots", "64M"),
        ("SIM_STICKY", "yes", "1 or 0"),
        ("SIM_FAIL", "maloc:1", "malloc, host"),
        ("VIRTUAL_GPUS", "two", "from 0 to 32"),
        *(
            pytest.param(*rest, marks=pytest.mark.slow)
            for rest in [
                ("SIM_CARD", "t5", "T4, "),  # test_cards.py has these without pytest
                ("SIM_HOST", "fixt", "measured or fixed"),
                ("SIM_PEER", "yes", "1 or 0"),
            ]
        ),
    ],
)
def test_a_wrong_setting_ends_the_run(run, gpus, name, value, choices):
    said = run(*gpus, status=4, fails=True, **{f"PYDEVTENSOR_{name}": value})
    assert f"PYDEVTENSOR_{name}" in said and value in said and choices in said


@pytest.mark.slow
def test_a_wrong_number_of_gpus_ends_the_run(run):
    for value in ("33", "-1", "two"):
        said = run(status=4, fails=True, PYDEVTENSOR_SIM_GPUS=value)
        assert f"PYDEVTENSOR_SIM_GPUS is {value}; give a number of GPUs" in said


@pytest.mark.slow
def test_wrong_use(run):
    assert "--pydevtensor-gpus is 33; give" in run(
        "--pydevtensor-gpus=33", status=4, fails=True
    )
    for mark, said in {
        "gpus": "gpus(2)",
        "gpus('two')": "gpus(2)",
        "max_transfers(3)": "by name",
        "max_transfers()": "by name",
        "max_transfers(copies=3)": "by name",
        "max_transfers(waits=-1)": "from 0 on",
    }.items():
        text = f"import pytest\n@pytest.mark.{mark}\ndef test(): pass\n"
        assert said in run(text=text, status=1), mark
